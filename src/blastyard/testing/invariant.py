"""The invariants of admission, checked against what really happens.

The observer sees every write to the shared stores, every command that starts and ends, and who is
told to be inside Gate A; no simulated process sees as much. What it finds is the history's first
violation, and the run ends there.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Final

from blastyard.admission.ledger import HoldState
from blastyard.admission.port import LEASE, LEDGER, Snapshot
from blastyard.domain.job import TRANSITIONS, State
from blastyard.domain.search import Search
from blastyard.engine.port import Exited, Task
from blastyard.testing.engine import FakeRun
from blastyard.testing.lease_invariant import LeaseInvariant
from blastyard.testing.ledger_invariant import LedgerInvariant

if TYPE_CHECKING:
    from blastyard.testing.actor import Actor
    from blastyard.testing.world import World

GRANTS: Final = 5
"""So many times a search may be granted a slot before it may be given up for dead."""
PLANS_IN_WINDOW: Final = 150
PLANS_IN_TROUBLE: Final = 600
"""Where a third of all calls fail, most plans are made anew, and no time passes in between."""
WINDOW_SECONDS: Final = 30.0
STEPS_IN_WINDOW: Final = 60
"""A waiting search that is stepped more often in half a minute does not wait."""


class Observer:
    """Checks everything that happens in a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.gate_a = LeaseInvariant(world)
        self.ledger_rules = LedgerInvariant(world)
        self.cancelled: set[str] = set()
        """Searches that somebody asked to cancel."""
        self.completed: Counter[str] = Counter()
        self.commands_ended: set[str] = set()
        """Searches without a row whose process has let them go."""
        self._planned: dict[str, list[float]] = {}
        self._stepped: dict[str, list[float]] = {}

    # -- the stores ----------------------------------------------------------------------------

    def document(self, actor: Actor | None, before: Snapshot, after: Snapshot) -> None:
        """A document was written."""
        if after.name == LEASE:
            self.gate_a.changed(actor, before, after)
        elif after.name == LEDGER:
            self.ledger_rules.changed(actor, before, after)

    def row(self, actor: Actor | None, before: Search, after: Search) -> None:
        """A row was written."""
        runner = self._world.everyone.get(before.runner)
        moved = (before.state, before.runner) != (after.state, after.runner)
        if before.state.is_attempt and moved and runner not in (None, actor) and not runner.dead:
            self._world.accuse("taken from the living", f"{after.id} of {runner.name}")
        if before.state is not after.state:
            self._world.note(f"row {after.id}: {before.state} -> {after.state}")
            if after.state not in TRANSITIONS[before.state]:
                self._world.accuse("illegal move", f"{after.id}: {before.state} -> {after.state}")
        elif after.state.is_terminal:
            self._world.accuse("ended twice", f"{after.id} was {before.state}")
        if before.runner != after.runner:
            self._world.note(f"row {after.id}: now looked after by {after.runner or 'nobody'}")
        match after.state:
            case State.COMPLETED:
                self._completed(after)
            case State.FAILED:
                self._failed(after)
            case State.CANCELLED if after.id not in self.cancelled:
                self._world.accuse("cancelled for no reason", after.id)

    def _completed(self, search: Search) -> None:
        self.completed[search.id] += 1
        run = search.run and self._world.machine.find(search.run)
        ended_well = run and isinstance(run.state, Exited) and run.state.failure is None
        if not run or not ended_well or run.task.search_id != search.id:
            self._world.accuse("completed without a result", search.id)
        if self.completed[search.id] > 1:
            self._world.accuse("completed twice", search.id)

    def _failed(self, search: Search) -> None:
        order = self._world.orders[search.id]
        code = search.error.code if search.error else ""
        allowed = {
            "blast_failed": order.fails,
            "capacity_timeout": self._is_over(search.capacity_deadline_at),
            "submit_slot_timeout": self._is_over(search.submit_deadline_at),
            "runner_died": self.ledger_rules.grants[search.id] >= GRANTS,
        }
        if not allowed.get(code, False):
            self._world.accuse("failed for no reason", f"{search.id}: {code}")

    def _is_over(self, deadline: datetime | None) -> bool:
        """Whether the deadline has come, as far as can be told after a clock was put back."""
        world = self._world
        return deadline is not None and (world.clock_was_set or world.clock.now() >= deadline)

    # -- commands ------------------------------------------------------------------------------

    def starts(self, actor: Actor, task: Task, deadline: float | None) -> None:
        """The engine is asked to start a command."""
        name, world = task.search_id, self._world
        stay = self.gate_a.stay_of(name, task.attempt)
        if stay is None or stay.deadline <= world.now:
            world.accuse("started without trust", f"{actor.name}: {name}")
        elif deadline is None or deadline > stay.deadline:
            world.accuse("started beyond the lease", f"{name} until {deadline}")

    def started(self, actor: Actor, task: Task) -> None:
        """A command starts."""
        name, world = task.search_id, self._world
        world.note(f"START {name} attempt {task.attempt}")
        world.machine.tick()
        if any(run.is_live and run.task.search_id == name for run in world.machine.runs):
            world.accuse("runs twice at once", name)
        row = world.searches.rows.get(name)
        if row is not None and (row.state.is_terminal or row.attempt != task.attempt):
            world.accuse("started behind the row", f"{name} attempt {task.attempt}: {row.state}")
        if not self.ledger_rules.was_granted(name, task.attempt, actor.name):
            world.accuse("started without a grant", f"{name} attempt {task.attempt}")
        if name in self.commands_ended:
            world.accuse("started after its end", name)
        stay = self.gate_a.stay_of(name, task.attempt)
        if stay is None or not self._is_inside(stay.holder):
            world.accuse("started beside the lease", f"{actor.name}: {name}")

    def _is_inside(self, holder: str) -> bool:
        return self.gate_a.lease.holder_identity == holder

    def extended(self, run: FakeRun | None) -> None:
        """A command may run on, without a deadline: only on the strength of its own hold."""
        self.ledger_rules.slots()
        ledger = self.ledger_rules.ledger
        if run is None or not run.is_live or ledger is None or not ledger.is_whole:
            return
        hold = ledger.holds.get(run.task.search_id)
        if hold is None or hold.attempt != run.task.attempt or hold.state is HoldState.RESERVED:
            self._world.accuse("runs on unconfirmed", run.task.search_id)

    def planned(self, who: str) -> None:
        """A worker made a plan. A loop that is driven by itself shows here."""
        times = self._planned.setdefault(who, [])
        times.append(self._world.now)
        most = PLANS_IN_TROUBLE if self._world.in_trouble else PLANS_IN_WINDOW
        if len(times) > most and self._world.now - times.pop(0) < 1.0:
            self._world.accuse("busy loop", f"{who} makes {most} plans in a second")

    # -- waiting -------------------------------------------------------------------------------

    def stepped(self, search: str, before: Search | None, after: Search | None) -> None:
        """A step of a search ended. Waiting must cost next to nothing."""
        if before is None or after is None or before.version != after.version:
            self._stepped.pop(search, None)
            return
        if after.state is not State.QUEUED:
            return
        times = self._stepped.setdefault(search, [])
        times.append(self._world.now)
        if len(times) > STEPS_IN_WINDOW:
            first = times.pop(0)
            if self._world.now - first < WINDOW_SECONDS:
                seconds = self._world.now - first
                detail = f"{search}: {STEPS_IN_WINDOW} steps in {seconds:.3f} s"
                self._world.accuse("a waiting search does not wait", detail)
