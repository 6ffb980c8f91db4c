"""Making a lost ledger whole again: every submitter brings back what it remembers. Pure.

Until all that are known have done so, nobody is admitted. It begins empty: whoever brings claims to
it must have read them after it was there, so that nobody brings back what was true before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from blastyard.admission.census import Marker, MarkerKind
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
    alias: str | None = None
    watched: bool = False


def claim_of(marker: Marker) -> Claim:
    """The claim that a marker carries, for the day its submitter is not there to make it."""
    companion = marker.kind is MarkerKind.COMPANION
    return Claim(
        marker.search,
        marker.user,
        marker.level,
        marker.attempt,
        HoldState.SUBMITTED if companion else HoldState.RESERVED,
        marker.submitter,
        marker.family,
        marker.alias,
        companion,
    )


@dataclass(frozen=True, slots=True)
class Known:
    """The submitters that must have restored their claims before a lost ledger is whole again."""

    submitters: Mapping[str, Submitter]
    seed: Policy
    uid: str
    """The ledger's name: a new one to begin with, and the one that was seen before the claims."""
    missing: frozenset[str] = frozenset()
    """Known from the markers of their searches only, and waited for as long as the silent are."""


def begun(known: Known, now: datetime) -> Ledger:
    """The ledger in the place of a lost one, without anybody's claims yet.

    The fence starts from the store's clock in milliseconds, above all that were granted before.
    """
    remembered = [submitter.policy for submitter in known.submitters.values()]
    return Ledger(
        uid=known.uid,
        policy=newest_policy(known.seed, remembered),
        fence=int(now.timestamp() * 1000),
        begun_at=now,
        restored=(),
    )


def restore(
    ledger: Ledger,
    me: str,
    claims: Iterable[Claim],
    known: Known,
    now: datetime,
    patience: timedelta = timedelta(0),
) -> Ledger | None:
    """Take ``me``'s claims into a ledger that was begun anew; whole once every known submitter has
    done so. ``None`` for another ledger than the one that was there before the claims were read.
    """
    if ledger.is_whole or ledger.uid != known.uid:
        return None
    after = _with_claims(ledger, claims, now)
    remembered = [submitter.policy for submitter in known.submitters.values()]
    newest = newest_policy(ledger.policy, [ledger.policy, *remembered])
    after = msgspec.structs.replace(after, policy=newest)
    done = tuple(sorted({*(ledger.restored or ()), me}))
    waited_for = set(known.submitters)
    if now - (ledger.begun_at or now) < patience:
        waited_for |= known.missing
    complete = waited_for <= set(done)
    after = msgspec.structs.replace(after, restored=None if complete else done)
    if complete:  # nobody could claim until now: the turn of the head begins
        after = msgspec.structs.replace(after, turn_at=now, begun_at=None)
    return None if after == ledger else after


def _with_claims(ledger: Ledger, claims: Iterable[Claim], now: datetime) -> Ledger:
    holds = dict(ledger.holds)
    tickets = dict(ledger.tickets)
    fence, sequence = ledger.fence, ledger.sequence
    for claim in claims:
        if claim.search in holds:
            holds[claim.search] = _surer(holds[claim.search], claim)
            continue
        fence += 1
        ticket = tickets.pop(claim.search, None)
        if ticket is None:
            sequence += 1
            ticket = Ticket(
                claim.submitter, claim.user, claim.level, sequence, now, family=claim.family
            )
        holds[claim.search] = Hold(
            ticket,
            claim.submitter,
            claim.attempt,
            fence,
            claim.state,
            now,
            alias=claim.alias,
            watched=claim.watched,
        )
    return msgspec.structs.replace(
        ledger, holds=holds, tickets=tickets, fence=fence, sequence=sequence
    )


def _surer(hold: Hold, claim: Claim) -> Hold:
    """A marker cannot tell how far its search came, nor which attempt is the latest; who claims it
    as submitted, or under a later attempt, can."""
    hold = msgspec.structs.replace(hold, attempt=max(hold.attempt, claim.attempt))
    if hold.state is HoldState.SUBMITTED or claim.state is HoldState.RESERVED:
        return hold
    return msgspec.structs.replace(
        hold, state=claim.state, alias=claim.alias, watched=claim.watched
    )
