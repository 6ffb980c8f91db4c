"""One stay inside Gate A: claim, reserve, submit, confirm, let go."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from blastyard.admission import hold as rules
from blastyard.admission import lease as gate_a
from blastyard.admission.census import Census
from blastyard.admission.ledger import Fence, Ledger
from blastyard.admission.order import Situation
from blastyard.admission.outcome import Granted, Refused, Waiting
from blastyard.admission.record import Record
from blastyard.admission.timing import Timings
from blastyard.domain.errors import Unavailable


class LeaseLost(Exception):
    """Somebody else may be inside Gate A: touch nothing, end what was started."""


class Stay:
    """What a holder of Gate A may do. Made by :meth:`Gate.enter`."""

    def __init__(
        self,
        record: Record,
        holder: str,
        free_since: datetime | None,
        deadline: float,
        observe: Callable[[], tuple[frozenset[str], Census]],
    ) -> None:
        self.holder = holder
        self.deadline = deadline
        """Until when the guarded command may run, in monotonic seconds."""
        self.is_abandoned = False
        self._record = record
        self._free_since = free_since
        self._observe = observe

    @property
    def is_trusted(self) -> bool:
        """Whether nobody else can be inside."""
        return self._record.monotonic() < self.deadline

    def renew(self) -> bool:
        """Go on being inside; ``False`` once the lease is somebody else's."""
        asked_at = self._record.monotonic()
        if not self._record.change_lease(self._renewed):
            return False
        self.deadline = gate_a.trusted_until(asked_at, self._timings)
        return True

    @property
    def _timings(self) -> Timings:
        return self._record.timings

    def _renewed(self, seen: gate_a.Seen) -> gate_a.SubmitLease | None:
        return gate_a.renewed(seen, self.holder, self._timings)

    def reserve(self, attempt: rules.Attempt) -> Granted | Waiting | Refused:
        """Ask for a run slot. Raises :class:`LeaseLost` when the stay is over."""
        alive, census = self._observe()
        outcome: Granted | Waiting | Refused = Refused("not asked")

        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            nonlocal outcome
            self._check()
            seen = Situation(now, alive, census, self._free_since)
            match rules.reserve(ledger, attempt, seen, self._timings):
                case rules.Reserved(ledger=after, granted=granted):
                    outcome = granted
                    return None if after is ledger else after
                case denied:
                    outcome = denied
                    return None

        self._record.change_ledger(rule)
        return outcome

    def confirm(self, search: str, fence: Fence) -> bool:
        """Say that the submission is complete; ``False`` when another grant replaced this one."""
        confirmed = True

        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            nonlocal confirmed
            outcome = rules.confirm(ledger, search, fence, now)
            confirmed = not isinstance(outcome, Refused)
            return None if isinstance(outcome, Refused) else outcome

        self._record.change_ledger(rule)
        return confirmed

    def abandon(self) -> None:
        """Something of this stay may still act: the lease is not cleared but left to lapse.

        The command's deadline ends it before anybody may take over.
        """
        self.is_abandoned = True

    def close(self) -> bool:
        """Leave Gate A; ``True`` once the lease is certainly not ours any more."""
        try:
            self._record.change_lease(lambda seen: gate_a.released(seen, self.holder))
        except Unavailable:
            return False
        return True

    def _check(self) -> None:
        if not self.is_trusted:
            raise LeaseLost(self.holder)
