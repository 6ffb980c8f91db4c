"""Jobs of searches as they are watched: what is needed of each, and no more.

A namespace may have thousands of finished Jobs. Those that succeeded are not kept, nor listed; what
is kept of the others is what a census reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Final

import msgspec

from blastyard.admission.census import FINALIZER, SeenJob
from blastyard.admission.kubernetes.marker_job import MARKER, SEARCH_ID, read
from blastyard.kube.client import Listing

SEARCHES: Final = "app in (finalizer,blast,submit)"
"""Label selector of the Jobs that every submitter counts by."""
UNSUCCESSFUL: Final = "status.successful=0"
"""Field selector that leaves out what has succeeded."""

_OURS: Final = "blastyard/"


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str
    creation_timestamp: datetime
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    active_deadline_seconds: int | None = None


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    start_time: datetime | None = None
    completion_time: datetime | None = None
    succeeded: int | None = None
    conditions: list[_Condition] | None = None


class Job(msgspec.Struct, frozen=True):
    """A Job as the API server tells it, without what nobody here looks at."""

    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


@dataclass(frozen=True, slots=True)
class JobSight:
    """A Job as it was seen last. Equal sights differ in nothing that matters to anybody here."""

    counted: SeenJob
    """As a census takes it. One that is being deleted is still there until it is gone."""
    is_being_deleted: bool
    annotations: Mapping[str, str]
    """Those of blastyard."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.counted.name

    @property
    def uid(self) -> str:
        """What tells it from others of its name."""
        return self.counted.uid

    @property
    def app(self) -> str:
        """Its part in a search."""
        return self.counted.app

    @property
    def search(self) -> str | None:
        """Its ``elb-job-id``."""
        return self.counted.search

    @property
    def labels(self) -> Mapping[str, str]:
        """All of them."""
        return self.counted.labels

    @property
    def has_ended(self) -> bool:
        """A terminal condition, a completion time, or something succeeded."""
        return not self.counted.is_live


def sight(job: Job) -> JobSight:
    """What is kept of a Job."""
    metadata, status = job.metadata, job.status
    labels = metadata.labels or {}
    annotations = metadata.annotations or {}
    ours = {key: text for key, text in annotations.items() if key.startswith(_OURS)}
    seen = SeenJob(
        metadata.name,
        metadata.uid,
        labels.get("app", ""),
        labels.get(SEARCH_ID) or None,
        metadata.creation_timestamp,
        not _has_ended(status),
        read(labels, ours),
        status.start_time,
        job.spec.active_deadline_seconds,
        labels,
    )
    return JobSight(seen, metadata.deletion_timestamp is not None, ours)


def _has_ended(status: _Status) -> bool:
    if status.succeeded or status.completion_time is not None:
        return True
    ends = ("Complete", "Failed")
    return any(each.type in ends and each.status == "True" for each in status.conditions or ())


class JobSights:
    """The Jobs of the namespace that have not succeeded, as they were seen last. Thread-safe.

    ``ring`` is called when one came, ended, or went; ``deserted`` with each that was deleted before
    it had ended, as far as that was seen to happen; ``appeared`` with each new one of a search that
    is no marker, its resourceVersion, and when it was seen.
    """

    def __init__(
        self,
        ring: Callable[[], None],
        deserted: Callable[[JobSight], None] = lambda _: None,
        appeared: Callable[[JobSight, str, float], None] = lambda *_: None,
    ) -> None:
        self._ring = ring
        self._deserted = deserted
        self._appeared = appeared
        self._lock = Lock()
        self._jobs: dict[str, JobSight] = {}
        self._finished = _Lately()
        self._deserters = _Lately()
        self._changes = 0

    @property
    def changes(self) -> int:
        """Grows with all that is heard."""
        with self._lock:
            return self._changes

    @property
    def finished(self) -> frozenset[str]:
        """Ids of searches whose finalizer was seen to have ended, the latest of them."""
        with self._lock:
            return self._finished.names()

    @property
    def deserted(self) -> frozenset[str]:
        """Ids of searches of which other Jobs were seen to be deleted before they had ended."""
        with self._lock:
            return self._deserters.names()

    def all(self) -> list[JobSight]:
        """What there is."""
        with self._lock:
            return list(self._jobs.values())

    def listed(self, listing: Listing[Job]) -> None:
        """Take in all there is. What is missing may have succeeded, so nobody is told why."""
        found = {job.metadata.uid: sight(job) for job in listing.items}
        with self._lock:
            self._changes += 1
            news = self._jobs != found
            self._jobs = found
        if news:
            self._ring()

    def changed(self, item: Job, at: float) -> None:
        """Take in a Job that was made or changed."""
        seen = sight(item)
        with self._lock:
            self._changes += 1
            before = self._jobs.get(seen.uid)
            if _is_finalizer(seen) and seen.has_ended:
                self._finished.add(seen.search)
            if item.status.succeeded:
                self._jobs.pop(seen.uid, None)
                news = before is not None
            else:
                self._jobs[seen.uid] = seen
                news = before != seen
                if _is_companion(seen) and not seen.has_ended:
                    self._deserters.discard(seen.search)
        if before is None and seen.search and not _is_marker(seen):
            self._appeared(seen, item.metadata.resource_version, at)
        if news:
            self._ring()

    def _has_companion(self, search: str | None) -> bool:
        return any(
            job.search == search and _is_companion(job) and not job.has_ended
            for job in self._jobs.values()
        )

    def gone(self, item: Job, version: str, at: float) -> None:  # noqa: ARG002
        """Take in that a Job was deleted."""
        seen = sight(item)
        with self._lock:
            self._changes += 1
            before = self._jobs.pop(seen.uid, None)
            if not seen.has_ended and _is_companion(seen) and not self._has_companion(seen.search):
                self._deserters.add(seen.search)
        if not seen.has_ended:
            self._deserted(seen)
        if before is not None:
            self._ring()


def _is_marker(seen: JobSight) -> bool:
    return MARKER in seen.labels


def _is_companion(seen: JobSight) -> bool:
    return seen.app != FINALIZER and not _is_marker(seen)


def _is_finalizer(seen: JobSight) -> bool:
    return seen.app == FINALIZER and not _is_marker(seen)


class _Lately:
    """The names that were added last."""

    _MOST = 5000

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    def add(self, name: str | None) -> None:
        if name is not None:
            self._names.pop(name, None)
            self._names[name] = None
            while len(self._names) > self._MOST:
                del self._names[next(iter(self._names))]

    def discard(self, name: str | None) -> None:
        if name is not None:
            self._names.pop(name, None)

    def names(self) -> frozenset[str]:
        return frozenset(self._names)
