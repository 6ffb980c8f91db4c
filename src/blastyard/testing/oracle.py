"""Who should be next, said again and naively, so that the rules have something to be held against.

Written from the protocol's words, not from :mod:`blastyard.admission.order`: slow, and only for a
few tickets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from blastyard.admission.ledger import Ledger, Ticket

HIGHEST = 2
TURN = 1.0
PATIENT_TURN = 45.0
PASSES = 3


@dataclass(frozen=True, slots=True)
class Ahead:
    """Who stands before a search and could have gone, and how many seconds they had for it."""

    searches: tuple[str, ...]
    seconds: float


def fair_order(ledger: Ledger, now: datetime) -> list[str]:
    """All tickets, first to go first."""
    ageing = timedelta(seconds=ledger.policy.ageing_seconds)
    levels = {name: _level(ticket, ageing, now) for name, ticket in ledger.tickets.items()}
    ordered: list[str] = []
    served: dict[str, int] = dict(ledger.served)
    clock = max([ledger.fence, *served.values()])
    for level in range(HIGHEST, -1, -1):
        left = {name for name in levels if levels[name] == level}
        while left:
            name = _first(left, ledger.tickets, served)
            left.remove(name)
            clock += 1
            served[ledger.tickets[name].user] = clock
            ordered.append(name)
    return ordered


def _level(ticket: Ticket, ageing: timedelta, now: datetime) -> int:
    level, waited = ticket.level, now - ticket.ticketed_at
    while waited >= ageing and level < HIGHEST:
        waited -= ageing
        level += 1
    return level


def _first(left: Set[str], tickets: Mapping[str, Ticket], served: Mapping[str, int]) -> str:
    """Of the user who was served longest ago, the search that came first."""
    heads: dict[str, str] = {}
    for name in sorted(left, key=lambda one: tickets[one].sequence, reverse=True):
        heads[tickets[name].user] = name
    user = min(heads, key=lambda one: (served.get(one, 0), tickets[heads[one]].sequence, one))
    return heads[user]


def ahead(ledger: Ledger, search: str, able: Set[str], now: datetime) -> Ahead:
    """Who could have gone before ``search``; ``able`` are submitters that were there throughout."""
    cap = ledger.policy.user_cap
    running = Counter(hold.ticket.user for hold in ledger.holds.values())
    could: list[str] = []
    for name in fair_order(ledger, now):
        if name == search:
            break
        ticket = ledger.tickets[name]
        if ticket.parked_by is not None or ticket.blocked is not None:
            continue
        if cap is not None and running[ticket.user] >= cap:
            continue
        if ticket.submitter in able:
            could.append(name)
    seconds = sum(PATIENT_TURN if ledger.tickets[name].passed >= PASSES else TURN for name in could)
    return Ahead(tuple(could), seconds)
