"""What a foreign submit command does in the namespace: objects in order, their end, a cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from blastyard.testing.foreign.api import MERGE_PATCH, Api, Document, Unanswered
from blastyard.testing.foreign.count import is_terminal
from blastyard.testing.foreign.lease import stamp

JOBS: Final = "batch/v1/jobs"
SCRIPTS: Final = "elb-scripts"
DEPENDENCY: Final = 7
MANAGED_BY: Final = "example.com/foreign-submitter"
"""No controller answers to it, so no pods are made and the status is ours to write."""


class CommandFailed(Exception):
    """The command ends with that exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Order:
    """One search as its command knows it; without a label when the original command runs it."""

    id: str
    blast_jobs: int
    labels: bool = True

    @property
    def tail(self) -> str:
        """What object names are made of."""
        return self.id[-8:]

    @property
    def names(self) -> Mapping[str, str]:
        """Its Jobs: name to app, in the order in which they are made; the finalizer apart."""
        if not self.labels:
            blast = {f"blast-batch-{number:03d}": "blast" for number in range(self.blast_jobs)}
            return {"init-pv": "setup", **blast}
        blast = {f"blast-{self.tail}-{number:03d}": "blast" for number in range(self.blast_jobs)}
        return {f"submit-{self.tail}": "submit", **blast}

    @property
    def finalizer(self) -> str:
        """The Job that marks the search; empty when there is none."""
        return f"elb-finalizer-{self.tail}" if self.labels else ""


class Command:
    """The commands of one program in one namespace. ``now`` is the true time."""

    def __init__(self, api: Api, now: Callable[[], float], wait: Callable[[float], None]) -> None:
        self._api = api
        self._now = now
        self._wait = wait

    def submit(self, order: Order, finalizer_delay: float) -> None:
        """The scripts, the Jobs, and some time later the finalizer.

        Raises :class:`CommandFailed` where a name is taken; what was made by then stays, except
        that the original command takes the setup Job away, whoever made it.
        """
        self.begin(order)
        if order.finalizer:
            self._wait(finalizer_delay)
            self._create(order, order.finalizer, "finalizer")

    def begin(self, order: Order) -> None:
        """Everything but the finalizer. Raises as :meth:`submit` does."""
        self._write_scripts(order)
        for name, app in order.names.items():
            self._create(order, name, app)

    def _write_scripts(self, order: Order) -> None:
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": SCRIPTS},
            "data": {"written-for": order.id},
        }
        status, _ = self._api.ask("PUT", f"core/v1/configmaps/{SCRIPTS}", document)
        if status == 404:
            self._api.ask("POST", "core/v1/configmaps", document)

    def _create(self, order: Order, name: str, app: str) -> None:
        status, found = self._api.ask("POST", JOBS, _job(order, name, app))
        if status == 201:
            return
        if status == 409 and self._is_ours(order, name):
            return  # an answer was lost
        if not order.labels:
            self._delete("app=setup")
        raise CommandFailed(DEPENDENCY, f"{name}: HTTP {status} {found.get('message')}")

    def _is_ours(self, order: Order, name: str) -> bool:
        status, found = self._api.ask("GET", f"{JOBS}/{name}")
        notes = found.get("metadata", {}).get("annotations") or {}
        return status == 200 and notes.get("foreign/search") == order.id

    def end_jobs(self, order: Order) -> None:
        """The submit and blast Jobs complete."""
        for name in order.names:
            self._complete(name)

    def end_finalizer(self, order: Order) -> None:
        """The finalizer completes: the search has ended for everybody who counts."""
        if order.finalizer:
            self._complete(order.finalizer)

    def cancel(self, order: Order) -> None:
        """Delete what computes. The finalizer is left, and goes on for ever."""
        self._delete(f"app in (blast,submit),elb-job-id={order.id}")

    def _delete(self, selector: str) -> None:
        query = {"labelSelector": selector, "propagationPolicy": "Background"}
        self._api.ask("DELETE", JOBS, query=query)

    def _complete(self, name: str) -> None:
        status, job = self._api.ask("GET", f"{JOBS}/{name}")
        if status == 404 or (status == 200 and is_terminal(job)):
            return
        now = stamp(self._now())[:19] + "Z"
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        ended: dict[str, Any] = {
            "startTime": job.get("status", {}).get("startTime", now),
            "completionTime": now,
            "succeeded": 1,
            "active": 0,
            "ready": 0,
            "terminating": 0,
            "conditions": conditions,
        }
        status, found = self._api.ask(
            "PATCH", f"{JOBS}/{name}/status", {"status": ended}, kind=MERGE_PATCH
        )
        if status not in (200, 404):
            raise Unanswered(f"the end of {name}: HTTP {status} {found.get('message')}")


def _job(order: Order, name: str, app: str) -> Document:
    labels = {"app": app}
    if order.labels:
        labels["elb-job-id"] = order.id
    container = {"name": app, "image": "localhost/none:1", "command": ["/bin/true"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": {"foreign/search": order.id}},
        "spec": {
            "managedBy": MANAGED_BY,
            "ttlSecondsAfterFinished": 300,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }
