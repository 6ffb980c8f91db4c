"""One stay inside Gate A: claim, reserve, submit, confirm, let go."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from blastyard.admission import hold as rules
from blastyard.admission import lease as gate_a
from blastyard.admission import observer
from blastyard.admission.census import Census
from blastyard.admission.ending import unseen
from blastyard.admission.inside import Carried, Inside, LeaseLost
from blastyard.admission.ledger import Fence, Ledger, fence_text
from blastyard.admission.order import Situation
from blastyard.admission.outcome import Granted, Reason, Refused, Waiting
from blastyard.admission.reservation import decide
from blastyard.domain.errors import BlastyardError, Unavailable


class Stay:
    """What a holder of Gate A may do. Made by :meth:`Gate.enter`.

    ``after_another`` tells that the lease was taken from somebody who had not let it go.
    """

    def __init__(
        self,
        inside: Inside,
        holder: str,
        free_since: datetime | None,
        deadline: float,
        *,
        after_another: bool = False,
    ) -> None:
        self.holder = holder
        self.deadline = deadline
        """Until when the guarded command may run, in monotonic seconds."""
        self.is_abandoned = False
        self.trouble: BlastyardError | None = None
        """What kept it from being released the last time."""
        self.census = Census()
        """What ran when a slot was asked for."""
        self._inside = inside
        self._record = inside.record
        self.free_since = free_since
        """Since when Gate A was free before."""
        self._after_another = after_another
        self._retired: frozenset[str] = frozenset()
        self._tell = inside.observer
        self._entered_at: float | None = None
        lasts = inside.record.timings.beat.total_seconds()
        self._carried = Carried(inside.record.monotonic() + lasts)
        self._was_waiting = False
        self._closing = False
        self._is_lost = False

    def begin(self) -> None:
        """The lease is certainly ours."""
        self._entered_at = self._record.monotonic()
        self._tell(observer.Entered(self.holder, taken_over=self._after_another))

    def followed_by(self, holder: str, deadline: float) -> Stay:
        """The stay of the next search, which begins as this one ends: Gate A was passed on."""
        after = Stay(self._inside, holder, self.free_since, deadline)
        after._carried = self._carried
        self._tell_left()
        after.begin()
        self._unmark()
        return after

    @property
    def may_go_on(self) -> bool:
        """Whether another search may follow in it: nobody keeps Gate A for long."""
        return not self._after_another and self._record.monotonic() < self._carried.until

    def pause(self) -> None:
        """It is being passed on: who finds another name on the lease has lost nothing."""
        self._closing = True

    @property
    def is_trusted(self) -> bool:
        """Whether nobody else can be inside."""
        return self._record.monotonic() < self.deadline

    def renew(self) -> bool:
        """Go on being inside; ``False`` once the lease is somebody else's."""
        asked_at = self._record.monotonic()
        if not self._record.change_lease(self._renewed):
            if not self._closing:
                self._lose()
            return False
        self.deadline = gate_a.trusted_until(asked_at, self._record.timings)
        self._tell(observer.Renewed(self.holder))
        return True

    def _renewed(self, seen: gate_a.Seen) -> gate_a.SubmitLease | None:
        return gate_a.renewed(seen, self.holder, self._record.timings)

    # -- asking for a slot ---------------------------------------------------------------------

    def reserve(
        self, attempt: rules.Attempt, *, stands_in: bool = True
    ) -> Granted | Waiting | Refused:
        """Ask for a run slot; peers see it taken when this returns a grant.

        ``stands_in=False`` is for a submission whose first objects are its finalizer and companion:
        it shows itself.

        Raises :class:`LeaseLost` when the stay is over; a slot that was reserved by then stays so.
        Raises ``Unavailable``; a new slot that could not be shown to peers is given back first,
        if that can be written.
        """
        self.assert_markers()
        ledger, outcome, alive = self._asked(attempt)
        if isinstance(outcome, Waiting) and outcome.reason is Reason.CAPACITY:
            ledger, outcome = self._ask_again(attempt, alive, ledger, outcome)
        self._report(attempt.search, ledger, outcome)
        if isinstance(outcome, Granted) and stands_in:
            self._show_or_give_back(attempt, ledger)
        return outcome

    def _asked(
        self, attempt: rules.Attempt
    ) -> tuple[Ledger, Granted | Waiting | Refused, frozenset[str]]:
        """On the census of an earlier search, as long as that leaves room; then on a new one."""
        outlook, known = self._inside.outlook, self._carried.census
        if known is not None:
            self.census, alive = outlook.later(known), outlook.alive()
            ledger, outcome = self._ask(attempt, alive)
            if isinstance(outcome, Granted):
                return ledger, outcome, alive
        alive, self.census = outlook.observe()
        self._carried.census = self.census
        return *self._ask(attempt, alive), alive

    def _show_or_give_back(self, attempt: rules.Attempt, ledger: Ledger) -> None:
        try:
            self._show(attempt.search, ledger)
        except Unavailable:
            if self._was_waiting:  # nothing of it can be alive: it had no slot before
                with suppress(Unavailable):
                    self._give_back(attempt, ledger.holds[attempt.search].fence)
            raise

    def _give_back(self, attempt: rules.Attempt, fence: int) -> None:
        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            return rules.give_back(ledger, attempt.search, attempt.submitter, fence, now)

        self._record.change_ledger(rule)

    def _ask(
        self, attempt: rules.Attempt, alive: frozenset[str]
    ) -> tuple[Ledger, Granted | Waiting | Refused]:
        outcome: Granted | Waiting | Refused = Refused("not asked")
        gone: frozenset[str] = frozenset()

        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            nonlocal outcome, gone
            self._check()
            room_since = self._inside.outlook.room_since
            seen = Situation(now, alive, self.census, self.free_since, room_since)
            shared = self._inside.shared
            told = self._carried.ridden(ledger, now)
            after, outcome = decide(told, attempt, seen, self._record.timings, shared=shared)
            self._was_waiting |= attempt.search in ledger.tickets
            gone = frozenset(ledger.holds.keys() - after.holds.keys())
            self._retired |= gone
            return None if after is ledger else after

        written = self._record.change_ledger(rule)
        self._carried.riding.clear()
        if gone:
            self._tell(observer.Retired(gone))
        return written, outcome

    def _ask_again(
        self, attempt: rules.Attempt, alive: frozenset[str], ledger: Ledger, outcome: Waiting
    ) -> tuple[Ledger, Granted | Waiting | Refused]:
        """Slots may be kept for searches that have just ended: look for their finalizers."""
        names = unseen(ledger, self.census)
        found = self._inside.outlook.finished(names) if names else frozenset()
        if not found:
            return ledger, outcome
        self.census = replace(self.census, finished=self.census.finished | found)
        return self._ask(attempt, alive)

    def _report(self, search: str, ledger: Ledger, outcome: Granted | Waiting | Refused) -> None:
        if not isinstance(outcome, Granted):
            inputs = observer.Inputs.of(ledger, self.census)
            self._tell(observer.Denied(search, outcome, inputs))
            return
        hold = ledger.holds[search]
        waited = (hold.since - hold.ticket.ticketed_at).total_seconds()
        self._tell(
            observer.Granted(
                search,
                hold.fence,
                max(0.0, waited) if self._was_waiting else None,
                self._record.monotonic(),
            )
        )

    def _show(self, search: str, ledger: Ledger) -> None:
        """Have the stand-in up before any command of the search runs."""
        self._check()
        self._inside.marking.stand_in(
            search, ledger.holds[search], holder=self.holder, fence=fence_text(ledger)
        )

    def assert_markers(self) -> None:
        """Whoever takes the lease from another has the markers of all holds up first: the other
        may have been stopped before it put its own."""
        if self._after_another:
            self._inside.marking.assert_all(holder=self.holder)
            self._after_another = False

    # -- what became of the command ------------------------------------------------------------

    def confirm(self, search: str, fence: Fence, made: rules.Submission | None = None) -> bool:
        """Say that the submission is complete; ``False`` when another grant replaced this one."""
        return self._told(lambda ledger, now: rules.confirm(ledger, search, fence, now, made))

    def confirm_later(self, search: str, fence: Fence, made: rules.Submission) -> None:
        """As :meth:`confirm`, with the next swap of this stay: a search is to follow in it."""
        self._carried.riding.append(
            lambda ledger, now: rules.confirm(ledger, search, fence, now, made)
        )

    def fail(self, search: str, fence: Fence) -> bool:
        """Say that the command failed; ``False`` as for :meth:`confirm`."""
        return self._told(lambda ledger, now: rules.fail(ledger, search, fence, now))

    def _told(self, rule: rules.FenceRule) -> bool:
        stands = True

        def apply(ledger: Ledger, now: datetime) -> Ledger | None:
            nonlocal stands
            outcome = rule(ledger, now)
            stands = not isinstance(outcome, Refused)
            return None if isinstance(outcome, Refused) else outcome

        self._record.change_ledger(apply)
        return stands

    # -- leaving -------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Something of this stay may still act: the lease is not cleared but left to lapse.

        The command's deadline ends it before anybody may take over.
        """
        self.is_abandoned = True
        self._tell(observer.Abandoned(self.holder))

    def close(self) -> bool:
        """Leave Gate A; ``True`` once the lease is certainly not ours any more."""
        if not (self._closing or self.is_trusted):
            self._lose()
        self._closing = True  # a beat that finds the lease released has lost nothing
        self._tell_riding()
        try:
            self._record.change_lease(lambda seen: gate_a.released(seen, self.holder))
        except BlastyardError as error:  # whatever it is, it is told, and tried again
            self.trouble = error
            self._tell(observer.ReleaseFailed(self.holder))
            return False
        self._tell_left()
        self._unmark()
        return True

    def _unmark(self) -> None:
        """What has ended needs no marker; what fails here is swept later."""
        for search in self._retired:
            with suppress(Unavailable):
                self._inside.marking.markers.drop_known(search)

    def _tell_riding(self) -> None:
        """What no swap has taken along. What fails here is seen in the cluster, and taken up."""
        if self._carried.riding:
            with suppress(Unavailable):
                self._record.change_ledger(self._carried.rule)
            self._carried.riding.clear()

    def _tell_left(self) -> None:
        if self._entered_at is not None and not self._is_lost:
            held = self._record.monotonic() - self._entered_at
            self._tell(observer.Left(self.holder, held))

    def _check(self) -> None:
        if not self.is_trusted:
            self._lose()
            raise LeaseLost(self.holder)

    def _lose(self) -> None:
        """Somebody may be inside already, where the lease was deleted or edited by hand."""
        self.deadline = min(self.deadline, self._record.monotonic())
        if self._entered_at is not None and not self._is_lost:
            self._is_lost = True
            self._tell(observer.Lost(self.holder))
