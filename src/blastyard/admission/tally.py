"""How much of everything there is at the gates, for a monitor. Pure, and in one pass of the queue.

Every process of a namespace counts the same, since it counts what stands in the shared documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from blastyard.admission.census import counted, occupied, phantoms, uncovered
from blastyard.admission.lease import Free, Held
from blastyard.admission.ledger import HoldState, Policy
from blastyard.admission.order import Situation, Turn, turn_in
from blastyard.admission.outcome import Reason, Waiting
from blastyard.admission.picture import Picture
from blastyard.admission.reservation import brought_up
from blastyard.admission.timing import Timings
from blastyard.admission.view import View


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of one moment."""

    waiting: Mapping[Reason, int]
    """Searches with a ticket, by what keeps each from going now."""
    holds: Mapping[HoldState, int]
    ceiling: int
    occupied: int
    """Run slots in use, whoever uses them."""
    seen: int
    """Searches observed running, phantoms among them."""
    foreign: int
    """Those of them that count and that no hold stands for."""
    phantoms: int
    """Those of them that do not count, as nothing but a finalizer is left of them."""
    inside: bool
    """Somebody is inside Gate A."""


def tally(picture: Picture, seed: Policy, timings: Timings, *, shared: bool) -> Tally:
    """Count. ``seed`` stands for a policy nobody knows; ``shared`` = with foreign programs."""
    view = picture.view(seed, timings)
    alive = frozenset(name for name, seen in view.submitters.items() if seen.is_alive(timings))
    free_since = view.gate.since if isinstance(view.gate, Free) else None
    seen = Situation(view.now, alive, picture.census, free_since)
    ledger = brought_up(view.ledger, seen, timings, shared=shared)
    census = counted(ledger, picture.census, view.now, timings)
    current = replace(view, ledger=ledger, census=census)
    states = Counter(hold.state for hold in ledger.holds.values())
    return Tally(
        _waiting(current, replace(seen, census=census), timings),
        {state: states[state] for state in HoldState},
        ledger.policy.ceiling,
        len(occupied(ledger.holds, census)),
        len(picture.census.sightings or picture.census.families),
        len(uncovered(ledger.holds, census)),
        len(phantoms(ledger, picture.census, view.now, timings)),
        isinstance(view.gate, Held),
    )


def _waiting(view: View, seen: Situation, timings: Timings) -> dict[Reason, int]:
    """An obstacle is a search's own; what keeps the first eligible one keeps all of them."""
    found = Counter(place.obstacle for place in view.queue if place.obstacle is not None)
    eligible = [place for place in view.queue if place.obstacle is None]
    if eligible:
        found[_common(view, eligible[0].search, seen, timings)] += len(eligible)
    return {reason: found[reason] for reason in Reason}


def _common(view: View, first: str, seen: Situation, timings: Timings) -> Reason:
    match turn_in(list(view.queue), view.ledger, first, seen, timings):
        case Waiting(reason=reason) if reason is not Reason.TURN:
            return reason
        case Waiting() | Turn():
            return Reason.SUBMIT_SLOT if isinstance(view.gate, Held) else Reason.TURN
