"""Jobs, censuses and holds of a namespace that is shared, for the tests of its rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final

import msgspec
from admission_stage import ME, NOW, TIMINGS

from blastyard.admission.census import (
    FINALIZER,
    Census,
    MarkerKind,
    SeenJob,
    counted,
    take,
)
from blastyard.admission.hold import Attempt
from blastyard.admission.ledger import Hold, HoldState, Ledger, Ticket
from blastyard.admission.marking import apps_of, marker
from blastyard.admission.order import Situation, Turn, turn
from blastyard.admission.outcome import Granted
from blastyard.admission.reservation import brought_up, decide
from blastyard.admission.timing import Timings

FRESH: Final = int(TIMINGS.marker.total_seconds())
"""How long a marker stands that was made just now, in seconds."""
_UIDS: Final = count(1)


def job(
    search: str | None,
    app: str = FINALIZER,
    at: datetime = NOW,
    *,
    live: bool = True,
    uid: str | None = None,
) -> SeenJob:
    """One Job of a search; its name and uid are nobody else's."""
    number = next(_UIDS)
    return SeenJob(f"job-{number}", uid or f"uid-{number}", app, search, at, live)


def running(*searches: str, at: datetime = NOW) -> list[SeenJob]:
    """Complete submissions that are at work."""
    return [job(search, app, at) for search in searches for app in (FINALIZER, "blast")]


def merging(*searches: str, at: datetime = NOW) -> list[SeenJob]:
    """Finalizers with nothing beside them."""
    return [job(search, FINALIZER, at) for search in searches]


def marks(
    search: str,
    hold: Hold,
    kind: MarkerKind = MarkerKind.STAND_IN,
    *,
    started_at: datetime | None = NOW,
    stands: int | None = FRESH,
) -> list[SeenJob]:
    """The Jobs of a marker, as they are seen."""
    said = marker(search, hold, kind)
    shown = f"r-{search}" if kind is MarkerKind.STAND_IN else hold.alias or search
    return [
        replace(job(shown, app), marker=said, started_at=started_at, deadline_seconds=stands)
        for app in apps_of(kind)
    ]


def census(jobs: Iterable[SeenJob] = (), **remembered: Iterable[str]) -> Census:
    """The census of these Jobs; ``finished`` and ``deserted`` are what was seen earlier."""
    taken = take(jobs)
    return replace(taken, **{name: frozenset(names) for name, names in remembered.items()})


def seen(
    jobs: Iterable[SeenJob] = (), now: datetime = NOW, **remembered: Iterable[str]
) -> Situation:
    """What is known when these Jobs are seen."""
    return Situation(now, frozenset({ME}), census(jobs, **remembered))


def held(ledger: Ledger, search: str, family: str | None = None, **changes: Any) -> Ledger:
    """``ledger`` with one more hold, submitted at ``NOW`` unless ``changes`` say otherwise."""
    sequence, fence = ledger.sequence + 1, ledger.fence + 1
    ticket = Ticket(ME, "ada", 1, sequence, NOW, family=family)
    hold = Hold(ticket, ME, 1, fence, HoldState.SUBMITTED, NOW)
    hold = msgspec.structs.replace(hold, **changes)
    return msgspec.structs.replace(
        ledger, sequence=sequence, fence=fence, holds={**ledger.holds, search: hold}
    )


def watched(ledger: Ledger, search: str, **changes: Any) -> Ledger:
    """``ledger`` with the hold of a search that the cluster shows."""
    return held(ledger, search, watched=True, **changes)


class Queue:
    """A shared namespace as its submitters live it: they glance, and enter Gate A on their turn.

    A glance is forgotten; only what is decided inside Gate A is written.
    """

    def __init__(self, ledger: Ledger, timings: Timings = TIMINGS) -> None:
        self.ledger = ledger
        self.timings = timings
        self.now = NOW
        self.jobs: list[SeenJob] = []
        self.entries = 0
        self.granted: list[tuple[datetime, str]] = []

    def pass_time(self, by: timedelta) -> None:
        self.now += by

    def ask(self, search: str) -> object:
        """What a search is told at a glance, and inside Gate A if it then goes there."""
        situation = seen(self.jobs, self.now)
        glanced = brought_up(self.ledger, situation, self.timings, shared=True)
        known = counted(glanced, situation.census, self.now, self.timings)
        told = turn(glanced, search, replace(situation, census=known), self.timings)
        if not isinstance(told, Turn):
            return told
        self.entries += 1
        attempt = Attempt(search, 1, ME)
        self.ledger, outcome = decide(self.ledger, attempt, situation, self.timings, shared=True)
        if isinstance(outcome, Granted):
            self.granted.append((self.now, search))
        return outcome
