"""The controllers that act on Jobs: they begin, end, overrun their deadline, and are removed.

There are no pods: a Job that runs has as many active ones as it may, and none is ever ready. A Job
with ``spec.managedBy`` is left alone, and a suspended one does not begin, as in the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from blastyard.testing.memory_api.job_status import (
    COMPLETE,
    FAILED,
    MET,
    SUSPENDED,
    TARGET,
    is_finished,
    is_true,
)
from blastyard.testing.memory_api.kind import JOB, Json, Kind, Place
from blastyard.testing.memory_api.moment import read_whole, whole
from blastyard.testing.memory_api.objects import Objects
from blastyard.testing.memory_api.ownership import Writer, owners_after
from blastyard.testing.memory_api.storage import Record

_CONTROLLER: Final = Writer("kube-controller-manager", "status")
_OURS: Final = "kubernetes.io/job-controller"


class JobController:
    """Acts on the Jobs of some objects. Whoever uses it holds their lock."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def created(self, kind: Kind, record: Record | None) -> None:
        """Act on what was just created, as the controllers do within milliseconds."""
        if kind is JOB and record is not None:
            self._begin(record)

    def complete(self, namespace: str, name: str) -> None:
        """Let a Job end well, whoever manages it. Raises ``KeyError``."""
        record = self._objects.storage.of(JOB, namespace)[name]
        spec = record.document["spec"]
        status = self._ended(record.document)
        status["completionTime"] = whole(self._objects.now())
        status["succeeded"] = spec.get("completions", 1)
        reason = "CompletionsReached"
        status["conditions"] = self._conditions(status, (MET, COMPLETE), reason)
        self._write(record, status)

    def fail(self, namespace: str, name: str, reason: str) -> None:
        """Let a Job fail, whoever manages it. Raises ``KeyError``."""
        record = self._objects.storage.of(JOB, namespace)[name]
        status = self._ended(record.document)
        if reason != "DeadlineExceeded":
            status["failed"] = status.get("failed", 0) + 1
        status["conditions"] = self._conditions(status, (TARGET, FAILED), reason)
        self._write(record, status)

    def tick(self) -> None:
        """Do what is due now."""
        now = self._objects.now()
        # the deadline first: a Job that is resumed after it has failed before it can begin anew
        for record in list(self._jobs()):
            due = _deadline(record.document)
            metadata = record.document["metadata"]
            if due is not None and due <= now:
                self.fail(metadata["namespace"], metadata["name"], "DeadlineExceeded")
        for record in list(self._jobs()):
            self._begin(record)
        for record in list(self._jobs()):
            due = _removal(record.document)
            metadata = record.document["metadata"]
            if due is not None and due <= now:
                at = Place(JOB, metadata["namespace"], metadata["name"], "")
                self._objects.delete(at, {"propagationPolicy": "Foreground"})

    def next_due(self) -> datetime | None:
        """When something will be due, if nobody changes anything."""
        dues = (
            due
            for record in self._jobs()
            for due in (_deadline(record.document), _removal(record.document))
            if due is not None
        )
        return min(dues, default=None)

    def _jobs(self) -> Iterator[Record]:
        for (kind, _), records in self._objects.storage.objects.items():
            if kind is JOB:
                yield from records.values()

    def _begin(self, record: Record) -> None:
        spec, status = record.document["spec"], record.document["status"]
        if spec.get("managedBy", _OURS) != _OURS or is_finished(status):
            return
        if "deletionTimestamp" in record.document["metadata"]:
            return
        suspended = spec.get("suspend", False)
        if suspended and not is_true(status, SUSPENDED):
            after = {key: one for key, one in status.items() if key != "active"}
            after |= {"terminating": 0, "uncountedTerminatedPods": {}, "ready": 0}
            after["conditions"] = self._condition(status, SUSPENDED, "True", "JobSuspended")
            self._write(record, after)
        elif not suspended and ("startTime" not in status or is_true(status, SUSPENDED)):
            after = {**status, "startTime": whole(self._objects.now())}
            after |= {"terminating": 0, "uncountedTerminatedPods": {}, "ready": 0}
            active = min(spec["parallelism"], spec.get("completions", spec["parallelism"]))
            if active:
                after["active"] = active
            if is_true(status, SUSPENDED):
                after["conditions"] = self._condition(status, SUSPENDED, "False", "JobResumed")
            self._write(record, after)

    def _ended(self, document: Json) -> Json:
        status = {key: one for key, one in document["status"].items() if key != "active"}
        status.setdefault("startTime", whole(self._objects.now()))
        return status | {"terminating": 0, "uncountedTerminatedPods": {}, "ready": 0}

    def _conditions(self, status: Json, kinds: tuple[str, ...], reason: str) -> list[Json]:
        found: list[Json] = list(status.get("conditions", ()))
        for kind in kinds:
            found = self._condition({"conditions": found}, kind, "True", reason)
        return found

    def _condition(self, status: Json, kind: str, value: str, reason: str) -> list[Json]:
        time = whole(self._objects.now())
        others = [one for one in status.get("conditions", ()) if one["type"] != kind]
        new = {
            "type": kind,
            "status": value,
            "lastProbeTime": time,
            "lastTransitionTime": time,
            "reason": reason,
        }
        return [*others, new]

    def _write(self, record: Record, status: Json) -> None:
        document = {**record.document, "status": status}
        time = whole(self._objects.now())
        owners = owners_after(record.owners, (record.document, document), _CONTROLLER, time)
        self._objects.store(JOB, record, document, owners)


def _deadline(document: Json) -> datetime | None:
    """When a Job that runs has run for too long; suspended, it keeps its start but runs not."""
    spec, status = document["spec"], document["status"]
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is None or "startTime" not in status or is_finished(status):
        return None
    if spec.get("suspend") or spec.get("managedBy", _OURS) != _OURS:
        return None
    return read_whole(status["startTime"]) + timedelta(seconds=seconds)


def _removal(document: Json) -> datetime | None:
    """When a Job that has ended is to be removed."""
    seconds = document["spec"].get("ttlSecondsAfterFinished")
    if seconds is None or "deletionTimestamp" in document["metadata"]:
        return None
    ended = [
        one["lastTransitionTime"]
        for one in document["status"].get("conditions", ())
        if one["type"] in (COMPLETE, FAILED)
        and one["status"] == "True"
        and one["lastTransitionTime"]
    ]
    return read_whole(ended[0]) + timedelta(seconds=seconds) if ended else None
