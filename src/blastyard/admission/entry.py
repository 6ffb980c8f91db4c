"""Going inside Gate A and out again, as one process does it: its stays, and the releases it owes.

A claim whose answer was lost, or a release that could not be written, is kept here until it is
certain that the lease is not ours any more; others take it over meanwhile if they must.
"""

from __future__ import annotations

from datetime import datetime
from threading import Lock

from blastyard.admission import lease as gate_a
from blastyard.admission.inside import Inside
from blastyard.admission.observer import Denied, Undecided
from blastyard.admission.outcome import Reason, Waiting
from blastyard.admission.stay import Stay
from blastyard.admission.view import slot_taken
from blastyard.domain.errors import Misconfigured, Unavailable


class Entry:
    """The stays of one process. Thread-safe."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._record = inside.record
        self._lock = Lock()
        self._releasing: set[str] = set()
        self._stays: dict[str, Stay] = {}
        self._unreleased: dict[str, Stay] = {}

    @property
    def holders(self) -> frozenset[str]:
        """Under which names this process is inside."""
        with self._lock:
            return frozenset(self._stays)

    def renew(self) -> None:
        """Go on being inside, and try again what could not be released."""
        with self._lock:
            inside = list(self._stays.values())
        for stay in inside:
            stay.renew()
        self.retry()

    def enter(self, search: str, attempt: int) -> Stay | Waiting:
        """See :meth:`Gate.enter <blastyard.admission.gate.Gate.enter>`."""
        holder = gate_a.holder_name(search, attempt)
        with self._lock:
            if holder in self._releasing:
                return Waiting(Reason.SUBMIT_SLOT, "its earlier claim is just being released")
            self._unreleased.pop(holder, None)
        self.retry()
        try:
            outcome = self._claim(holder)
        except Unavailable as error:
            self._inside.observer(Undecided(search, error))
            raise
        if isinstance(outcome, Waiting):
            self._inside.observer(Denied(search, outcome))
        return outcome

    def _claim(self, holder: str) -> Stay | Waiting:
        timings = self._record.timings
        before: gate_a.Free | gate_a.Held | None = None
        after_another = False
        asked_at = self._record.monotonic()

        def rule(seen: gate_a.Seen) -> gate_a.SubmitLease | None:
            nonlocal before, asked_at, after_another
            asked_at = self._record.monotonic()
            if seen.lease.holder_identity != holder:
                before = gate_a.judge(seen, timings)
                after_another = bool(seen.lease.holder_identity)
            elif before is None:  # a claim of an earlier call: free until then, at the latest
                before = gate_a.Free(gate_a.parse_time(seen.lease.acquire_time or ""))
            match gate_a.claim(seen, holder, timings):
                case gate_a.SubmitLease() as claimed:
                    return claimed
                case held:
                    before = held
                    return None

        try:
            claimed = self._record.change_lease(rule)
        except Unavailable:
            with self._lock:
                self._unreleased[holder] = self._stay(holder, None, asked_at)
            raise
        if not claimed:
            return slot_taken(before or gate_a.Free(None), None)
        since = before.since if isinstance(before, gate_a.Free) else None
        stay = self._stay(holder, since, asked_at, after_another=after_another)
        with self._lock:
            self._stays[holder] = stay
        stay.begin()
        return stay

    def _stay(
        self,
        holder: str,
        free_since: datetime | None,
        asked_at: float,
        *,
        after_another: bool = False,
    ) -> Stay:
        deadline = gate_a.trusted_until(asked_at, self._record.timings)
        return Stay(self._inside, holder, free_since, deadline, after_another=after_another)

    def pass_on(self, stay: Stay, search: str, attempt: int) -> Stay | None:
        """Go on inside Gate A for another search; ``None`` when the lease is somebody else's.

        Raises ``Unavailable``; both names are released with the next claim or beat then.
        """
        following = gate_a.holder_name(search, attempt)
        asked_at = self._record.monotonic()

        def rule(seen: gate_a.Seen) -> gate_a.SubmitLease | None:
            nonlocal asked_at
            asked_at = self._record.monotonic()
            return gate_a.passed_on(seen, stay.holder, following, self._record.timings)

        stay.pause()
        try:
            passed = self._record.change_lease(rule, own=stay.holder)
        except Unavailable:
            self._give_up(stay, self._stay(following, None, asked_at))
            raise
        if not passed:
            self.leave(stay)
            return None
        deadline = gate_a.trusted_until(asked_at, self._record.timings)
        with self._lock:
            del self._stays[stay.holder]
            after = self._stays[following] = stay.followed_by(following, deadline)
        return after

    def _give_up(self, *stays: Stay) -> None:
        with self._lock:
            for stay in stays:
                self._stays.pop(stay.holder, None)
                self._unreleased[stay.holder] = stay

    def leave(self, stay: Stay) -> None:
        """Leave Gate A. A release that fails is tried again with every beat."""
        with self._lock:
            self._stays.pop(stay.holder, None)
        if not stay.is_abandoned:
            self._let_go(stay)

    def flush(self) -> None:
        """Be certainly out of Gate A. Raises ``Unavailable`` while a release cannot be
        written, and ``Misconfigured`` when it may not be."""
        self.retry()
        with self._lock:
            left = list(self._unreleased.values())
        if left:
            if isinstance(left[0].trouble, Misconfigured):
                raise left[0].trouble
            raise Unavailable(
                "store_unavailable",
                f"the submit lease of {left[0].holder} could not be released",
                "others take it over when it has been silent for the takeover time",
            )

    def retry(self) -> None:
        """Release what could not be released before."""
        with self._lock:
            leaving = list(self._unreleased.values())
            self._unreleased.clear()
            self._releasing.update(stay.holder for stay in leaving)
        for stay in leaving:
            self._let_go(stay)

    def _let_go(self, stay: Stay) -> None:
        released = stay.close()
        with self._lock:
            self._releasing.discard(stay.holder)
            if not released:
                self._unreleased[stay.holder] = stay
