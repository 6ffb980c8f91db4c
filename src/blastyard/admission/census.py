"""What runs, whoever started it: the union of the ledger's holds and what was observed. Pure.

Counting is by identity. A search that has a hold and is also seen running counts once; one that is
seen without a hold counts too; one whose hold nobody can see yet counts as well.

On a cluster the observation is a list of Jobs (:class:`SeenJob`). Markers, the Jobs by which
blastyards make other programs count their searches, are known as such and not counted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from blastyard.admission.ledger import Hold, HoldState, Ledger, families, family
from blastyard.admission.timing import Timings

FINALIZER: Final = "finalizer"
APART: Final = timedelta(seconds=2)
"""How far the clocks of two readers of one store may lie apart."""
KEPT_LONE: Final = 200
"""So many lone finalizers are remembered, so that the ledger stays small; more of them count."""
UNLABELLED: Final = "(unlabelled)"
"""The search that all Jobs without an id are taken for: its command runs one in a namespace."""


class MarkerKind(StrEnum):
    """Why a marker is there."""

    STAND_IN = "stand-in"
    """Two Jobs under an id of their own, for a search that peers cannot see yet, or never."""
    COMPANION = "companion"
    """One Job under the search's id, without which peers stop counting after a while."""


@dataclass(frozen=True, slots=True)
class Marker:
    """What a marker says of the hold it was made for."""

    kind: MarkerKind
    search: str
    user: str = ""
    submitter: str = ""
    level: int = 1
    attempt: int = 1
    family: str | None = None
    alias: str | None = None
    watched: bool = False


@dataclass(frozen=True, slots=True)
class SeenJob:
    """A Job of a search, as a list showed it."""

    name: str
    uid: str
    app: str
    """``finalizer``, ``blast`` or ``submit``."""
    search: str | None
    """Its ``elb-job-id``."""
    created_at: datetime
    is_live: bool
    """No terminal condition, no completion time, nothing succeeded."""
    marker: Marker | None = None
    started_at: datetime | None = None
    deadline_seconds: int | None = None
    """How long after its start it ends by itself."""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def deadline_at(self) -> datetime | None:
        """When it ends by itself."""
        if self.started_at is None or self.deadline_seconds is None:
            return None
        return self.started_at + timedelta(seconds=self.deadline_seconds)


@dataclass(frozen=True, slots=True)
class Sighting:
    """A search observed running."""

    name: str
    finalizer: bool
    """Its finalizer lives; there is one from the end of a complete submission on."""
    companions: bool
    """Other Jobs of it live, markers apart."""
    since: datetime
    labels: Mapping[str, str]
    finalizers: tuple[str, ...] = ()
    """The names of its live finalizers."""


@dataclass(frozen=True, slots=True)
class Census:
    """The searches observed running, by id. Only a fresh and complete observation becomes one."""

    families: frozenset[str] = frozenset()
    sightings: Mapping[str, Sighting] = field(default_factory=dict)
    markers: tuple[SeenJob, ...] = ()
    """Live markers."""
    finished: frozenset[str] = frozenset()
    """Searches whose finalizer was seen to have ended; one that is not seen at all may be late."""
    deserted: frozenset[str] = frozenset()
    """Searches whose other Jobs were seen to be deleted before they had finished."""

    def has_finalizer(self, name: str) -> bool:
        """Whether the finalizer of this search is seen alive."""
        seen = self.sightings.get(name)
        return seen is not None and seen.finalizer


class CensusReader(Protocol):
    """Observes what runs. Raises ``Unavailable`` rather than answer in part."""

    def read(self, *, urgent: bool = False) -> Census:
        """A fresh and complete census. ``urgent``: others cannot go on until it is there."""
        ...

    def glance(self) -> Census:
        """The census as it was lately: for deciding whether asking is worthwhile."""
        ...

    def later(self, census: Census) -> Census:
        """A census read before, with what was seen to end since then. Nothing is asked."""
        ...

    def finished(self, names: Iterable[str]) -> frozenset[str]:
        """Which of these searches have a finalizer that has ended. Fresh."""
        ...


class NothingForeign:
    """The census of a machine where everything passes through the ledger."""

    def read(self, *, urgent: bool = False) -> Census:  # noqa: ARG002
        return Census()

    def glance(self) -> Census:
        return Census()

    def later(self, census: Census) -> Census:
        return census

    def finished(self, names: Iterable[str]) -> frozenset[str]:  # noqa: ARG002
        return frozenset()


def take(jobs: Iterable[SeenJob]) -> Census:
    """Make a census of the Jobs in one complete list."""
    live: dict[str, list[SeenJob]] = {}
    markers: list[SeenJob] = []
    ended: set[str] = set()
    for job in jobs:
        if not job.is_live:
            if job.app == FINALIZER and job.search and job.marker is None:
                ended.add(job.search)
        elif job.marker is not None:
            markers.append(job)
        else:
            live.setdefault(_identity(job), []).append(job)
    sightings = {name: _sighting(name, found) for name, found in live.items()}
    return Census(
        frozenset(sightings), sightings, tuple(markers), frozenset(ended - sightings.keys())
    )


def _identity(job: SeenJob) -> str:
    """Finalizers without a label count one each; all else without a label is one search."""
    if job.search:
        return job.search
    return job.uid if job.app == FINALIZER else UNLABELLED


def _sighting(name: str, jobs: list[SeenJob]) -> Sighting:
    first = min(jobs, key=lambda job: (job.app != FINALIZER, job.created_at))
    return Sighting(
        name,
        finalizer=any(job.app == FINALIZER for job in jobs),
        companions=any(job.app != FINALIZER for job in jobs),
        since=min(job.created_at for job in jobs),
        labels=first.labels,
        finalizers=tuple(job.name for job in jobs if job.app == FINALIZER),
    )


def slot_names(holds: Mapping[str, Hold]) -> dict[str, str]:
    """Under which ids the searches of these holds are seen, and whose run slot each uses."""
    return {hold.alias or search: family(search, hold) for search, hold in holds.items()} | {
        search: family(search, hold) for search, hold in holds.items()
    }


def uncovered(holds: Mapping[str, Hold], census: Census) -> frozenset[str]:
    """The run slots of searches that are seen without a hold."""
    slots = slot_names(holds)
    seen = frozenset(slots.get(name, name) for name in census.families)
    return seen - families(holds)


def occupied(holds: Mapping[str, Hold], census: Census) -> frozenset[str]:
    """The run slots in use, each named by its family."""
    return families(holds) | uncovered(holds, census)


def room(ledger: Ledger, census: Census) -> int:
    """How many more searches may start; 0 also when more run than the ceiling allows."""
    return max(0, ledger.policy.ceiling - len(occupied(ledger.holds, census)))


def room_to_resume(ledger: Ledger, census: Census, search_id: str) -> bool:
    """Whether a reserved hold may still be submitted, counted anew.

    While it was reserved and nothing of it ran, somebody else may have started, or the ceiling may
    have been lowered: it gives way to everything that runs, to all older reservations, and to
    everything seen that no hold covers.
    """
    hold = ledger.holds[search_id]
    before = {
        name: other
        for name, other in ledger.holds.items()
        if name != search_id and (other.state is HoldState.SUBMITTED or other.fence < hold.fence)
    }
    others = (families(before) | uncovered(ledger.holds, census)) - {family(search_id, hold)}
    return 1 + len(others) <= ledger.policy.ceiling


# -- finalizers that nothing stands behind -------------------------------------------------------


def is_lone(ledger: Ledger, sighting: Sighting) -> bool:
    """Whether it is a finalizer that nothing else of its search is seen with, and no hold covers.

    It may be merging for hours, or be what a failed submission or a cancellation left.
    """
    covered = sighting.name in slot_names(ledger.holds)
    return sighting.finalizer and not sighting.companions and not covered


def phantoms(ledger: Ledger, census: Census, now: datetime, timings: Timings) -> frozenset[str]:
    """The searches that are not counted: their finalizer has been alone for hours, its companions
    were seen to be deleted unfinished, or an operator said so."""
    return frozenset(
        name
        for name, since in ledger.lone.items()
        if now - since >= timings.forgotten
        and name in census.sightings
        and is_lone(ledger, census.sightings[name])
    )


def counted(ledger: Ledger, census: Census, now: datetime, timings: Timings) -> Census:
    """The census without phantoms: what a run slot is refused for."""
    gone = phantoms(ledger, census, now, timings)
    return replace(census, families=census.families - gone) if gone else census


def lone_since(
    ledger: Ledger, census: Census, now: datetime, timings: Timings
) -> dict[str, datetime]:
    """Which finalizers are alone, and since when, brought up to date."""
    long_ago = _long_ago(now, timings)
    found: dict[str, datetime] = {}
    for name, seen in census.sightings.items():
        if is_lone(ledger, seen):
            known = ledger.lone.get(name, now)
            found[name] = min(known, long_ago) if name in census.deserted else known
    oldest = sorted(found.items(), key=lambda entry: (entry[1], entry[0]))
    return dict(oldest[:KEPT_LONE])


def _long_ago(now: datetime, timings: Timings) -> datetime:
    """Since when a finalizer is alone that is a phantom from now on, for every reader."""
    return now - timings.forgotten - APART


def noted(ledger: Ledger, census: Census, now: datetime, timings: Timings) -> Ledger:
    """The ledger that remembers who is alone; the same one when nothing has to be remembered."""
    lone = lone_since(ledger, census, now, timings)
    return ledger if lone == ledger.lone else msgspec.structs.replace(ledger, lone=lone)


def forget(ledger: Ledger, name: str, now: datetime, timings: Timings) -> Ledger | None:
    """An operator knows that nothing stands behind this finalizer: it counts no more."""
    long_ago = _long_ago(now, timings)
    if name not in ledger.lone or ledger.lone[name] <= long_ago:
        return None
    return msgspec.structs.replace(ledger, lone={**ledger.lone, name: long_ago})
