"""What may be done to a search that has a run slot, or asks for one. Pure.

Functions that make a new ledger return it, or ``None`` when nothing has to be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from blastyard.admission import courtesy
from blastyard.admission.census import room_to_resume
from blastyard.admission.ledger import Fence, Hold, HoldState, Ledger, Ticket
from blastyard.admission.order import Situation, Turn, drained, passed_over, pause, turn
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
    alias: str | None = None  # the id that it takes in the cluster, if that is another


@dataclass(frozen=True, slots=True)
class Reserved:
    """The ledger in which the attempt has its hold, and the grant to act on once it is written."""

    ledger: Ledger
    granted: Granted


def reserve(
    ledger: Ledger, attempt: Attempt, seen: Situation, timings: Timings
) -> Reserved | Waiting | Refused:
    """Turn the ticket into a hold, if it is its turn and the union of all that runs leaves room.

    The same attempt is granted the same again; another one resumes, and counts anew.
    """
    hold = ledger.holds.get(attempt.search)
    if hold is not None:
        return _resume(ledger, hold, attempt, seen, timings)
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
        alias=attempt.alias,
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
    ledger: Ledger, hold: Hold, attempt: Attempt, seen: Situation, timings: Timings
) -> Reserved | Waiting | Refused:
    is_the_same = hold.attempt == attempt.number and hold.submitter == attempt.submitter
    if is_the_same and ledger.is_whole and hold.failed_at is None:
        return Reserved(ledger, Granted(Fence(ledger.uid, hold.fence)))
    denied = (
        _why_not_resumed(hold, attempt)
        or _why_not_yet(ledger, hold, seen.now, timings)
        or _why_no_room(ledger, attempt.search, seen)
    )
    if denied is not None:
        return denied
    fence = ledger.fence + 1
    again = msgspec.structs.replace(hold, attempt=attempt.number, fence=fence, since=seen.now)
    again = msgspec.structs.replace(again, failed_at=None, alias=attempt.alias)
    after = msgspec.structs.replace(
        ledger, fence=fence, holds={**ledger.holds, attempt.search: again}
    )
    return Reserved(after, Granted(Fence(ledger.uid, fence)))


def turn_to_resume(
    ledger: Ledger, search: str, seen: Situation, timings: Timings | None = None
) -> Turn | Waiting | None:
    """Whether a search that only reserved its slot may claim again; ``None`` = it has no hold.

    Without ``timings`` a claim may come too early, and is then denied.
    """
    hold = ledger.holds.get(search)
    if hold is None:
        return None
    denied = _why_not_yet(ledger, hold, seen.now, timings) or _why_no_room(ledger, search, seen)
    return denied or Turn(position=0)


def _why_not_yet(
    ledger: Ledger, hold: Hold, now: datetime, timings: Timings | None
) -> Waiting | None:
    if not ledger.is_whole:
        return Waiting(Reason.RESTORING, "the ledger was lost; its claims are being collected")
    if timings is None:
        return None
    if hold.failed_at is not None and now < hold.failed_at + timings.settle:
        until = hold.failed_at + timings.settle
        return Waiting(Reason.SUBMIT_SLOT, "a write of its failed command may still land", 0, until)
    return pause(ledger, now, timings, 0)


def _why_no_room(ledger: Ledger, search: str, seen: Situation) -> Waiting | None:
    if ledger.policy.ceiling <= 0:
        return drained(ledger.policy.ceiling, 0)
    if not room_to_resume(ledger, seen.census, search):
        return Waiting(Reason.CAPACITY, "others started while its slot was only reserved")
    return None


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


FenceRule = Callable[[Ledger, datetime], Ledger | Refused | None]
"""A rule that applies to one grant only."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What a command that has ended left in the cluster, where that goes on by itself."""

    alias: str | None = None
    """The id that the search has there, when the command did not take ours."""
    others: tuple[str, ...] = ()
    """Further searches that the same command submitted."""
    marked: bool = False


def confirm(
    ledger: Ledger, search: str, fence: Fence, now: datetime, made: Submission | None = None
) -> Ledger | Refused | None:
    """The command of this grant is complete and seen: reserved becomes submitted.

    ``made`` is what goes on without its submitter; the cluster then shows when it ends.
    """
    hold = _mine(ledger, search, fence)
    if hold is None:
        return Refused("another grant has taken its place")
    if hold.state is HoldState.SUBMITTED:
        return None
    after = msgspec.structs.replace(hold, state=HoldState.SUBMITTED, since=now, failed_at=None)
    ledger = courtesy.used_until(ledger, now)
    if made is None:
        return msgspec.structs.replace(ledger, holds={**ledger.holds, search: after})
    after = msgspec.structs.replace(
        after,
        alias=made.alias,
        watched=True,
        marked=made.marked,
        marked_at=now if made.marked else None,
    )
    return _with_others(
        msgspec.structs.replace(ledger, holds={**ledger.holds, search: after}), after, made.others
    )


def _with_others(ledger: Ledger, hold: Hold, others: tuple[str, ...]) -> Ledger:
    """Holds of their own for what else a command submitted: it runs already."""
    holds, fence = dict(ledger.holds), ledger.fence
    for name in others:
        if name not in holds:
            fence += 1
            holds[name] = msgspec.structs.replace(hold, alias=None, fence=fence)
    return msgspec.structs.replace(ledger, holds=holds, fence=fence)


def fail(ledger: Ledger, search: str, fence: Fence, now: datetime) -> Ledger | Refused | None:
    """The command of this grant failed, and what it made was deleted.

    The slot is kept until a create of it that timed out can no longer arrive.
    """
    hold = _mine(ledger, search, fence)
    if hold is None:
        return Refused("another grant has taken its place")
    if hold.state is HoldState.SUBMITTED:
        return Refused("its submission is complete")
    if hold.failed_at is not None:
        return None
    after = msgspec.structs.replace(hold, failed_at=now)
    ledger = courtesy.used_until(ledger, now)
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


def give_up(ledger: Ledger, search: str, fence: int, now: datetime) -> Ledger | None:
    """This very grant has ended, and the search with it."""
    hold = ledger.holds.get(search)
    return end(ledger, search, now) if hold is not None and hold.fence == fence else None


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
