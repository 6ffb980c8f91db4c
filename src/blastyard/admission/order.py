"""Who is next: aged priority, round-robin between users, order of arrival. Pure.

Within one user and priority nobody overtakes. A ticket that cannot go now (parked, its user at the
cap, its database not ready, its submitter silent) keeps its place and is skipped. Waiting raises
the priority until it is the highest, where round-robin and arrival decide; so everybody's turn
comes.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from blastyard.admission import courtesy
from blastyard.admission.census import Census, room
from blastyard.admission.lease import STAMP
from blastyard.admission.ledger import Ledger, Ticket, families
from blastyard.admission.outcome import Reason, Waiting
from blastyard.admission.timing import Timings
from blastyard.domain.search import Priority

HIGHEST = max(priority.level for priority in Priority)


@dataclass(frozen=True, slots=True)
class Place:
    """A ticket in fair order. ``obstacle`` is why it is skipped now; ``None`` = eligible."""

    search: str
    ticket: Ticket
    position: int
    level: int
    obstacle: Reason | None


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known besides the ledger when somebody asks whether it is their turn."""

    now: datetime
    alive: Set[str]
    """Submitters that gave a sign of life."""
    census: Census
    gate_free_since: datetime | None = None
    """Since when Gate A has been free."""
    room_since: datetime | None = None
    """Since when a slot was seen to be free, where slots fall free without a word to the ledger."""


def aged_level(ticket: Ticket, ageing: timedelta, now: datetime) -> int:
    """The priority that waiting has made of the ticket's own."""
    waited = max(timedelta(0), now - ticket.ticketed_at)
    return min(HIGHEST, ticket.level + waited // ageing)


def fair_order(ledger: Ledger, now: datetime) -> list[tuple[str, Ticket, int]]:
    """All tickets as (search, ticket, aged level), first to go first."""
    ageing = timedelta(seconds=ledger.policy.ageing_seconds)
    by_level: dict[int, dict[str, list[tuple[int, str, Ticket]]]] = {}
    for search, ticket in ledger.tickets.items():
        level = aged_level(ticket, ageing, now)
        queue = by_level.setdefault(level, {}).setdefault(ticket.user, [])
        queue.append((ticket.sequence, search, ticket))
    served = dict(ledger.served)
    turn = ledger.fence
    ordered: list[tuple[str, Ticket, int]] = []
    for level in sorted(by_level, reverse=True):
        for search, ticket in _round_robin(by_level[level], served, turn):
            ordered.append((search, ticket, level))
        turn += len(ordered)
    return ordered


def _round_robin(
    queues: dict[str, list[tuple[int, str, Ticket]]],
    served: dict[str, int],
    turn: int,
) -> Iterable[tuple[str, Ticket]]:
    """One search of each user in turn; who was served longest ago begins."""
    for queue in queues.values():
        queue.sort(reverse=True)
    heap = [(served.get(user, 0), queue[-1][0], user) for user, queue in queues.items()]
    heapq.heapify(heap)
    while heap:
        _, _, user = heapq.heappop(heap)
        queue = queues[user]
        _, search, ticket = queue.pop()
        turn += 1
        served[user] = turn
        if queue:
            heapq.heappush(heap, (turn, queue[-1][0], user))
        yield search, ticket


def places(ledger: Ledger, now: datetime, alive: Set[str] | None) -> list[Place]:
    """The whole queue in fair order, each with what keeps it from going now, if anything.

    ``alive`` = ``None`` takes every submitter for alive. Only what runs counts against the cap: a
    search that is first and does not claim must not stop the others of its user.
    """
    cap = ledger.policy.user_cap
    running = Counter(hold.ticket.user for hold in ledger.holds.values())
    result = []
    for position, (search, ticket, level) in enumerate(fair_order(ledger, now), start=1):
        obstacle: Reason | None = None
        if ticket.parked_by is not None:
            obstacle = Reason.PARKED
        elif ticket.blocked is not None:
            obstacle = Reason.BLOCKED
        elif alive is not None and ticket.submitter not in alive:
            obstacle = Reason.SUBMITTER
        elif cap is not None and running[ticket.user] >= cap:
            obstacle = Reason.USER_CAP
        result.append(Place(search, ticket, position, level, obstacle))
    return result


def head(ledger: Ledger, now: datetime) -> str | None:
    """The first eligible search, all submitters taken for alive."""
    return next((place.search for place in places(ledger, now, None) if not place.obstacle), None)


def begin_turn(before: Ledger, after: Ledger, now: datetime) -> datetime | None:
    """When the turn of ``after``'s head began, given that ``before``'s head may be another.

    A slot that became free, or another search at the head, begins a turn.
    """
    if len(after.holds) < len(before.holds) or after.policy.ceiling > before.policy.ceiling:
        return now
    if head(before, now) != head(after, now):
        return now
    return before.turn_at


@dataclass(frozen=True, slots=True)
class Turn:
    """The search may claim Gate A now. ``passing`` are the searches that let it by."""

    position: int
    passing: tuple[str, ...] = ()


def turn(ledger: Ledger, search: str, seen: Situation, timings: Timings) -> Turn | Waiting:
    """Whether ``search`` may claim now, and otherwise why not and when asking could help."""
    queue = places(ledger, seen.now, seen.alive)
    return turn_in(queue, ledger, search, seen, timings)


def turn_in(
    queue: list[Place],
    ledger: Ledger,
    search: str,
    seen: Situation,
    timings: Timings,
) -> Turn | Waiting:
    """:func:`turn`, for a caller that asks for several searches of one queue."""
    place = next((place for place in queue if place.search == search), None)
    if place is None:
        return Waiting(Reason.UNPUBLISHED, "not yet among the published tickets")
    if place.obstacle is not None:
        return Waiting(place.obstacle, _obstacle_detail(place, ledger), place.position)
    if not ledger.is_whole:
        return Waiting(
            Reason.RESTORING, "the ledger was lost; its claims are being collected", place.position
        )
    if place.ticket.family not in families(ledger.holds):  # a child's family has its slot already
        free = room(ledger, seen.census)
        if free == 0:
            return _no_room(ledger, seen.census, place)
        left_alone = _left_alone(ledger, free, seen.now, timings, place.position)
        if left_alone is not None:
            return left_alone
    ahead = [other for other in queue[: place.position - 1] if other.obstacle is None]
    return _in_turn(place, ahead, ledger, seen, timings)


def _left_alone(
    ledger: Ledger, free: int, now: datetime, timings: Timings, position: int
) -> Waiting | None:
    """What is left free for programs that poll; ``None`` where nothing is owed to them."""
    if free == 1 and courtesy.is_left(ledger, now, timings):
        until = courtesy.slot_left_until(ledger, timings)
        detail = "the free slot is left to a program that polls and was denied"
        return Waiting(Reason.COURTESY, detail, position, until)
    return pause(ledger, now, timings, position)


def pause(ledger: Ledger, now: datetime, timings: Timings, position: int) -> Waiting | None:
    """What everybody is told while Gate A is left free after long use; ``None`` = it is not."""
    until = courtesy.paused_until(ledger, now, timings)
    if until is None:
        return None
    detail = "the submit slot is left free for programs that poll"
    return Waiting(Reason.PAUSE, detail, position, until)


def _in_turn(
    place: Place,
    ahead: list[Place],
    ledger: Ledger,
    seen: Situation,
    timings: Timings,
) -> Turn | Waiting:
    if not ahead:  # whatever clocks say
        return Turn(place.position)
    grace = sum((patience(other.ticket, timings) for other in ahead), timedelta(0))
    starts = [
        at
        for at in (ledger.turn_at, seen.gate_free_since, seen.room_since)
        # somewhat later than now is what others think it is; much later, a clock was put back
        if at is not None and at <= seen.now + STAMP
    ]
    opens_at = max(starts, default=seen.now - grace) + grace
    if seen.now >= opens_at:
        return Turn(place.position, tuple(other.search for other in ahead))
    detail = f"{len(ahead)} ahead of it may claim the free slot first"
    return Waiting(Reason.TURN, detail, place.position, opens_at)


def patience(ticket: Ticket, timings: Timings) -> timedelta:
    """How long a ticket at the head is waited for.

    Who was passed over several times gets one long turn, so that a head which learns of free slots
    late is served too; then the count begins anew, so that it cannot hold everybody up for ever.
    """
    return timings.patient_turn if ticket.passed >= timings.passes else timings.turn


def passed_over(ticket: Ticket, timings: Timings) -> int:
    """The count after one more turn was let go by."""
    return 0 if ticket.passed >= timings.passes else ticket.passed + 1


def _no_room(ledger: Ledger, census: Census, place: Place) -> Waiting:
    ceiling = ledger.policy.ceiling
    if ceiling <= 0:
        return drained(ceiling, place.position)
    held = len(ledger.holds)
    seen = len(census.families)
    detail = f"{held} running of at most {ceiling}"
    if seen:
        detail += f", {seen} seen in the cluster"
    return Waiting(Reason.CAPACITY, detail, place.position)


def drained(ceiling: int, position: int) -> Waiting:
    """What everybody is told where nothing may run."""
    detail = f"the ceiling is {ceiling}: nothing starts until an operator raises it"
    return Waiting(Reason.DRAINED, detail, position)


def _obstacle_detail(place: Place, ledger: Ledger) -> str:
    ticket = place.ticket
    match place.obstacle:
        case Reason.PARKED:
            return f"set aside by {ticket.parked_by}"
        case Reason.BLOCKED:
            return f"{ticket.blocked}"
        case Reason.USER_CAP:
            return f"{ticket.user} already has {ledger.policy.user_cap} running"
        case _:
            return "the process that looks after it gave no sign of life"
