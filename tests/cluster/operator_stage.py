"""`blastyard gate` as an operator has it: real processes, a kubeconfig, a namespace with things in
it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from waiting_stage import CLOCK, PATIENCE

from blastyard.admission.ledger import Hold, HoldState, Ledger, Policy, Submitter, Ticket, encode
from blastyard.admission.port import ABSENT, LEDGER, SUBMITTER
from blastyard.settings import caller_environment
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_request import MERGE_PATCH
from blastyard.testing.forked_command import as_text, run_command

BLASTYARD: Final = [sys.executable, "-m", "blastyard"]
LONG_AGO: Final = timedelta(hours=3)


@dataclass(frozen=True)
class Operator:
    """Somebody with a kubeconfig and no data directory."""

    environment: Mapping[str, str]
    home: Path

    @classmethod
    def with_kubeconfig(cls, kubeconfig: Path, folder: Path, **more: str) -> Operator:
        home = folder / "no-such-home"
        environment = {
            "PATH": caller_environment()["PATH"],
            "HOME": str(folder),
            "KUBECONFIG": str(kubeconfig),
            "BLAST_COORD_BACKEND": "k8s",
            "BLASTYARD_HOME": str(home),
            "BLASTYARD_USER": "olga",
            **more,
        }
        return cls(environment, home)

    def on(self, **more: str) -> Operator:
        return replace(self, environment={**self.environment, **more})

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return as_text(run_command(["gate", *words], env=self.environment, timeout=PATIENCE))

    def json(self, *words: str) -> Any:
        done = self(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def error(self, *words: str) -> tuple[int, str, str]:
        """Exit code, error code, and all that was said, of a command that fails."""
        done = self(*words, "--json")
        code = json.loads(done.stdout)["error"]["code"]
        return done.returncode, code, done.stderr

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*BLASTYARD, "gate", *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


# -- what stands in the documents ------------------------------------------------------------------


def now() -> datetime:
    return CLOCK.now()


def ticket(sequence: int, user: str = "ada", submitter: str = "serve-1") -> Ticket:
    return Ticket(submitter, user, 1, sequence, now())


def hold(fence: int, **more: Any) -> Hold:
    given = {"state": HoldState.SUBMITTED, "since": now(), "submitter": "serve-1", **more}
    user = given.pop("user", "ada")
    return Hold(ticket(fence, user), attempt=1, fence=fence, **given)


def ledger(**more: Any) -> Ledger:
    policy = Policy(ceiling=more.pop("ceiling", 3))
    return Ledger(uid="uid-1", policy=policy, fence=100, sequence=100, **more)


def write(store: Any, document: Ledger | bytes) -> None:
    """Have this ledger in the namespace."""
    body = document if isinstance(document, bytes) else encode(document)
    version = store.read(LEDGER).version
    assert store.swap(LEDGER, version, body) is not None


def sign_on(store: Any, name: str, policy: Policy | None = None) -> None:
    """Have a submitter of another machine that gave its sign of life just now."""
    me = Submitter(name, "serve", 0, f"serve of somebody ({name})", "another boot", policy=policy)
    assert store.swap(SUBMITTER + name, ABSENT, encode(me)) is not None


# -- what runs -------------------------------------------------------------------------------------


def jobs(plane: ControlPlane, namespace: str, search: str | None, *apps: str) -> None:
    """Have Jobs of a search running: suspended, so that nothing becomes of them."""
    for app in apps:
        labels = {"app": app, "team": "lab-7"}
        if search is not None:
            labels["elb-job-id"] = search
        plane.admin.send("POST", _jobs(namespace), _job(f"{app}-{search or 'x'}", labels)).expect(
            201
        )


def finish(plane: ControlPlane, namespace: str, search: str, lasted: timedelta) -> None:
    """Have a finalizer that was made now and is complete after ``lasted``."""
    labels = {"app": "finalizer", "elb-job-id": search}
    new = _job(f"finalizer-{search}", labels)
    made = plane.admin.send("POST", _jobs(namespace), new).expect(201)
    begun = datetime.fromisoformat(made["metadata"]["creationTimestamp"])
    ended = {"type": "Complete", "status": "True"}
    status = {
        "startTime": begun.isoformat(),
        "completionTime": (begun + lasted).isoformat(),
        "succeeded": 1,
        "conditions": [ended, {**ended, "type": "SuccessCriteriaMet"}],
    }
    path = f"{_jobs(namespace)}/finalizer-{search}/status"
    plane.admin.send("PATCH", path, {"status": status}, kind=MERGE_PATCH).expect(200)


def lease(plane: ControlPlane, namespace: str, **spec: Any) -> None:
    """Have the submit lease say this."""
    document = {"metadata": {"name": f"elb-blast-submit-{namespace}"}, "spec": spec}
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    plane.admin.send("POST", path, document).expect(201)


def _jobs(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def _job(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    container = {"name": "none", "image": "localhost/none:1"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"suspend": True, "template": {"spec": pod}},
    }
