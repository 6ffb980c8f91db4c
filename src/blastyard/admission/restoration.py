"""Making a lost ledger whole again: every submitter brings back what it remembers. Pure.

Until all that are known have done so, nobody is admitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


def restore(
    ledger: Ledger | None, me: str, claims: Iterable[Claim], known: Known, now: datetime
) -> Ledger | None:
    """Take ``me``'s claims into a lost ledger; whole once every known submitter has done so.

    The fence starts from the store's clock in milliseconds, above all that were granted before.
    """
    base = ledger
    if base is None:
        remembered = [submitter.policy for submitter in known.submitters.values()]
        base = Ledger(
            uid=known.uid,
            policy=newest_policy(known.seed, remembered),
            fence=int(now.timestamp() * 1000),
            restored=(),
        )
    if base.is_whole:
        return None
    after = _with_claims(base, claims, now)
    done = tuple(sorted({*(base.restored or ()), me}))
    complete = all(name in done for name in known.submitters)
    after = msgspec.structs.replace(after, restored=None if complete else done)
    if complete:  # nobody could claim until now: the turn of the head begins
        after = msgspec.structs.replace(after, turn_at=now)
    return None if after == ledger else after


def reclaim(ledger: Ledger, claims: Sequence[Claim], now: datetime) -> Ledger | None:
    """Take in claims of a submitter that was away while a lost ledger was made whole."""
    missing = [claim for claim in claims if claim.search not in ledger.holds]
    return _with_claims(ledger, missing, now) if missing else None


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
