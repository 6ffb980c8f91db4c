"""What may be done to a search that has a run slot, or asks for one. Pure.

Functions that make a new ledger return it, or ``None`` when nothing has to be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from blastyard.admission.census import room_to_resume
from blastyard.admission.ledger import Fence, Hold, HoldState, Ledger, Ticket
from blastyard.admission.order import Situation, Turn, passed_over, turn
from blastyard.admission.outcome import Granted, Reason, Refused, Waiting
from blastyard.admission.ticket import adopt, replaced
from blastyard.admission.timing import Timings

KEPT_USERS = 1000


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one search, by one submitter, inside Gate A."""

    search: str
    number: int
    submitter: str


@dataclass(frozen=True, slots=True)
class Reserved:
    """The ledger in which the attempt has its hold, and the grant to act on once it is written."""

    ledger: Ledger
    granted: Granted


def reserve(
    ledger: Ledger, attempt: Attempt, seen: Situation, timings: Timings
) -> Reserved | Waiting | Refused:
    """Turn the ticket into a hold, if it is its turn and the union of all that runs leaves room.

    Asking again for the same attempt returns the same grant; another attempt at a search that
    already holds is a resumption, which counts anew.
    """
    hold = ledger.holds.get(attempt.search)
    if hold is not None:
        return _resume(ledger, hold, attempt, seen)
    ticket = ledger.tickets.get(attempt.search)
    if ticket is None:
        return Refused("it has neither a ticket nor a hold")
    if ticket.submitter != attempt.submitter:
        return Refused(f"{ticket.submitter} looks after it now")
    match turn(ledger, attempt.search, seen, timings):
        case Waiting() as waiting:
            return waiting
        case Turn(passing=passing):
            return _grant(ledger, ticket, attempt, _Passing(passing, seen.now, timings))


@dataclass(frozen=True, slots=True)
class _Passing:
    searches: tuple[str, ...]
    now: datetime
    timings: Timings


def _grant(ledger: Ledger, ticket: Ticket, attempt: Attempt, passing: _Passing) -> Reserved:
    fence = ledger.fence + 1
    tickets = {name: other for name, other in ledger.tickets.items() if name != attempt.search}
    for name in passing.searches:
        count = passed_over(tickets[name], passing.timings)
        tickets[name] = msgspec.structs.replace(tickets[name], passed=count)
    hold = Hold(
        msgspec.structs.replace(ticket, passed=0),
        attempt.submitter,
        attempt.number,
        fence,
        HoldState.RESERVED,
        passing.now,
    )
    after = msgspec.structs.replace(
        ledger,
        fence=fence,
        tickets=tickets,
        holds={**ledger.holds, attempt.search: hold},
        served=_served(ledger.served, ticket.user, fence),
        turn_at=passing.now,
    )
    return Reserved(after, Granted(Fence(ledger.uid, fence)))


def _served(served: Mapping[str, int], user: str, fence: int) -> dict[str, int]:
    """Remember the grant; forget the users that were served longest ago."""
    latest = sorted({**served, user: fence}.items(), key=lambda entry: entry[1])
    return dict(latest[-KEPT_USERS:])


def _resume(
    ledger: Ledger, hold: Hold, attempt: Attempt, seen: Situation
) -> Reserved | Waiting | Refused:
    if hold.attempt == attempt.number and hold.submitter == attempt.submitter:
        return Reserved(ledger, Granted(Fence(ledger.uid, hold.fence)))
    refusal = _why_not_resumed(hold, attempt)
    if refusal is not None:
        return refusal
    if not ledger.is_whole:
        return Waiting(Reason.RESTORING, "the ledger was lost; its claims are being collected")
    if not room_to_resume(ledger, seen.census, attempt.search):
        return Waiting(Reason.CAPACITY, "others started while its slot was only reserved")
    fence = ledger.fence + 1
    again = msgspec.structs.replace(hold, attempt=attempt.number, fence=fence, since=seen.now)
    after = msgspec.structs.replace(
        ledger, fence=fence, holds={**ledger.holds, attempt.search: again}
    )
    return Reserved(after, Granted(Fence(ledger.uid, fence)))


def turn_to_resume(ledger: Ledger, search: str, seen: Situation) -> Turn | Waiting | None:
    """Whether a search that only reserved its slot may claim again; ``None`` = it has no hold."""
    if search not in ledger.holds:
        return None
    if ledger.is_whole and room_to_resume(ledger, seen.census, search):
        return Turn(position=0)
    return Waiting(Reason.CAPACITY, "others started while its slot was only reserved")


def _why_not_resumed(hold: Hold, attempt: Attempt) -> Refused | None:
    if hold.submitter != attempt.submitter:
        return Refused(f"{hold.submitter} holds it")
    if hold.cancelled:
        return Refused("it was cancelled")
    if hold.attempt > attempt.number:
        return Refused("a later attempt holds it")
    if hold.state is not HoldState.RESERVED:
        return Refused("its command has already been submitted")
    return None


def _mine(ledger: Ledger, search: str, fence: Fence) -> Hold | None:
    """The hold that ``fence`` was granted for; a stale fence finds nothing."""
    hold = ledger.holds.get(search)
    if hold is None or Fence(ledger.uid, hold.fence) != fence:
        return None
    return hold


def confirm(ledger: Ledger, search: str, fence: Fence, now: datetime) -> Ledger | Refused | None:
    """The command of this grant is complete and seen: reserved becomes submitted."""
    hold = _mine(ledger, search, fence)
    if hold is None:
        return Refused("another grant has taken its place")
    if hold.state is HoldState.SUBMITTED:
        return None
    after = msgspec.structs.replace(hold, state=HoldState.SUBMITTED, since=now)
    return msgspec.structs.replace(ledger, holds={**ledger.holds, search: after})


def end(ledger: Ledger, search: str, now: datetime) -> Ledger | None:
    """The search has ended: neither hold nor ticket is left."""
    if search not in ledger.holds and search not in ledger.tickets:
        return None
    return replaced(
        ledger,
        now,
        holds={name: hold for name, hold in ledger.holds.items() if name != search},
        tickets={name: ticket for name, ticket in ledger.tickets.items() if name != search},
    )


def give_back(
    ledger: Ledger, search: str, submitter: str, upto: int | None, now: datetime
) -> Ledger | None:
    """The attempt certainly does nothing any more: back to the queue, to the old place in it.

    ``submitter`` looks after it from now on. A hold with a fence above ``upto`` was granted after
    its giver looked, and stays.
    """
    hold = ledger.holds.get(search)
    if hold is None:
        return adopt(ledger, search, submitter, now)
    if upto is not None and hold.fence > upto:
        return None
    ticket = msgspec.structs.replace(hold.ticket, submitter=submitter, passed=0)
    return replaced(
        ledger,
        now,
        holds={name: other for name, other in ledger.holds.items() if name != search},
        tickets={**ledger.tickets, search: ticket},
    )


def flag_cancelled(ledger: Ledger, search: str) -> Ledger | None:
    """Ask the attempt behind a reserved hold to stop; it acts on it, or the sweep does."""
    hold = ledger.holds.get(search)
    if hold is None or hold.cancelled:
        return None
    after = msgspec.structs.replace(hold, cancelled=True)
    return msgspec.structs.replace(ledger, holds={**ledger.holds, search: after})


def overdue(
    ledger: Ledger, silent_for: Mapping[str, timedelta], seen: Situation, timings: Timings
) -> dict[str, int]:
    """Reserved holds of submitters that are silent for so long that no command of theirs can be
    alive, with their fences.

    ``silent_for`` says for each submitter how long ago it gave its last sign of life; one that is
    not in it has never been heard of.
    """
    limit = timings.command + timings.takeover + timings.skew
    return {
        search: hold.fence
        for search, hold in ledger.holds.items()
        if hold.state is HoldState.RESERVED
        and silent_for.get(hold.submitter, limit) >= limit
        and seen.now - hold.since >= limit
        and (hold.ticket.family or search) not in seen.census.families
    }
