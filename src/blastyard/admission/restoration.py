"""Making a lost ledger whole again: every submitter brings back what it remembers. Pure.

Until all that are known have done so, nobody is admitted. It begins empty: whoever brings claims to
it must have read them after it was there, so that nobody brings back what was true before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from blastyard.admission.ledger import Hold, HoldState, Ledger, Policy, Submitter, Ticket
from blastyard.admission.ticket import newest_policy


@dataclass(frozen=True, slots=True)
class Claim:
    """A hold that a submitter remembers when the ledger does not."""

    search: str
    user: str
    level: int
    attempt: int
    state: HoldState
    submitter: str
    family: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """The submitters that must have restored their claims before a lost ledger is whole again."""

    submitters: Mapping[str, Submitter]
    seed: Policy
    uid: str
    """The ledger's name: a new one to begin with, and the one that was seen before the claims."""


def begun(known: Known, now: datetime) -> Ledger:
    """The ledger in the place of a lost one, without anybody's claims yet.

    The fence starts from the store's clock in milliseconds, above all that were granted before.
    """
    remembered = [submitter.policy for submitter in known.submitters.values()]
    return Ledger(
        uid=known.uid,
        policy=newest_policy(known.seed, remembered),
        fence=int(now.timestamp() * 1000),
        restored=(),
    )


def restore(
    ledger: Ledger, me: str, claims: Iterable[Claim], known: Known, now: datetime
) -> Ledger | None:
    """Take ``me``'s claims into a ledger that was begun anew; whole once every known submitter has
    done so. ``None`` for another ledger than the one that was there before the claims were read.
    """
    if ledger.is_whole or ledger.uid != known.uid:
        return None
    after = _with_claims(ledger, claims, now)
    done = tuple(sorted({*(ledger.restored or ()), me}))
    complete = all(name in done for name in known.submitters)
    after = msgspec.structs.replace(after, restored=None if complete else done)
    if complete:  # nobody could claim until now: the turn of the head begins
        after = msgspec.structs.replace(after, turn_at=now)
    return None if after == ledger else after


def _with_claims(ledger: Ledger, claims: Iterable[Claim], now: datetime) -> Ledger:
    holds = dict(ledger.holds)
    tickets = dict(ledger.tickets)
    fence, sequence = ledger.fence, ledger.sequence
    for claim in claims:
        if claim.search in holds:
            continue
        fence += 1
        ticket = tickets.pop(claim.search, None)
        if ticket is None:
            sequence += 1
            ticket = Ticket(
                claim.submitter, claim.user, claim.level, sequence, now, family=claim.family
            )
        holds[claim.search] = Hold(ticket, claim.submitter, claim.attempt, fence, claim.state, now)
    return msgspec.structs.replace(
        ledger, holds=holds, tickets=tickets, fence=fence, sequence=sequence
    )
