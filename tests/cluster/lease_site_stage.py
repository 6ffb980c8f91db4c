"""A namespace in which holders of the submit lease meet faults, and what an administrator sees.

Everything of blastyard's runs under a service account that has exactly its Role; the test itself
acts as an administrator and as foreign programs.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from inside_stage import Installation
from waiting_stage import CLOCK, QUICK, until

from blastyard.admission.lease import format_time, parse_time
from blastyard.admission.ledger import Ledger, decode_ledger
from blastyard.admission.timing import Timings
from blastyard.bootstrap.cluster import Connection, assembled, connect
from blastyard.bootstrap.gate import this_process
from blastyard.bootstrap.seam import Seam
from blastyard.kube import rbac
from blastyard.kube.resource import LEASES, Resource
from blastyard.settings import caller_environment, read_settings
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_request import MERGE_PATCH
from blastyard.testing.proxy import FaultProxy

LEASE = r"/leases/elb-blast-submit-"
"""In the path of a request about the submit lease that is there."""


@dataclass
class Site:
    """The namespace. What was opened is closed with it."""

    plane: ControlPlane
    namespace: str
    folder: Path
    stack: ExitStack = field(default_factory=ExitStack)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rules = [rbac.rule(each) for each in rbac.needed(self.namespace)]
        self.plane.create_account(self.namespace, "blastyard", rules)
        self.token = self.plane.token_for(self.namespace, "blastyard")
        self.kubeconfig = self.folder / "kubeconfig"
        self.plane.write_kubeconfig(self.kubeconfig, self.token, self.namespace)
        until(lambda: self.plane.requests(self.token).send("GET", self._leases()).ok)

    def close(self) -> None:
        """End what was started, by its process."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.stack.close()

    # -- blastyards ----------------------------------------------------------------------------

    def environment(self, **more: str) -> dict[str, str]:
        """What a command line of this namespace is started with; takeover after 20 s."""
        mine = caller_environment()
        kept = {name: mine[name] for name in ("PATH", "HOME", "LANG") if name in mine}
        return {
            **kept,
            "KUBECONFIG": str(self.kubeconfig),
            "BLAST_COORD_BACKEND": "k8s",
            "BLASTYARD_LEASE_SECONDS": "20",
            "BLASTYARD_HOME": str(self.folder / "home"),
            **more,
        }

    def proxy(self) -> FaultProxy:
        """A proxy before the API server, closed with the site."""
        return self.stack.enter_context(FaultProxy.before(self.plane))

    def through(self, proxy: FaultProxy) -> str:
        """A kubeconfig that leads through the proxy."""
        path = self.folder / f"kubeconfig-{uuid.uuid4().hex[:6]}"
        return str(proxy.write_kubeconfig(path, self.token, self.namespace))

    def connection(self, kubeconfig: str) -> Connection:
        """A client alone."""
        made = connect(read_settings(self.environment(KUBECONFIG=kubeconfig)))
        self.stack.callback(made.wire.close)
        return made

    def installation(
        self, timings: Timings = QUICK, kubeconfig: str = "", seam: Seam | None = None
    ) -> Installation:
        """A blastyard of its own in this process, signed on, following the namespace."""
        home = str(self.folder / uuid.uuid4().hex)
        where = kubeconfig or str(self.kubeconfig)
        settings = read_settings(self.environment(BLASTYARD_HOME=home, KUBECONFIG=where))
        chosen = seam or Seam(timings=timings)
        made = assembled(connect(settings), settings, this_process("serve"), seam=chosen)
        made.informer.start()
        made.opened.gate.beat()
        self.stack.callback(made.opened.documents.close)
        return Installation(made.opened)

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        """Start `blastyard …`; it is ended with the site."""
        process = subprocess.Popen(
            [sys.executable, "-m", "blastyard", *words],
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def script(self, body: str = "") -> Path:
        """A submit command: ``script ID`` makes its Jobs; ``body`` is sh that runs in between."""
        path = self.folder / f"submit-{uuid.uuid4().hex[:6]}"
        path.write_text(
            "#!/bin/sh\nset -eu\n"
            f"kubectl() {{ {self.plane.kubectl} --kubeconfig {self.plane.kubeconfig} "
            f'-n {self.namespace} "$@"; }}\n'
            "make() { kubectl create -f - >/dev/null <<Y\n"
            '{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"$1-$2","labels":'
            '{"app":"$1","elb-job-id":"$2"}},"spec":{"suspend":true,"template":{"spec":'
            '{"restartPolicy":"Never","containers":[{"name":"c","image":"localhost/x:1"}]}}}}\n'
            "Y\n}\n"
            f'make submit "$1"\n{body}\nmake finalizer "$1"\n'
        )
        path.chmod(0o755)
        return path

    def beside(self, call: Callable[[], object]) -> Callable[[], None]:
        """Do it in a thread; what is returned waits for its end."""
        thread = Thread(target=call)
        thread.start()
        return thread.join

    # -- the cluster, as an administrator --------------------------------------------------------

    def _leases(self, name: str = "") -> str:
        base = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        return f"{base}/{name}" if name else base

    @property
    def lease_path(self) -> str:
        """The address of the submit lease."""
        return self._leases(rbac.submit_lease_name(self.namespace))

    @property
    def lease_address(self) -> tuple[Resource, str]:
        """The same for a client."""
        return LEASES, rbac.submit_lease_name(self.namespace)

    def now(self) -> datetime:
        """The time: the API server runs on this machine."""
        return CLOCK.now()

    def lease(self) -> dict[str, Any]:
        """The submit lease as it stands; empty when there is none."""
        answer = self.plane.admin.send("GET", self.lease_path)
        return dict(answer.document) if answer.ok else {}

    def holder(self) -> str:
        """Who is inside Gate A; empty when nobody is."""
        return str(self.lease().get("spec", {}).get("holderIdentity") or "")

    def acquired_at(self) -> datetime:
        """When whoever is inside says to have got there."""
        at = parse_time(self.lease()["spec"]["acquireTime"])
        assert at is not None
        return at

    def put_lease(self, holder: str, **spec: Any) -> None:
        """Write the submit lease whole, as a foreign program does. Times may be any text; a
        ``timedelta`` means so long ago."""
        now = self.now()
        said = {
            key: format_time(now - value) if isinstance(value, timedelta) else value
            for key, value in spec.items()
        }
        body: dict[str, Any] = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": rbac.submit_lease_name(self.namespace)},
            "spec": {"holderIdentity": holder, **said},
        }
        if found := self.lease():
            body["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
            self.plane.admin.send("PUT", self.lease_path, body).expect(200)
        else:
            self.plane.admin.send("POST", self._leases(), body).expect(201)

    def patch_lease(self, **metadata: Any) -> None:
        """Change the metadata of the submit lease, and so its version."""
        change = {"metadata": metadata}
        self.plane.admin.send("PATCH", self.lease_path, change, kind=MERGE_PATCH).expect(200)

    def delete_lease(self) -> None:
        """Delete it by hand."""
        self.plane.admin.send("DELETE", self.lease_path).expect(200)

    def jobs(self) -> list[dict[str, Any]]:
        """All Jobs."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        return list(self.plane.admin.send("GET", path).expect(200)["items"])

    def made_by(self, search: str) -> set[str]:
        """The ``app`` of each Job that carries the id and is no marker."""
        labels = [job["metadata"]["labels"] for job in self.jobs()]
        own = [each for each in labels if each.get("elb-job-id") == search]
        return {each["app"] for each in own if "blastyard/marker" not in each}

    def markers(self, search: str) -> set[tuple[str, str]]:
        """What stands for a search: (kind, app) of each of its markers' Jobs."""
        return {
            (job["metadata"]["labels"]["blastyard/marker"], job["metadata"]["labels"]["app"])
            for job in self.jobs()
            if job["metadata"].get("annotations", {}).get("blastyard/id") == search
        }

    def delete_markers(self, search: str) -> None:
        """Delete what stands for a search."""
        for job in self.jobs():
            if job["metadata"].get("annotations", {}).get("blastyard/id") == search:
                path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{job['metadata']['name']}"
                options = {"propagationPolicy": "Background"}
                self.plane.admin.send("DELETE", path, options).expect(200)

    def submitters(self) -> list[str]:
        """Who has signed on."""
        found = self.plane.admin.send("GET", self._leases()).expect(200)["items"]
        labels = [each["metadata"].get("labels", {}) for each in found]
        mine = zip(found, labels, strict=True)
        return [
            each["metadata"]["name"]
            for each, said in mine
            if said.get("blastyard/kind") == "submitter"
        ]

    @property
    def _ledger_path(self) -> str:
        name = rbac.ledger_name(self.namespace)
        return f"/api/v1/namespaces/{self.namespace}/configmaps/{name}"

    def has_ledger(self) -> bool:
        """Whether there is one."""
        return self.plane.admin.finds(self._ledger_path)

    def ledger(self) -> Ledger:
        """The ledger as it stands."""
        text = self.plane.admin.send("GET", self._ledger_path).expect(200)["data"]["ledger"]
        return decode_ledger(text.encode())


@pytest.fixture
def site(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Site]:
    """A namespace in which holders of the submit lease meet faults."""
    made = Site(control_plane, namespace, tmp_path)
    yield made
    made.close()
