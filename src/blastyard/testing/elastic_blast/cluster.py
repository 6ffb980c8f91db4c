"""The objects of a search in the namespace: as the command makes them, and as they come to an end.

Names and labels are those of ElasticBLAST's templates: the label ``elb-job-id`` has the whole id,
names only its last eight characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from blastyard.testing.foreign.api import MERGE_PATCH, Api, Document
from blastyard.testing.foreign.count import is_terminal

JOBS: Final = "batch/v1/jobs"
CONFIGMAPS: Final = "core/v1/configmaps"
SCRIPTS: Final = "elb-scripts"
APPS: Final = ("setup", "submit", "blast", "finalizer")
MANAGED_BY: Final = "example.com/elastic-blast-stand-in"
"""No controller answers to it, so no pods are made and the status is the test's to write."""
MARKER: Final = "blastyard/marker"

_TTL_SECONDS: Final = 300


class Refused(Exception):
    """``kubectl apply`` fails."""


class SearchCluster:
    """The searches of one namespace."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def write_scripts(self, key: str) -> None:
        """The ConfigMap that all searches share; this is what the submit Lease protects."""
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": SCRIPTS},
            "data": {"written-for": key},
        }
        status, _ = self._api.ask("PUT", f"{CONFIGMAPS}/{SCRIPTS}", document)
        if status == 404:
            self._api.ask("POST", CONFIGMAPS, document)

    def make(self, key: str, app: str, number: int = 0) -> str:
        """One Job; its name. Raises :class:`Refused` where another search has that name."""
        name = job_name(key, app, number)
        status, found = self._api.ask("POST", JOBS, _job(key, app, name))
        if status == 409:
            _, other = self._api.ask("GET", f"{JOBS}/{name}")
            labels = other.get("metadata", {}).get("labels") or {}
            if labels.get("elb-job-id") == key:
                return name
            raise Refused(f'The Job "{name}" is invalid: spec.template: field is immutable')
        if status != 201:
            raise Refused(f"{name}: {found.get('message')}")
        return name

    def delete(self, key: str) -> int:
        """Delete all Jobs with that id, whoever made them; how many there were."""
        there = len(self.jobs(key))
        if there:
            query = {"labelSelector": f"elb-job-id={key}", "propagationPolicy": "Background"}
            self._api.ask("DELETE", JOBS, query=query)
        return there

    def jobs(self, key: str = "") -> list[Document]:
        """The Jobs of a search, or of all, markers of blastyard among them."""
        query = {"labelSelector": f"elb-job-id={key}" if key else "elb-job-id"}
        status, found = self._api.ask("GET", JOBS, query=query)
        if status != 200:
            raise Refused(str(found.get("message")))
        return list(found["items"])

    # -- what happens to them --------------------------------------------------------------------

    def searches(self) -> set[str]:
        """Ids of searches that have a Job that has not ended, markers apart."""
        return {
            job["metadata"]["labels"]["elb-job-id"]
            for job in _own(self.jobs())
            if not is_terminal(job)
        }

    def finish(self, key: str, *apps: str) -> None:
        """Jobs of these parts complete; without any, all, the finalizer last."""
        for app in apps or APPS:
            for job in _own(self.jobs(key)):
                if job["metadata"]["labels"]["app"] == app and not is_terminal(job):
                    self._end(job, "Complete", "SuccessCriteriaMet", "Test")

    def fail(self, key: str, app: str = "blast", reason: str = "BackoffLimitExceeded") -> None:
        """One Job of this part fails for good."""
        self._end(self._first(key, app), "Failed", "FailureTarget", reason)

    def fail_pod(self, key: str, app: str = "blast") -> None:
        """A pod of one Job of this part has failed, and is tried again."""
        self._patch(self._first(key, app), {"failed": 1, "active": 1})

    def _first(self, key: str, app: str) -> Document:
        return next(job for job in _own(self.jobs(key)) if job["metadata"]["labels"]["app"] == app)

    def _end(self, job: Document, end: str, before: str, reason: str) -> None:
        begun = job.get("status", {}).get("startTime") or job["metadata"]["creationTimestamp"]
        conditions = [
            {"type": kind, "status": "True", "reason": reason, "message": f"{reason}, as planned"}
            for kind in (before, end)
        ]
        done = {"succeeded": 1, "completionTime": begun} if end == "Complete" else {"failed": 1}
        counts = {"active": 0, "ready": 0, "terminating": 0}
        self._patch(job, {"startTime": begun, "conditions": conditions, **counts, **done})

    def _patch(self, job: Document, status: dict[str, Any]) -> None:
        name = job["metadata"]["name"]
        begun = job["metadata"]["creationTimestamp"]
        document = {"status": {"startTime": begun, **status}}
        code, found = self._api.ask("PATCH", f"{JOBS}/{name}/status", document, kind=MERGE_PATCH)
        if code not in (200, 404):
            raise Refused(f"the status of {name}: {found.get('message')}")


def job_name(key: str, app: str, number: int = 0) -> str:
    """What the command calls a Job of a search."""
    tail = key[-8:]
    names = {
        "setup": f"init-ssd-{tail}-0",
        "submit": f"submit-jobs-{tail}",
        "blast": f"blastn-batch-nt-job-{number:03d}-{tail}",
        "finalizer": f"elb-finalizer-{tail}",
    }
    return names[app]


def _own(jobs: Iterable[Document]) -> Iterator[Document]:
    return (job for job in jobs if MARKER not in job["metadata"]["labels"])


def _job(key: str, app: str, name: str) -> Document:
    labels = {"app": app, "elb-job-id": key}
    container = {"name": app, "image": "localhost/none:1", "command": ["/bin/true"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "managedBy": MANAGED_BY,
            "backoffLimit": 0 if app in ("finalizer", "submit") else 3,
            "ttlSecondsAfterFinished": _TTL_SECONDS,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }
