"""What carries an id in the namespace, and what that means. Pure.

A search is submitted completely when its finalizer stands beside what computes: the command makes
the finalizer last, and one that stands alone was made by a command that was killed before its first
BLAST Job, and would never end. Once a search *was* complete, a lone finalizer is one that gathers
results while what computed has been removed.

Only a terminal condition decides: ``failed: 1`` without one is a pod that is tried again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from blastyard.domain.errors import Failure
from blastyard.engine.command import Ending
from blastyard.engine.remote import Absent, AtWork, Broken, Over, Partial, Sighted

SEARCH_ID: Final = "elb-job-id"
FINALIZER: Final = "finalizer"
BLAST: Final = "blast"
COMPUTING: Final = frozenset({BLAST, "submit"})
"""One of these beside the finalizer makes a submission complete."""

_SHOWN: Final = 3


class End(StrEnum):
    """How a Job ended."""

    COMPLETE = "Complete"
    FAILED = "Failed"


class Condition(msgspec.Struct, frozen=True):
    """One thing that an object says of itself (``batch/v1``)."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    labels: dict[str, str] | None = None
    deletion_timestamp: datetime | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    completion_time: datetime | None = None
    succeeded: int | None = None
    conditions: list[Condition] | None = None


class Job(msgspec.Struct, frozen=True):
    """A Job as the API server tells it, without what nobody here looks at."""

    metadata: _Metadata
    status: _Status = _Status()

    @property
    def app(self) -> str:
        """Its part in the search: ``finalizer``, ``blast``, ``submit``, ``setup``."""
        return (self.metadata.labels or {}).get("app", "")

    @property
    def search(self) -> str:
        """The id that it carries."""
        return (self.metadata.labels or {}).get(SEARCH_ID, "")

    @property
    def is_leaving(self) -> bool:
        """Whether it is being deleted; then it does nothing any more."""
        return self.metadata.deletion_timestamp is not None

    @property
    def end(self) -> End | None:
        """How it ended; ``None`` while it has not."""
        said = {each.type for each in self.status.conditions or () if each.status == "True"}
        if End.FAILED in said:
            return End.FAILED
        done = self.status.succeeded or self.status.completion_time
        return End.COMPLETE if done or End.COMPLETE in said else None

    @property
    def reason(self) -> str:
        """Why it failed, in Kubernetes' own words."""
        for each in self.status.conditions or ():
            if each.type == End.FAILED and each.status == "True":
                return f"{each.reason}: {each.message}" if each.message else each.reason
        return ""


@dataclass(frozen=True, slots=True)
class Sight:
    """All Jobs that carry an id, markers of blastyard apart, as they were seen at one moment."""

    id: str
    jobs: tuple[Job, ...] = ()

    def of(self, *apps: str) -> tuple[Job, ...]:
        """Those of these parts that are not being deleted."""
        return tuple(job for job in self.jobs if job.app in apps and not job.is_leaving)


def judge(sight: Sight, *, was_complete: bool) -> Sighted:
    """What is seen means. ``was_complete``: this submission was complete at an earlier look."""
    if not sight.jobs:
        return Absent()
    finalizers, computing = sight.of(FINALIZER), sight.of(*COMPUTING)
    if not was_complete and not (finalizers and computing):
        return Partial(tuple(sorted(job.metadata.name for job in sight.jobs)))
    staying = tuple(job for job in sight.jobs if not job.is_leaving)
    if failed := [job for job in staying if job.end is End.FAILED]:
        return Broken(_failure(failed))
    if not staying:
        return Absent()
    blast = sight.of(BLAST)
    if all(job.end for job in (*finalizers, *computing) or staying):
        return Over(len(blast))
    return AtWork(sum(job.end is End.COMPLETE for job in blast), len(blast))


def _failure(failed: Iterable[Job]) -> Failure:
    """What is told of Jobs that failed, of those that compute first."""
    jobs = sorted(failed, key=lambda job: (job.app != BLAST, job.metadata.name))
    told = "; ".join(
        f"{job.metadata.name}" + (f" ({job.reason})" if job.reason else "") for job in jobs[:_SHOWN]
    )
    more = f" and {len(jobs) - _SHOWN} more" if len(jobs) > _SHOWN else ""
    blast = jobs[0].app == BLAST
    return Failure(
        "blast_failed" if blast else "submit_failed",
        f"In the cluster failed {told}{more}.",
        f"See `kubectl logs job/{jobs[0].metadata.name}`, and metadata/FAILURE.txt in the results "
        "location, for what it said.",
    )


def is_adoptable(sight: Sight, ending: Ending | None) -> bool:
    """Whether a submission that nobody saw come to its end may be taken for complete.

    ``ending`` is how its command ended; ``None`` when it cannot be told. One that was ended, or
    that failed, may have made its finalizer before the rest, whatever is seen.
    """
    ended_well = ending is None or (ending.by_itself and ending.exit_code == 0)
    return ended_well and not isinstance(judge(sight, was_complete=False), Absent | Partial)
