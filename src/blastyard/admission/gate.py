"""The front door: one object per process, through which it queues, claims, runs and lets go.

Nothing here waits. Whoever has to wait is told why and until when asking again could help; a watch
of the document store says when something changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from blastyard.admission import ending
from blastyard.admission import hold as holds
from blastyard.admission import lease as gate_a
from blastyard.admission.entry import Entry
from blastyard.admission.inside import Inside
from blastyard.admission.ledger import HoldState, Ledger, Submitter
from blastyard.admission.markers import Marking
from blastyard.admission.observer import Denied, Inputs, Looked
from blastyard.admission.order import Situation, Turn, places, turn, turn_in
from blastyard.admission.outcome import Waiting
from blastyard.admission.outlook import GateSettings, Outlook, Surroundings
from blastyard.admission.picture import Picture
from blastyard.admission.port import DocumentStore
from blastyard.admission.queue import Queue
from blastyard.admission.record import Record
from blastyard.admission.roster import Presence, Roster
from blastyard.admission.stay import Stay
from blastyard.admission.view import Due, View, slot_taken
from blastyard.domain.errors import Unavailable


class Gate(Queue):
    """Both gates, as one process sees them."""

    def __init__(
        self,
        documents: DocumentStore,
        me: Submitter,
        settings: GateSettings,
        surroundings: Surroundings,
    ) -> None:
        self.timings = settings.timings
        self.monotonic = surroundings.monotonic
        self.record = Record(documents, settings.timings, surroundings.monotonic)
        self._roster = Roster(documents, me, surroundings.is_gone, surroundings.monotonic)
        super().__init__(me, Outlook(self.record, self._roster, me, settings, surroundings))
        self._census = surroundings.census
        self.marking = Marking(surroundings.markers, self._census, self.record)
        self.observer = surroundings.observer
        self._inside = Inside(
            self.record, self.outlook, self.marking, settings.shared, self.observer
        )
        self._entry = Entry(self._inside)
        self.reach: Callable[[], object] = lambda: None
        """Asks our own store anything; raises ``Unavailable`` while it does not answer."""

    # -- signs of life -------------------------------------------------------------------------

    def beat(self) -> None:
        """Give a sign of life, go on holding Gate A where inside, retry releases that failed.

        Called every ``timings.beat`` from a thread of its own, so that busy work starves nothing.
        Whoever cannot reach its own store gives none: nothing that waits there can go on, and what
        it ran cannot be claimed.
        """
        self._entry.renew()
        self.reach()
        self._roster.beat(self.outlook.policy)
        self.heal()

    def heal(self) -> None:
        """Bring back our claims when the ledger was lost, and the lease's age when the clock was
        put back. No effect otherwise.
        """
        self.outlook.glance()
        if gate_a.stamped_anew(self.record.lease()) is not None:
            self.record.change_lease(gate_a.stamped_anew)

    def wake(self) -> None:
        """Wake every process on the store, though no document changed."""
        self.record.documents.notify()

    def retire(self) -> None:
        """Sign off; the searches that wait here are left to others."""
        self._roster.retire()

    # -- admission -----------------------------------------------------------------------------

    def due(self) -> Due:
        """Which of our searches may claim now. Costs the same however many are waiting."""
        seen = self.outlook.glance()
        mine = self.me.name
        own = tuple(name for name, held in seen.ledger.tickets.items() if held.submitter == mine)
        if own:
            self.observer(Looked(seen.ledger, seen.census, seen.alive, self.monotonic()))
        gate = gate_a.judge(self.record.lease(), self.timings)
        if isinstance(gate, gate_a.Held):
            return Due((), own, gate.until, seen.now)
        situation = Situation(
            seen.now, seen.alive, seen.census, gate.since, self.outlook.room_since
        )
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
        inside = self._entry.holders
        return tuple(
            name
            for name, hold in ledger.holds.items()
            if hold.submitter == self.me.name
            and hold.state is HoldState.RESERVED
            and gate_a.holder_name(name, hold.attempt) not in inside
            and isinstance(holds.turn_to_resume(ledger, name, situation, self.timings), Turn)
        )

    def turn(self, search: str) -> Turn | Waiting:
        """Whether one search may claim now, and why not."""
        seen = self.outlook.glance()
        gate = gate_a.judge(self.record.lease(), self.timings)
        free_since = gate.since if isinstance(gate, gate_a.Free) else None
        situation = Situation(
            seen.now, seen.alive, seen.census, free_since, self.outlook.room_since
        )
        outcome = holds.turn_to_resume(seen.ledger, search, situation, self.timings) or turn(
            seen.ledger, search, situation, self.timings
        )
        if isinstance(outcome, Turn) and isinstance(gate, gate_a.Held):
            outcome = slot_taken(gate, outcome.position)
        if isinstance(outcome, Waiting):
            self.observer(Denied(search, outcome, Inputs.of(seen.ledger, seen.census)))
        return outcome

    def enter(self, search: str, attempt: int) -> Stay | Waiting:
        """Go inside Gate A, or say who is there.

        Raises ``Unavailable`` when it cannot be told. A claim that stands all the same is adopted
        by asking again for the same attempt, or released with the next claim or beat.
        """
        return self._entry.enter(search, attempt)

    def following(self, stay: Stay) -> str | None:
        """Which of our searches may follow in the same stay, as far as a glance tells."""
        if not stay.may_go_on:
            return None
        seen = self.outlook.glance()
        queue = places(seen.ledger, seen.now, seen.alive)
        first = next((place for place in queue if not place.obstacle), None)
        if first is None or first.ticket.submitter != self.me.name:
            return None
        room_since = self.outlook.room_since
        situation = Situation(seen.now, seen.alive, seen.census, stay.free_since, room_since)
        outcome = turn_in(queue, seen.ledger, first.search, situation, self.timings)
        return first.search if isinstance(outcome, Turn) else None

    def pass_on(self, stay: Stay, search: str, attempt: int) -> Stay | None:
        """Go on inside Gate A for another search of ours, without letting anybody else in.

        ``None`` when the lease has become somebody else's; ``stay`` is over in any case.
        """
        return self._entry.pass_on(stay, search, attempt)

    def leave(self, stay: Stay) -> None:
        """Leave Gate A. A release that fails is tried again with every beat."""
        self._entry.leave(stay)

    def flush(self) -> None:
        """Be certainly out of Gate A. Raises ``Unavailable`` while a release cannot be written."""
        self._entry.flush()

    # -- the end of a search -------------------------------------------------------------------

    def end(self, search: str) -> None:
        """The search has ended: neither hold nor ticket is left."""
        self.outlook.change(lambda ledger, now: holds.end(ledger, search, now))
        self._unmark(search)

    def let_go(self, search: str) -> None:
        """As :meth:`end`, of what is ours: another may have a search of the same id."""
        mine = self.me.name

        def rule(ledger: Ledger, now: datetime) -> Ledger | None:
            held = ledger.holds.get(search) or ledger.tickets.get(search)
            return holds.end(ledger, search, now) if held and held.submitter == mine else None

        if search not in self.outlook.change(rule).holds:
            self._unmark(search)

    def _unmark(self, search: str) -> None:
        """Peers need not count it any more; what fails here is swept later."""
        with suppress(Unavailable):
            self.marking.markers.drop(search)

    def give_back(self, search: str, submitter: str | None = None, upto: int | None = None) -> None:
        """The attempt does nothing any more: the search goes back to its place in the queue.

        ``submitter`` (ourselves, if not said) looks after it from now on. A hold with a fence above
        ``upto`` is a later grant, of which the caller knows nothing: it is left alone.
        """
        heir = self.me.name if submitter is None else submitter
        after = self.outlook.change(
            lambda ledger, now: holds.give_back(ledger, search, heir, upto, now)
        )
        if search not in after.holds:
            self._unmark(search)

    def give_up(self, search: str, fence: int) -> None:
        """Nothing of this grant is alive and nobody will take it up: the slot is free."""
        after = self.outlook.change(lambda ledger, now: holds.give_up(ledger, search, fence, now))
        if search not in after.holds:
            self._unmark(search)

    def cancelled_by_peer(self, search: str) -> None:
        """A peer has removed what made it count: that is how peers cancel.

        What goes on by itself is deleted; who runs one itself finds the flag and acts on it.
        """
        after = self.outlook.change(lambda ledger, _: holds.flag_cancelled(ledger, search))
        hold = after.holds.get(search)
        if hold is not None and hold.watched:
            self.marking.markers.delete_search(hold.alias or search)
            self.give_up(search, hold.fence)

    def forget(self, submitter: str) -> None:
        """Remove a submitter that has ended from the roster."""
        self._roster.forget(submitter)

    # -- looking -------------------------------------------------------------------------------

    def view(self) -> View:
        """The whole of it, for people."""
        seen = self.outlook.look()
        gate = gate_a.judge(self.record.lease(), self.timings)
        queue = tuple(places(seen.ledger, seen.now, seen.alive))
        return View(seen.ledger, gate, queue, seen.submitters, seen.census, seen.now)

    def picture(self, *, lately: bool = False) -> Picture:
        """The whole of it for whoever may only read; ``lately`` costs nothing while followed."""
        census = self._census.glance() if lately else self._census.read()
        ledger, now = self.record.ledger(glance=lately)
        submitters = self._roster.glance() if lately else self._roster.read()
        return Picture(ledger, self.record.lease(), submitters, census, now)

    def ledger(self) -> Ledger:
        """The ledger as it is now, restored first if it was lost."""
        return self.outlook.ledger()[0]

    def now(self) -> datetime:
        """The clock by which a ``Waiting`` says until when; no other one."""
        return self.record.lease().now

    def lately(self) -> Ledger:
        """The ledger as it was lately."""
        return self.outlook.glance().ledger

    def is_ours(self, submitter: str) -> bool:
        """Whether a submitter belongs to this installation, whose store knows what it ran."""
        return submitter.endswith(self.me.installation)

    def is_cancelled(self, search: str) -> bool:
        """Whether a peer has cancelled what runs under one of our holds, as far as was seen."""
        if not self._inside.shared:
            return False
        hold = self.lately().holds.get(search)
        return hold is not None and hold.cancelled

    @property
    def is_shared(self) -> bool:
        """Whether other installations use the same gates."""
        return self._inside.shared

    def siblings(self) -> Mapping[str, Presence]:
        """Everybody of this installation: who shares its store."""
        return {name: seen for name, seen in self.submitters().items() if self.is_ours(name)}

    def submitters(self) -> Mapping[str, Presence]:
        """Everybody who submits here, by name."""
        return self._roster.read()

    def overdue(self) -> dict[str, int]:
        """Reserved holds that nobody alive can stand behind any more, with their fences."""
        seen = self.outlook.look()
        silent = {name: presence.silent_for for name, presence in seen.submitters.items()}
        situation = Situation(seen.now, seen.alive, seen.census)
        return ending.overdue(seen.ledger, silent, situation, self.timings)
