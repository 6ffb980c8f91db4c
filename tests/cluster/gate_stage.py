"""A namespace of a real API server with blastyards in it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from waiting_stage import PATIENCE, until

from blastyard.admission.ledger import Ledger, decode_ledger
from blastyard.bootstrap.cluster import open_cluster_gate
from blastyard.bootstrap.gate import OpenGate, this_process
from blastyard.kube import rbac
from blastyard.settings import caller_environment, read_settings
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_request import MERGE_PATCH
from blastyard.testing.forked_command import as_text, run_command
from blastyard.testing.plain_wire import Access
from blastyard.testing.proxy import FaultProxy

SCRIPT = """\
#!/bin/sh -e
id=$1
for app in submit finalizer; do
  {kubectl} create -f - <<Y
apiVersion: batch/v1
kind: Job
metadata: {{name: $app-$id, labels: {{app: $app, elb-job-id: $id}}}}
spec:
  suspend: true
  template:
    spec: {{restartPolicy: Never, containers: [{{name: none, image: localhost/none:1}}]}}
Y
done
"""


@dataclass(frozen=True)
class Installation:
    """A blastyard in this process."""

    opened: OpenGate


@dataclass
class Lab:
    """A namespace, and an account in it that has exactly the Role."""

    plane: ControlPlane
    namespace: str
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    _opened: list[OpenGate] = field(default_factory=list)

    def __post_init__(self) -> None:
        rules = [rbac.rule(each) for each in rbac.needed(self.namespace)]
        self.plane.create_account(self.namespace, "blastyard", rules)
        token = self.plane.token_for(self.namespace, "blastyard")
        path = self.plane.write_kubeconfig(self.folder / "kubeconfig", token, self.namespace)
        self.environment = {
            **caller_environment(),
            "KUBECONFIG": str(path),
            "BLAST_COORD_BACKEND": "k8s",
            "HOME": str(self.folder),
            "BLASTYARD_HOME": str(self.folder / "home"),
        }
        until(lambda: self.plane.requests(token).finds(self._leases))

    def submit_script(self) -> Path:
        """A submit command: it makes the submit Job, then the finalizer, under the id given."""
        path = self.folder / "submit"
        path.write_text(SCRIPT.format(kubectl=self.plane.kubectl))
        path.chmod(0o755)
        return path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A blastyard command, as a process."""
        return as_text(run_command(words, env=self.environment, timeout=PATIENCE))

    def through(self, proxy: FaultProxy) -> Path:
        """A kubeconfig of the same account that asks the proxy."""
        token = Access.read(Path(self.environment["KUBECONFIG"])).token
        return proxy.write_kubeconfig(self.folder / "through-proxy", token, self.namespace)

    def installation(self, kind: str = "exec") -> Installation:
        """A blastyard in this process that has signed on."""
        opened = open_cluster_gate(read_settings(self.environment), this_process(kind))
        self._opened.append(opened)
        return Installation(opened)

    def close(self) -> None:
        """Sign everybody off."""
        for opened in self._opened:
            opened.gate.retire()
            opened.documents.close()
            opened.instruments.close()

    def ledger(self) -> Ledger:
        """The ledger as it stands there."""
        name = rbac.ledger_name(self.namespace)
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{name}"
        return decode_ledger(self._get(path)["data"]["ledger"].encode())

    def holder(self) -> str:
        """Who is inside Gate A."""
        found = self._get(f"{self._leases}/{rbac.submit_lease_name(self.namespace)}")
        return str(found["spec"].get("holderIdentity") or "")

    def markers(self, search: str) -> set[tuple[str, str]]:
        """Kind and ``app`` of the markers that stand for a search."""
        return {
            (each["metadata"]["labels"]["blastyard/marker"], each["metadata"]["labels"]["app"])
            for each in self._get(self._jobs)["items"]
            if each["metadata"].get("annotations", {}).get("blastyard/id") == search
        }

    def finish(self, search: str) -> None:
        """Have every Job of a search complete, markers apart."""
        for each in self._get(self._jobs)["items"]:
            labels = each["metadata"]["labels"]
            if labels.get("elb-job-id") == search and "blastyard/marker" not in labels:
                self._complete(each)

    def _complete(self, job: dict[str, Any]) -> None:
        begun = datetime.fromisoformat(job["metadata"]["creationTimestamp"])
        done = {"type": "Complete", "status": "True"}
        status = {
            "startTime": begun.isoformat(),
            "completionTime": (begun + timedelta(seconds=1)).isoformat(),
            "succeeded": 1,
            "conditions": [done, {**done, "type": "SuccessCriteriaMet"}],
        }
        path = f"{self._jobs}/{job['metadata']['name']}/status"
        self.plane.admin.send("PATCH", path, {"status": status}, kind=MERGE_PATCH).expect(200)

    @property
    def _jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    @property
    def _leases(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    def _get(self, path: str) -> dict[str, Any]:
        return self.plane.admin.send("GET", path).expect(200)
