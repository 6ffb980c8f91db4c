"""Gate A: who may be submitting now. Pure rules on the record that every submitter reads.

The record is the wire record of a ``coordination.k8s.io/v1`` Lease, wherever it is stored. Programs
that we cannot change judge it by their own clocks, so it says 900 seconds; blastyards judge each
other by how long the store has seen the record unchanged, with the store's clock at both ends.

Not guaranteed: that a holder which is stopped together with its guardian does nothing after it
continues. The guardian ends the command earlier than anybody may take over; a lease alone cannot.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from blastyard.admission.timing import Timings

SOURCE: Final = "blastyard-"
STAMP: Final = timedelta(seconds=2)
"""How coarse a store's stamp may be."""


class SubmitLease(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The record. Times are RFC 3339 text, as they stand on the wire; an empty holder is free."""

    holder_identity: str = ""
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A lease as a store showed it: with the store's stamp of its last change, and its clock."""

    lease: SubmitLease
    stamped_at: datetime | None
    now: datetime
    is_coarse: bool = False
    """The stamp is no finer than a second."""

    @property
    def unchanged_for(self) -> timedelta:
        """How long nobody has written the record; zero when it was never stamped."""
        return self.now - self.stamped_at if self.stamped_at else timedelta(0)


@dataclass(frozen=True, slots=True)
class Free:
    """Nobody is inside Gate A, or whoever was has provably lost the right."""

    since: datetime | None


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody is inside Gate A; ``until`` is when that could end without a word from them."""

    holder: str
    since: str | None
    until: datetime | None
    note: str = ""


def holder_name(search_id: str, attempt: int) -> str:
    """The identity of one attempt at one search."""
    return f"{SOURCE}{search_id}-{attempt}"


def is_blastyard(holder: str) -> bool:
    """Whether this holder renews every few seconds, as all blastyards do."""
    return holder.startswith(SOURCE)


def parse_time(text: str) -> datetime | None:
    """Read an RFC 3339 instant, with any number of fractional digits; ``None`` if it is none."""
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return parsed if parsed.tzinfo else None


def format_time(at: datetime) -> str:
    """UTC with ``Z`` and exactly six fractional digits, which is all that the wire accepts."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def judge(seen: Seen, timings: Timings) -> Free | Held:
    """Who is inside Gate A, as far as the record tells."""
    lease = seen.lease
    if not lease.holder_identity:
        return Free(_free_since(seen))
    if is_blastyard(lease.holder_identity):
        return _judge_blastyard(seen, timings)
    return _judge_foreign(seen, timings)


def _free_since(seen: Seen) -> datetime | None:
    """When it was cleared. The store's stamp may be as coarse as a second; a renewTime is not."""
    cleared_at = parse_time(seen.lease.renew_time or "")
    if not seen.is_coarse or cleared_at is None or seen.stamped_at is None:
        return seen.stamped_at
    is_its_time = timedelta(0) <= seen.stamped_at - cleared_at <= STAMP
    return cleared_at if is_its_time else seen.stamped_at


def _judge_blastyard(seen: Seen, timings: Timings) -> Free | Held:
    stamped_at = seen.stamped_at or seen.now
    until = stamped_at + timings.takeover
    if seen.unchanged_for >= timings.takeover:
        return Free(until)
    return Held(seen.lease.holder_identity, seen.lease.acquire_time, until)


def _judge_foreign(seen: Seen, timings: Timings) -> Free | Held:
    lease = seen.lease
    if lease.renew_time is None:
        return Free(seen.stamped_at)
    renewed_at = parse_time(lease.renew_time)
    if renewed_at is None:
        note = f"its renewTime {lease.renew_time!r} cannot be read, so it counts as held"
        return Held(lease.holder_identity, lease.acquire_time, None, note)
    seconds = lease.lease_duration_seconds
    try:
        duration = timings.wire if seconds is None else timedelta(seconds=seconds)
        until = renewed_at + duration + timings.skew
    except OverflowError:
        note = "it says that it lasts beyond the end of the calendar"
        return Held(lease.holder_identity, lease.acquire_time, None, note)
    if seen.now > until:
        return Free(until)
    return Held(lease.holder_identity, lease.acquire_time, until)


def claim(seen: Seen, holder: str, timings: Timings) -> SubmitLease | Held:
    """The record that makes ``holder`` the one inside, or who is there already.

    Asking again with the same holder claims again: a lost answer is no lost claim.
    """
    if seen.lease.holder_identity == holder:
        return renewed(seen, holder, timings) or _fresh(seen, holder, timings)
    match judge(seen, timings):
        case Held() as held:
            return held
        case Free():
            return _fresh(seen, holder, timings)


def _fresh(seen: Seen, holder: str, timings: Timings) -> SubmitLease:
    now = format_time(seen.now)
    return SubmitLease(holder, int(timings.wire.total_seconds()), now, now)


def renewed(seen: Seen, holder: str, timings: Timings) -> SubmitLease | None:
    """The record of a holder that goes on; ``None`` when somebody else is inside."""
    if seen.lease.holder_identity != holder:
        return None
    return msgspec.structs.replace(
        seen.lease,
        renew_time=format_time(seen.now),
        lease_duration_seconds=int(timings.wire.total_seconds()),
    )


def passed_on(seen: Seen, holder: str, following: str, timings: Timings) -> SubmitLease | None:
    """The record under which the same process goes on with another search, without letting go.

    ``None`` when somebody else is inside. Asking again is no fault: an answer may have got lost.
    """
    if seen.lease.holder_identity not in (holder, following):
        return None
    return _fresh(seen, following, timings)


def released(seen: Seen, holder: str) -> SubmitLease | None:
    """The free record; ``None`` when it is not ours to clear."""
    if seen.lease.holder_identity != holder:
        return None
    return SubmitLease(renew_time=format_time(seen.now))


def stamped_anew(seen: Seen) -> SubmitLease | None:
    """The same record, when its stamp lies in the future; ``None`` when nothing is wrong with it.

    The store's clock was put back. A holder that is gone would be waited for until that clock has
    caught up; written again, its silence is measured from now.
    """
    if not seen.lease.holder_identity or seen.stamped_at is None or seen.stamped_at <= seen.now:
        return None
    return seen.lease


def trusted_until(asked_at: float, timings: Timings) -> float:
    """Until when a confirmed claim may be acted on, in monotonic seconds.

    ``asked_at`` is the monotonic time *before* the confirmed request was sent: the store cannot
    have stamped the record earlier, so nobody takes over before ``asked_at + takeover``.
    """
    return asked_at + (timings.takeover - timings.margin).total_seconds()
