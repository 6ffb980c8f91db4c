"""The front door: one object per process, through which it queues, claims, runs and lets go.

Nothing here waits. Whoever has to wait is told why and until when asking again could help; a watch
of the document store says when something changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import Lock

from blastyard.admission import hold as holds
from blastyard.admission import lease as gate_a
from blastyard.admission import ticket as tickets
from blastyard.admission.ledger import HoldState, Ledger, Policy, Submitter
from blastyard.admission.order import Situation, Turn, places, turn, turn_in
from blastyard.admission.outcome import Reason, Waiting
from blastyard.admission.outlook import GateSettings, Outlook, Surroundings
from blastyard.admission.port import DocumentStore
from blastyard.admission.record import Record
from blastyard.admission.roster import Presence, Roster
from blastyard.admission.stay import Stay
from blastyard.admission.view import Due, View, slot_taken
from blastyard.domain.errors import Unavailable


class Gate:
    """Both gates, as one process sees them."""

    def __init__(
        self,
        documents: DocumentStore,
        me: Submitter,
        settings: GateSettings,
        surroundings: Surroundings,
    ) -> None:
        self.me = me
        self.timings = settings.timings
        self._monotonic = surroundings.monotonic
        self._record = Record(documents, settings.timings, surroundings.monotonic)
        self._roster = Roster(documents, me, surroundings.is_gone, surroundings.monotonic)
        self._outlook = Outlook(self._record, self._roster, me, settings, surroundings)
        self._lock = Lock()
        self._releasing: set[str] = set()
        self._stays: dict[str, Stay] = {}
        self._unreleased: dict[str, Stay] = {}

    # -- signs of life -------------------------------------------------------------------------

    def beat(self) -> None:
        """Give a sign of life, go on holding Gate A where inside, retry releases that failed.

        Called every ``timings.beat`` from a thread of its own, so that busy work starves nothing.
        """
        with self._lock:
            inside = list(self._stays.values())
        for stay in inside:
            stay.renew()
        self._retry_releases()
        self._roster.beat(self._outlook.policy)
        self.heal()

    def heal(self) -> None:
        """Bring back our claims when the ledger was lost, and the lease's age when the clock was
        put back. No effect otherwise.
        """
        self._outlook.ledger()
        self._record.change_lease(gate_a.stamped_anew)

    def wake(self) -> None:
        """Wake every process on the store, though no document changed."""
        self._record.documents.notify()

    def retire(self) -> None:
        """Sign off; the searches that wait here are left to others."""
        self._roster.retire()

    # -- the queue -----------------------------------------------------------------------------

    def publish(self, wishes: Sequence[tickets.Wish], submitter: str | None = None) -> Ledger:
        """Give tickets to as many of ``wishes`` as may have one; the ledger tells which have.

        ``submitter`` is who looks after them when it is not ourselves.
        """
        whose = self.me.name if submitter is None else submitter

        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            return tickets.publish(ledger, whose, tickets.window(ledger, whose, wishes), now)

        return self._outlook.change(rule)

    def withdraw(self, search: str) -> None:
        """Take a waiting search out of the queue."""
        self._outlook.change(lambda ledger, now: tickets.withdraw(ledger, search, now))

    def park(self, search: str, by: str) -> bool:
        """Set a waiting search aside; whether it has a ticket."""
        after = self._outlook.change(lambda ledger, now: tickets.park(ledger, search, by, now))
        return search in after.tickets

    def unpark(self, search: str) -> bool:
        """Let a parked search go on; whether it has a ticket."""
        after = self._outlook.change(lambda ledger, now: tickets.unpark(ledger, search, now))
        return search in after.tickets

    def block(self, search: str, phase: str | None) -> None:
        """Say what the search waits for besides its turn; ``None`` = nothing any more."""
        self._outlook.change(lambda ledger, now: tickets.block(ledger, search, phase, now))

    def adopt(self, search: str, submitter: str | None = None) -> None:
        """Let ``submitter`` (ourselves, when none is named) look after a waiting search."""
        heir = self.me.name if submitter is None else submitter
        self._outlook.change(lambda ledger, now: tickets.adopt(ledger, search, heir, now))

    def change_policy(
        self, by: str, *, ceiling: int | None = None, cap: int | None = None
    ) -> Policy:
        """Change what an operator decides. Raises ``ValueError`` for negative numbers."""
        after = self._outlook.change(
            lambda ledger, now: tickets.change_policy(ledger, by, now, ceiling=ceiling, cap=cap)
        )
        return after.policy

    # -- admission -----------------------------------------------------------------------------

    def due(self) -> Due:
        """Which of our searches may claim now. Costs the same however many are waiting."""
        seen = self._outlook.look()
        mine = self.me.name
        own = tuple(name for name, held in seen.ledger.tickets.items() if held.submitter == mine)
        gate = gate_a.judge(self._record.lease(), self.timings)
        if isinstance(gate, gate_a.Held):
            return Due((), own, gate.until, seen.now)
        situation = Situation(seen.now, seen.alive, seen.census, gate.since)
        resumable = self._resumable(seen.ledger, situation)
        queue = places(seen.ledger, seen.now, seen.alive) if own else []
        first = next((p for p in queue if p.ticket.submitter == mine and not p.obstacle), None)
        if first is None:
            return Due(resumable, own, None, seen.now)
        match turn_in(queue, seen.ledger, first.search, situation, self.timings):
            case Turn():
                return Due((*resumable, first.search), own, None, seen.now)
            case Waiting(until=until):
                return Due(resumable, own, until, seen.now)

    def _resumable(self, ledger: Ledger, situation: Situation) -> tuple[str, ...]:
        """Our searches whose slot is reserved, while no attempt of ours is at work on them."""
        with self._lock:
            inside = set(self._stays)
        return tuple(
            name
            for name, hold in ledger.holds.items()
            if hold.submitter == self.me.name
            and hold.state is HoldState.RESERVED
            and gate_a.holder_name(name, hold.attempt) not in inside
            and isinstance(holds.turn_to_resume(ledger, name, situation), Turn)
        )

    def turn(self, search: str) -> Turn | Waiting:
        """Whether one search may claim now, and why not."""
        seen = self._outlook.look()
        gate = gate_a.judge(self._record.lease(), self.timings)
        free_since = gate.since if isinstance(gate, gate_a.Free) else None
        situation = Situation(seen.now, seen.alive, seen.census, free_since)
        outcome = holds.turn_to_resume(seen.ledger, search, situation) or turn(
            seen.ledger, search, situation, self.timings
        )
        if isinstance(outcome, Turn) and isinstance(gate, gate_a.Held):
            return slot_taken(gate, outcome.position)
        return outcome

    def enter(self, search: str, attempt: int) -> Stay | Waiting:
        """Go inside Gate A, or say who is there.

        Raises ``Unavailable`` when it cannot be told. A claim that stands all the same is adopted
        by asking again for the same attempt, or released with the next claim or beat.
        """
        holder = gate_a.holder_name(search, attempt)
        with self._lock:
            if holder in self._releasing:
                return Waiting(Reason.SUBMIT_SLOT, "its earlier claim is just being released")
            self._unreleased.pop(holder, None)
        self._retry_releases()
        return self._claim(holder)

    def _claim(self, holder: str) -> Stay | Waiting:
        before: gate_a.Free | gate_a.Held | None = None
        asked_at = self._monotonic()

        def rule(seen: gate_a.Seen) -> gate_a.SubmitLease | None:
            nonlocal before, asked_at
            asked_at = self._monotonic()
            if seen.lease.holder_identity != holder:
                before = gate_a.judge(seen, self.timings)
            elif before is None:  # a claim of an earlier call: free until then, at the latest
                before = gate_a.Free(gate_a.parse_time(seen.lease.acquire_time or ""))
            match gate_a.claim(seen, holder, self.timings):
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
        stay = self._stay(holder, since, asked_at)
        with self._lock:
            self._stays[holder] = stay
        return stay

    def _stay(self, holder: str, free_since: datetime | None, asked_at: float) -> Stay:
        deadline = gate_a.trusted_until(asked_at, self.timings)
        return Stay(self._record, holder, free_since, deadline, self._outlook.observe)

    def leave(self, stay: Stay) -> None:
        """Leave Gate A. A release that fails is tried again with every beat."""
        with self._lock:
            self._stays.pop(stay.holder, None)
        if not stay.is_abandoned:
            self._let_go(stay)

    def _retry_releases(self) -> None:
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

    # -- the end of a search -------------------------------------------------------------------

    def end(self, search: str) -> None:
        """The search has ended: neither hold nor ticket is left."""
        self._outlook.change(lambda ledger, now: holds.end(ledger, search, now))

    def give_back(self, search: str, submitter: str | None = None, upto: int | None = None) -> None:
        """The attempt does nothing any more: the search goes back to its place in the queue.

        ``submitter`` (ourselves, if not said) looks after it from now on. A hold with a fence above
        ``upto`` is a later grant, of which the caller knows nothing: it is left alone.
        """
        heir = self.me.name if submitter is None else submitter
        self._outlook.change(lambda ledger, now: holds.give_back(ledger, search, heir, upto, now))

    def forget(self, submitter: str) -> None:
        """Remove a submitter that has ended from the roster."""
        self._roster.forget(submitter)

    # -- looking -------------------------------------------------------------------------------

    def view(self) -> View:
        """The whole of it, for people."""
        seen = self._outlook.look()
        gate = gate_a.judge(self._record.lease(), self.timings)
        queue = tuple(places(seen.ledger, seen.now, seen.alive))
        return View(seen.ledger, gate, queue, seen.submitters, seen.census, seen.now)

    def ledger(self) -> Ledger:
        """The ledger as it is now, restored first if it was lost."""
        return self._outlook.ledger()[0]

    def submitters(self) -> Mapping[str, Presence]:
        """Everybody who submits here, by name."""
        return self._roster.read()

    def overdue(self) -> dict[str, int]:
        """Reserved holds that nobody alive can stand behind any more, with their fences."""
        seen = self._outlook.look()
        silent = {name: presence.silent_for for name, presence in seen.submitters.items()}
        situation = Situation(seen.now, seen.alive, seen.census)
        return holds.overdue(seen.ledger, silent, situation, self.timings)
