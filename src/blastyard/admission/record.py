"""Read, decide, swap, again on conflict: how every rule is applied to a document.

A rule is pure and idempotent, so that a lost answer is met by asking again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from blastyard.admission.lease import Seen, SubmitLease
from blastyard.admission.ledger import Ledger, decode_ledger, encode
from blastyard.admission.port import LEASE, LEDGER, DocumentStore, Snapshot, Version
from blastyard.admission.timing import Timings
from blastyard.domain.errors import PASSING, BlastyardError, Unavailable

CONFLICTS: Final = 200
LOST_ANSWERS: Final = 2

_LEASE: Final = msgspec.json.Decoder(SubmitLease)

T = TypeVar("T")

LedgerRule = Callable[[Ledger, datetime], Ledger | None]
LeaseRule = Callable[[Seen], SubmitLease | None]


class LedgerLost(Unavailable):
    """There is no ledger: it was never made, or somebody removed it."""

    def __init__(self) -> None:
        super().__init__(
            "store_unavailable",
            "the ledger is gone; the claims on it are being collected",
            "try again",
        )


def _see(snapshot: Snapshot) -> Seen:
    """The lease in a snapshot; one that cannot be read is held by nobody knows whom."""
    if snapshot.body is None:
        return Seen(SubmitLease(), None, snapshot.now)
    try:
        lease = _LEASE.decode(snapshot.body)
    except msgspec.DecodeError:
        lease = SubmitLease("unreadable", renew_time="unreadable")
    return Seen(lease, snapshot.stamped_at, snapshot.now, snapshot.is_coarse)


def _takes_over(before: SubmitLease, after: SubmitLease, own: str) -> bool:
    """Whether a holder that has not let go, and is not our ``own``, is replaced.

    Its silence is measured with the store's clock, and whether that was put back only an answer of
    the store can tell: no glance is enough for it.
    """
    kept = ("", own, after.holder_identity)
    return bool(after.holder_identity) and before.holder_identity not in kept


class Record:
    """The two documents of admission in a store, changed by rules."""

    def __init__(
        self, documents: DocumentStore, timings: Timings, monotonic: Callable[[], float]
    ) -> None:
        self.documents = documents
        self.timings = timings
        self.monotonic = monotonic
        self._decoded: tuple[Version, Ledger] | None = None

    def ledger(self, *, glance: bool = False) -> tuple[Ledger | None, datetime]:
        """The ledger, or ``None`` when there is none, and the store's clock."""
        look = self.documents.glance if glance else self.documents.read
        snapshot = look(LEDGER)
        ledger = None if snapshot.body is None else self._decode(snapshot.version, snapshot.body)
        return ledger, snapshot.now

    def _decode(self, version: Version, body: bytes) -> Ledger:
        """Each writing once: whoever waits looks at every change of anything."""
        known = self._decoded
        if known is not None and known[0] == version:
            return known[1]
        ledger = decode_ledger(body)
        self._decoded = version, ledger
        return ledger

    def lease(self) -> Seen:
        """The submit lease, as it was lately."""
        return _see(self.documents.glance(LEASE))

    def change_ledger(self, rule: LedgerRule) -> Ledger:
        """Apply ``rule`` until it is written or has nothing to write; the ledger as it is then.

        Raises :class:`LedgerLost`, and ``Unavailable`` when the store does not answer.
        """

        def step(snapshot: Snapshot) -> tuple[bytes | None, Ledger]:
            if snapshot.body is None:
                raise LedgerLost
            before = self._decode(snapshot.version, snapshot.body)
            after = rule(before, snapshot.now)
            return (None, before) if after is None else (encode(after), after)

        return self._change(LEDGER, step)

    def create_ledger(self, make: Callable[[datetime], Ledger]) -> Ledger:
        """The ledger as it is, made by ``make`` when there is none."""

        def step(snapshot: Snapshot) -> tuple[bytes | None, Ledger]:
            if snapshot.body is not None:
                return None, decode_ledger(snapshot.body)
            made = make(snapshot.now)
            return encode(made), made

        return self._change(LEDGER, step)

    def change_lease(self, rule: LeaseRule, *, own: str = "") -> bool:
        """Apply ``rule`` to the lease; whether the rule had something to write, and it stands.

        ``own`` is a holder that is the caller itself.
        """

        def step(snapshot: Snapshot) -> tuple[bytes | None, bool]:
            seen = _see(snapshot)
            after = rule(seen)
            if after is None or (_takes_over(seen.lease, after, own) and not snapshot.is_fresh):
                return None, False
            return encode(after), True

        return self._change(LEASE, step)

    def _change(self, name: str, step: Callable[[Snapshot], tuple[bytes | None, T]]) -> T:
        lost = 0
        look = self.documents.glance
        for _ in range(CONFLICTS):
            try:
                snapshot = look(name)
                look = self.documents.read
                decided = _decided(step, snapshot)
                if decided is None:
                    continue
                body, outcome = decided
                if body is None:
                    return outcome
                if self.documents.swap(name, snapshot.version, body) is not None:
                    return outcome
            except Unavailable as error:
                lost += 1
                if lost > LOST_ANSWERS or error.code not in PASSING:
                    raise
        raise Unavailable(
            "store_unavailable",
            f"the {name} changed {CONFLICTS} times while it was being written",
            "try again; if it goes on, look at who writes it with `blastyard gate status`",
        )


def _decided(
    step: Callable[[Snapshot], tuple[bytes | None, T]], snapshot: Snapshot
) -> tuple[bytes | None, T] | None:
    """What a step comes to; ``None`` when only a glance says that there is nothing to write."""
    try:
        body, outcome = step(snapshot)
    except BlastyardError:
        if snapshot.is_fresh:
            raise
        return None
    return None if body is None and not snapshot.is_fresh else (body, outcome)
