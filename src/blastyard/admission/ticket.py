"""What may be done to a search that waits. Pure: each function makes a new ledger.

``None`` means that nothing had to be changed, so nothing need be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest

import msgspec

from blastyard.admission.ledger import Change, Ledger, Policy, Ticket
from blastyard.admission.order import begin_turn

KEPT_CHANGES = 20
PUBLISHED_PER_SUBMITTER = 100
PUBLISHED_IN_ALL = 1000
KEPT_FOR_OTHERS = 100


@dataclass(frozen=True, slots=True)
class Wish:
    """A search that wants a place in the queue."""

    search: str
    user: str
    level: int
    family: str | None = None
    blocked: str | None = None


def replaced(ledger: Ledger, now: datetime, **changes: object) -> Ledger:
    """``ledger`` with ``changes``, and the turn of its head begun anew if these changes do that."""
    after = msgspec.structs.replace(ledger, **changes)
    turn_at = begin_turn(ledger, after, now)
    return after if turn_at == after.turn_at else msgspec.structs.replace(after, turn_at=turn_at)


def publish(ledger: Ledger, submitter: str, wishes: Sequence[Wish], now: datetime) -> Ledger | None:
    """Give each wish a ticket, in the order given; asking again changes nothing.

    A ticket that another submitter had looked after keeps its place and changes hands. Time in
    tickets never runs backwards, whatever the store's clock does: a later ticket must not age
    sooner than an earlier one.
    """
    new = [
        wish
        for wish in wishes
        if wish.search not in ledger.tickets and wish.search not in ledger.holds
    ]
    taken = [
        wish
        for wish in wishes
        if wish.search in ledger.tickets and ledger.tickets[wish.search].submitter != submitter
    ]
    if not new and not taken:
        return None
    at = max(now, ledger.last_ticketed_at or now)
    tickets = dict(ledger.tickets)
    for wish in taken:
        ticket = tickets[wish.search]
        tickets[wish.search] = msgspec.structs.replace(ticket, submitter=submitter)
    for number, wish in enumerate(new, start=ledger.sequence + 1):
        tickets[wish.search] = Ticket(
            submitter, wish.user, wish.level, number, at, family=wish.family, blocked=wish.blocked
        )
    return replaced(
        ledger, now, tickets=tickets, sequence=ledger.sequence + len(new), last_ticketed_at=at
    )


def window(ledger: Ledger, submitter: str, candidates: Sequence[Wish]) -> list[Wish]:
    """Which of the waiting searches to publish, so that the ledger stays small.

    ``candidates`` are in order of arrival within each user and priority. By priority, and one user
    after another, as many as the submitter has places left; and at least one for every user and
    priority, so that nobody is hidden behind somebody else's thousands. Those that have a ticket
    under another submitter's name have their place already, and are among them.
    """
    own = sum(ticket.submitter == submitter for ticket in ledger.tickets.values())
    total = len(ledger.tickets)
    seen = {(ticket.user, ticket.level) for ticket in ledger.tickets.values()}
    chosen: list[Wish] = []
    for wish in _fairly(candidates):
        if wish.search in ledger.holds:
            continue
        if wish.search in ledger.tickets:
            if ledger.tickets[wish.search].submitter != submitter:
                chosen.append(wish)
            continue
        has_place = own < PUBLISHED_PER_SUBMITTER or (wish.user, wish.level) not in seen
        if has_place and total < PUBLISHED_IN_ALL and own < PUBLISHED_IN_ALL - KEPT_FOR_OTHERS:
            chosen.append(wish)
            seen.add((wish.user, wish.level))
            own, total = own + 1, total + 1
    return chosen


def _fairly(candidates: Sequence[Wish]) -> Iterator[Wish]:
    queues: dict[int, dict[str, list[Wish]]] = {}
    for wish in candidates:
        queues.setdefault(wish.level, {}).setdefault(wish.user, []).append(wish)
    for level in sorted(queues, reverse=True):
        for row in zip_longest(*queues[level].values()):
            yield from (wish for wish in row if wish is not None)


def withdraw(ledger: Ledger, search: str, now: datetime) -> Ledger | None:
    """Take the search out of the queue. A hold is not touched."""
    if search not in ledger.tickets:
        return None
    tickets = {name: ticket for name, ticket in ledger.tickets.items() if name != search}
    return replaced(ledger, now, tickets=tickets)


def _changed(ledger: Ledger, search: str, now: datetime, **changes: object) -> Ledger | None:
    ticket = ledger.tickets.get(search)
    if ticket is None:
        return None
    after = msgspec.structs.replace(ticket, **changes)
    if after == ticket:
        return None
    return replaced(ledger, now, tickets={**ledger.tickets, search: after})


def park(ledger: Ledger, search: str, by: str, now: datetime) -> Ledger | None:
    """Set a waiting search aside; it keeps its place."""
    return _changed(ledger, search, now, parked_by=by)


def unpark(ledger: Ledger, search: str, now: datetime) -> Ledger | None:
    """Let a parked search take its turn again."""
    return _changed(ledger, search, now, parked_by=None)


def block(ledger: Ledger, search: str, phase: str | None, now: datetime) -> Ledger | None:
    """Say what the search waits for besides its turn, or (``None``) that it no longer does."""
    return _changed(ledger, search, now, blocked=phase)


def adopt(ledger: Ledger, search: str, submitter: str, now: datetime) -> Ledger | None:
    """Let another submitter look after a waiting search; it keeps its place."""
    return _changed(ledger, search, now, submitter=submitter)


def change_policy(
    ledger: Ledger, by: str, now: datetime, *, ceiling: int | None = None, cap: int | None = None
) -> Ledger | None:
    """Change the ceiling, or the per-user cap (0 = no cap). Who did it, and when, is kept.

    Raises ``ValueError`` for negative numbers.
    """
    before = ledger.policy
    after = before
    said: list[str] = []
    if ceiling is not None and ceiling != before.ceiling:
        after = msgspec.structs.replace(after, ceiling=_counted("ceiling", ceiling))
        said.append(f"ceiling {before.ceiling} -> {ceiling}")
    if cap is not None and (cap or None) != before.user_cap:
        after = msgspec.structs.replace(after, user_cap=_counted("cap", cap) or None)
        said.append(f"per-user cap {before.user_cap or 'none'} -> {cap or 'none'}")
    if not said:
        return None
    changes = (*before.changes, Change(now, by, ", ".join(said)))[-KEPT_CHANGES:]
    after = msgspec.structs.replace(after, version=before.version + 1, changes=changes)
    return replaced(ledger, now, policy=after)


def _counted(name: str, value: int) -> int:
    if value < 0:
        raise ValueError(f"the {name} must be 0 or more, not {value}")
    return value


def newest_policy(seed: Policy, remembered: Sequence[Policy | None]) -> Policy:
    """The policy of the highest version that anybody remembers; ``seed`` when nobody does."""
    known = [policy for policy in remembered if policy is not None]
    return max(known, key=lambda policy: policy.version, default=seed)
