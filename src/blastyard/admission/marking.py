"""Which markers must stand, and which must not, so that peers count what we hold. Pure.

Peers count finalizers that have a companion. While a search of ours has none yet (its command has
still to make it), or never has one (it runs on a machine of its own), a *stand-in* is up for it;
once its finalizer is there, a *companion* under its own id keeps peers from taking that for a
phantom. See ``peers.md``'s census and the protocol's object list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from blastyard.admission.census import FINALIZER, UNLABELLED, Census, Marker, MarkerKind, SeenJob
from blastyard.admission.ledger import Hold, HoldState, Ledger
from blastyard.admission.timing import Timings

SUBMIT: Final = "submit"
STAND_IN_APPS: Final = (FINALIZER, SUBMIT)
"""In the order in which they are made."""


@dataclass(frozen=True, slots=True)
class Put:
    """A marker has to be up: the Jobs named by ``apps``, in that order."""

    marker: Marker
    apps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Take:
    """A marker's Job has to go; only if it still is the one with this uid."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Extend:
    """A marker's Job must not end by itself so soon."""

    name: str
    uid: str
    seconds: int
    """After its start."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to be done, in this order, and who was cancelled by a peer."""

    put: tuple[Put, ...] = ()
    extend: tuple[Extend, ...] = ()
    take: tuple[Take, ...] = ()
    cancelled: frozenset[str] = frozenset()
    """Searches whose marker was up and has vanished before its time."""
    up: frozenset[str] = frozenset()
    """Searches whose lasting marker is seen complete."""


def marker(search: str, hold: Hold, kind: MarkerKind) -> Marker:
    """What the marker of a hold says, so that it carries the claim when the ledger is lost."""
    ticket = hold.ticket
    return Marker(
        kind,
        search,
        ticket.user,
        hold.submitter,
        ticket.level,
        hold.attempt,
        ticket.family,
        hold.alias,
        hold.watched,
    )


def kind_needed(search: str, hold: Hold, census: Census) -> MarkerKind:
    """By which marker peers count this hold now."""
    name = hold.alias or search
    if hold.state is HoldState.SUBMITTED and hold.watched and census.has_finalizer(name):
        return MarkerKind.COMPANION
    return MarkerKind.STAND_IN


def plan(ledger: Ledger, census: Census, now: datetime, timings: Timings) -> Plan:
    """Compare what is up with what has to be.

    ``census`` must have been taken *before* ``ledger`` was read: a marker that is not in the ledger
    yet was then not in the census either. Nothing is taken down on a ledger that is not whole.
    """
    up: dict[tuple[str, MarkerKind], dict[str, SeenJob]] = {}
    for job in census.markers:
        if job.marker is not None:
            up.setdefault((job.marker.search, job.marker.kind), {})[job.app] = job
    put: list[Put] = []
    kept: list[SeenJob] = []
    cancelled: set[str] = set()
    complete: set[str] = set()
    for search, hold in ledger.holds.items():
        kind = kind_needed(search, hold, census)
        apps = apps_of(kind)
        there = up.get((search, kind), {})
        kept += there.values()
        if kind is not MarkerKind.COMPANION:  # up before the ledger, or the finalizer, tells of it
            kept += up.get((search, MarkerKind.COMPANION), {}).values()
        missing = tuple(app for app in apps if app not in there)
        if _is_deserted(search, hold, census):
            cancelled.add(search)
        elif not missing:
            if _is_lasting(hold, kind):
                complete.add(search)
        elif SUBMIT in missing and _is_lasting(hold, kind) and _cannot_be_over(hold, now, timings):
            cancelled.add(search)
        elif not _is_over(search, hold, census):
            put.append(Put(marker(search, hold, kind), missing))
    return Plan(
        tuple(put),
        tuple(_extended(kept, now, timings)),
        tuple(_superfluous(ledger, census, kept, {each.marker.search for each in put})),
        frozenset(cancelled),
        frozenset(complete),
    )


def unmarked(ledger: Ledger, up: Iterable[str], now: datetime, timings: Timings) -> frozenset[str]:
    """Of those whose lasting marker is up: whose holds do not say so, or have not for long."""
    old = now - timings.marker / 4
    return frozenset(
        name
        for name in up
        if not ledger.holds[name].marked or (ledger.holds[name].marked_at or old) <= old
    )


def mark(ledger: Ledger, searches: Iterable[str], now: datetime) -> Ledger | None:
    """What makes peers count these is up now: should it vanish, somebody has cancelled them."""
    found = {
        name: msgspec.structs.replace(ledger.holds[name], marked=True, marked_at=now)
        for name in searches
        if name in ledger.holds
    }
    return msgspec.structs.replace(ledger, holds={**ledger.holds, **found}) if found else None


def apps_of(kind: MarkerKind) -> tuple[str, ...]:
    """The Jobs of which a marker consists."""
    return STAND_IN_APPS if kind is MarkerKind.STAND_IN else (SUBMIT,)


def _is_lasting(hold: Hold, kind: MarkerKind) -> bool:
    """Whether the marker that was seen up is the one that is needed now."""
    lasting = MarkerKind.COMPANION if _has_companion(hold) else MarkerKind.STAND_IN
    return hold.state is HoldState.SUBMITTED and kind is lasting


def _cannot_be_over(hold: Hold, now: datetime, timings: Timings) -> bool:
    """Whether its marker was up, and cannot have ended by itself."""
    if not hold.marked:
        return False
    return hold.marked_at is None or now < hold.marked_at + timings.marker


def _is_over(search: str, hold: Hold, census: Census) -> bool:
    """Whether the search has ended in the cluster, and only its hold is left to be retired: peers
    need not count it any more."""
    name = hold.alias or search
    submitted = hold.watched and hold.state is HoldState.SUBMITTED
    return submitted and name in census.finished and name not in census.families


def _is_deserted(search: str, hold: Hold, census: Census) -> bool:
    """Whether all other Jobs of a search were deleted unfinished, before its marker was up: only
    its finalizer is left, and that waits for ever."""
    name = hold.alias or search
    seen = census.sightings.get(name)
    return (
        hold.watched
        and name in census.deserted
        and seen is not None
        and seen.finalizer
        and not seen.companions
    )


def _has_companion(hold: Hold) -> bool:
    return hold.watched and hold.alias != UNLABELLED


def _extended(kept: Iterable[SeenJob], now: datetime, timings: Timings) -> Iterable[Extend]:
    for job in kept:
        if job.started_at is None or job.deadline_at is None:
            continue
        if job.deadline_at - now < timings.marker / 2:
            seconds = (now + timings.marker - job.started_at).total_seconds()
            yield Extend(job.name, job.uid, int(seconds))


def _superfluous(
    ledger: Ledger, census: Census, kept: Iterable[SeenJob], waiting: set[str]
) -> Iterable[Take]:
    """Markers of searches that have ended, and stand-ins whose companion is up already."""
    if not ledger.is_whole:
        return
    kept_uids = {job.uid for job in kept}
    for job in census.markers:
        if job.uid in kept_uids or job.marker is None or job.marker.search in waiting:
            continue
        yield Take(job.name, job.uid)
