"""What stands in the namespace at one moment of a recording, as the rules look at it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from blastyard.testing.recorded.deed import DELETED, GAP, Change, Document

SEARCHES: Final = ("finalizer", "blast", "submit")


@dataclass(frozen=True, slots=True)
class LeaseSight:
    """The submit Lease. ``at`` is when the recorder saw its last change."""

    holder: str = ""
    renewed_at: float | None = None
    """Seconds since 1970, by the clock of who renewed it."""
    seconds: int | None = None
    at: float = 0.0
    since_version: int = 0
    """The version with which the present holder began."""


@dataclass(frozen=True, slots=True)
class LedgerSight:
    """The ledger, as plain documents."""

    uid: str
    fence: int
    ceiling: int
    holds: Mapping[str, Document]
    tickets: Mapping[str, Document]
    whole: bool

    def family(self, search: str) -> str:
        """Whose run slot the hold uses."""
        return self.holds[search]["ticket"].get("family") or search

    def families(self) -> set[str]:
        """The run slots that are claimed."""
        return {self.family(search) for search in self.holds}

    def searches(self) -> dict[str, str]:
        """Label of objects to the search that holds, where the ledger says so."""
        found = {hold.get("alias") or search: search for search, hold in self.holds.items()}
        return found | {search: search for search in self.holds}


@dataclass(frozen=True, slots=True)
class JobSight:
    """One Job."""

    name: str
    uid: str
    app: str
    id: str
    """Its ``elb-job-id``; empty when it has none."""
    live: bool
    succeeded: bool
    marker: bool
    version: int
    """The version it was made with."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Its annotations."""

    @property
    def slot(self) -> str:
        """The search it counts for, if nobody knows better."""
        if self.id:
            return self.id
        return f"uid:{self.uid}" if self.app == "finalizer" else "(unlabelled)"


@dataclass(slots=True)
class Scene:
    """The namespace. ``take`` brings it forward by one change."""

    namespace: str
    lease: LeaseSight = field(default_factory=LeaseSight)
    ledger: LedgerSight | None = None
    jobs: dict[str, JobSight] = field(default_factory=dict)
    """By uid; ended ones too, until they are deleted."""
    deserted: set[str] = field(default_factory=set)
    """Labels whose Jobs, the finalizer apart, were deleted before they had ended."""
    beats: dict[str, float] = field(default_factory=dict)
    """Submitter to when its Lease was last seen to change."""
    gaps: int = 0

    def take(self, change: Change) -> None:
        """Let it happen."""
        if change.what == GAP:
            self.gaps += 1
        elif change.kind == "Job":
            self._take_job(change)
        elif change.kind == "ConfigMap":
            if change.name == f"elb-blast-ledger-{self.namespace}":
                self.ledger = None if change.what == DELETED else ledger_sight(change.document)
        elif change.name == f"elb-blast-submit-{self.namespace}":
            self.lease = lease_sight(change, self.lease)
        else:
            self._take_beat(change)

    def _take_job(self, change: Change) -> None:
        uid = change.document["metadata"]["uid"]
        before = self.jobs.get(uid)
        if change.what == DELETED:
            gone = self.jobs.pop(uid, None)
            if gone and gone.live and not gone.marker and gone.app in ("blast", "submit"):
                self.deserted.add(gone.id)
            return
        self.jobs[uid] = job_sight(change, before.version if before else change.version)
        if before is None and self.jobs[uid].app in ("blast", "submit"):
            self.deserted.discard(self.jobs[uid].id)

    def _take_beat(self, change: Change) -> None:
        holder = (change.document.get("spec") or {}).get("holderIdentity")
        if holder and change.what == DELETED:
            self.beats.pop(holder, None)
        elif holder:
            self.beats[holder] = change.at

    def live(self) -> list[JobSight]:
        """The Jobs of searches that run, markers and phantoms apart."""
        return [
            job
            for job in self.jobs.values()
            if job.live
            and not job.marker
            and job.app in SEARCHES
            and not (job.app == "finalizer" and job.id in self.deserted)
        ]


def lease_sight(change: Change, before: LeaseSight) -> LeaseSight:
    """The Lease after a change; free when it was deleted."""
    spec = {} if change.what == DELETED else change.document.get("spec") or {}
    holder = spec.get("holderIdentity") or ""
    since = before.since_version if holder == before.holder else change.version
    return LeaseSight(
        holder, _seconds(spec.get("renewTime")), spec.get("leaseDurationSeconds"), change.at, since
    )


def _seconds(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        return None


def ledger_sight(document: Document) -> LedgerSight | None:
    """The ledger in its ConfigMap; ``None`` where none can be read."""
    try:
        found: dict[str, Any] = json.loads(document["data"]["ledger"])
        return LedgerSight(
            found["uid"],
            found["fence"],
            found["policy"].get("ceiling", 3),
            found.get("holds", {}),
            found.get("tickets", {}),
            found.get("restored") is None,
        )
    except (KeyError, TypeError, ValueError):
        return None


def job_sight(change: Change, version: int) -> JobSight:
    """A Job after a change."""
    metadata, status = change.document["metadata"], change.document.get("status") or {}
    labels = metadata.get("labels") or {}
    conditions = {
        condition["type"]
        for condition in status.get("conditions") or ()
        if condition.get("status") == "True"
    }
    succeeded = (status.get("succeeded") or 0) > 0 or "Complete" in conditions
    ended = succeeded or "Failed" in conditions or bool(status.get("completionTime"))
    return JobSight(
        metadata["name"],
        metadata["uid"],
        labels.get("app", ""),
        labels.get("elb-job-id", ""),
        not ended,
        succeeded,
        "blastyard/marker" in labels,
        version,
        metadata.get("annotations") or {},
    )
