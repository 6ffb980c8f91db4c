"""Who waits at the gates: why, behind how many, and when each may start."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from blastyard.admission import courtesy
from blastyard.admission.census import room, uncovered
from blastyard.admission.lease import Free
from blastyard.admission.ledger import family
from blastyard.admission.order import Place
from blastyard.admission.outcome import Reason
from blastyard.admission.timing import Timings
from blastyard.admission.view import View
from blastyard.service.estimate import LEAST, Slots, starts, typical
from blastyard.service.view import Shape, instant, why


class Waiters:
    """The queue of a view. ``lifetimes`` is how long the searches lasted that ended last."""

    def __init__(self, view: View, timings: Timings, lifetimes: tuple[timedelta, ...] = ()) -> None:
        self._view = view
        self._lifetimes = lifetimes
        ledger = view.ledger
        is_left = courtesy.is_left(ledger, view.now, timings)
        self._slot_until = courtesy.slot_left_until(ledger, timings) if is_left else None
        self._pause_until = courtesy.paused_until(ledger, view.now, timings)
        self._room = room(ledger, view.census) if ledger.is_whole else 0

    def shape(self, waiting: Sequence[Shape]) -> Shape:
        """``waiting``, each with more, and what it was made from."""
        return {
            "waiting": self._waiting(waiting),
            "courtesy": {
                "owed_at": instant(self._view.ledger.courtesy.owed_at),
                "slot_until": instant(self._slot_until),
                "pause_until": instant(self._pause_until),
            },
            "estimate": self._estimate(),
        }

    def _waiting(self, shapes: Sequence[Shape]) -> list[Shape]:
        queue = self._view.queue
        eligible = [place for place in queue if place.obstacle is None]
        own_slot = (place.search for place in eligible if not place.ticket.family)
        at = starts(own_slot, self._slots(), self._lifetimes)
        left_alone = self._left_alone()
        ahead = {place.search: count for count, place in enumerate(eligible)}
        return [
            each
            | self._reason(place, left_alone, ahead.get(place.search, 0))
            | {"level": place.level, "estimated_start": instant(at.get(place.search))}
            for each, place in zip(shapes, queue, strict=True)
        ]

    def _reason(self, place: Place, left_alone: Shape | None, ahead: int) -> Shape:
        phase, text = why(place, self._view)
        if place.obstacle is None and self._room:
            if left_alone is not None:
                return left_alone
            if isinstance(self._view.gate, Free) and ahead:
                text = f"{ahead} ahead of it may claim the free slot first"
        return {"phase": phase, "reason": text}

    def _left_alone(self) -> Shape | None:
        """What is left to programs that poll, if anything is at the moment."""
        until = self._slot_until
        if self._room == 1 and until is not None:
            text = f"the free slot is left to a program that was denied, until {_clock(until)}"
            return {"phase": Reason.COURTESY.phase.value, "reason": text}
        if self._pause_until is not None:
            until = self._pause_until
            text = f"the submit slot is left to programs that poll, until {_clock(until)}"
            return {"phase": Reason.PAUSE.phase.value, "reason": text}
        return None

    def _slots(self) -> Slots:
        """The run slots, each in use since its first search began."""
        ledger, census = self._view.ledger, self._view.census
        since: dict[str, datetime] = {}
        for search, hold in ledger.holds.items():
            name = family(search, hold)
            since[name] = min(hold.since, since.get(name, hold.since))
        for name in uncovered(ledger.holds, census):
            since[name] = census.sightings[name].since
        ceiling = ledger.policy.ceiling if ledger.is_whole else 0
        return Slots(ceiling, tuple(since.values()), self._view.now)

    def _estimate(self) -> Shape | None:
        if len(self._lifetimes) < LEAST:
            return None
        return {
            "searches": len(self._lifetimes),
            "median_seconds": round(typical(self._lifetimes).total_seconds(), 1),
        }


def _clock(at: datetime) -> str:
    return at.strftime("%H:%M:%S UTC")
