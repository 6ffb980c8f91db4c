"""Simulated processes that pass both gates without a row: drop-in commands, doubled deliveries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from blastyard.admission.hold import Attempt
from blastyard.admission.inside import LeaseLost
from blastyard.admission.ledger import HoldState
from blastyard.admission.order import Turn
from blastyard.admission.outcome import Granted, Refused
from blastyard.admission.restoration import Claim
from blastyard.admission.stay import Stay
from blastyard.admission.ticket import Wish
from blastyard.domain.errors import Unavailable
from blastyard.engine.port import Task
from blastyard.service.entrance import Entrance, Patience, Stopped
from blastyard.service.passage import Passage
from blastyard.testing.cast import Player
from blastyard.testing.scheduler import Process, Scheduler, Signal, VirtualThread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blastyard.domain.search import Run
    from blastyard.testing.schedule import Order, Role
    from blastyard.testing.world import World

_PAUSE = 3.0
_STARVED_BEAT = 40.0
"""Seconds between two signs of life of a process whose heart gets no time to beat."""


def _wish(order: Order) -> Wish:
    return Wish(order.name, order.user, order.level)


def _task(order: Order, attempt: int) -> Task:
    here = Path("/simulated")
    return Task(order.name, attempt, ("/simulated/blastn",), here, here, "tsv")


def move_to_virtual_time(passage: Passage, scheduler: Scheduler, process: Process) -> None:
    """Give a passage that has not begun tasks for its threads, and virtual time for its waits."""
    passage._stopped = Signal(scheduler)  # type: ignore[assignment]
    passage._ended = Signal(scheduler)  # type: ignore[assignment]
    passage._never = Signal(scheduler)  # type: ignore[assignment]
    passage._heart = VirtualThread(scheduler, process, passage._beat)  # type: ignore[assignment]


class SimulatedPassage(Passage):
    """The passage of a command, in virtual time."""

    def __init__(self, player: Player, order: Order) -> None:
        scheduler = player.world.scheduler
        entrance = Entrance(
            player.gate,
            player.watch,
            player.world.clock.monotonic,
            lambda: _ignore(player.sweep(lambda _: False)),
        )
        super().__init__(entrance, _wish(order), Patience())
        move_to_virtual_time(self, scheduler, player)

    @property
    def attempt(self) -> int:
        """The number of the attempt under way."""
        return self._attempt


def _ignore(_: object) -> None:
    """Only what it did was wanted."""


class GuardedRun:
    """A command of the simulated machine, as a passage wants it."""

    def __init__(self, player: Player, task: Task, deadline: float) -> None:
        self._engine = player.engine
        self._gone = Signal(player.world.scheduler)
        self.ref: Run = player.engine.start(task, deadline, self._gone.set)

    def extend(self, deadline: float | None) -> None:
        """See the passage."""
        self._engine.extend(self.ref, deadline)

    def end(self) -> None:
        """See the passage; asking the guardian cannot fail."""
        self._engine.end(self.ref)

    def wait(self, timeout: float | None = None) -> object | None:
        """See the passage."""
        return self._gone.wait(timeout) or None


class Command(Player):
    """A drop-in command: one passage, one command, and its end."""

    def __init__(self, world: World, slot: int, role: Role, number: int) -> None:
        super().__init__(world, slot, role, number)
        self._order = next(order for order in world.schedule.orders if order.slot == slot)
        self._passage = SimulatedPassage(self, self._order)

    def _claims(self) -> Sequence[Claim]:
        return self._passage.claims()

    def live(self) -> None:
        """Wait, run, end."""
        self.world.scheduler.sleep(max(0.0, self._order.at - self.world.now))
        self.world.begun.add(self._order.name)
        self.sign_on()
        passage = self._passage
        try:
            with passage:
                passage.admit(self._start).wait()
        except (Unavailable, Stopped) as error:
            self.world.note(f"gave up: {error}")
        self.world.observer.commands_ended.add(self._order.name)
        try:
            self.gate.retire()
        except Unavailable:
            self.world.note("could not sign off")
        self.end()

    def _start(self, deadline: float) -> GuardedRun:
        return GuardedRun(self, _task(self._order, self._passage.attempt), deadline)


class Twin(Player):
    """A search without a row that was delivered twice: two tasks of one submitter try to run it.

    What a row decides elsewhere is decided by the gate alone here. Each claim has a number of its
    own; whoever finds the command running leaves it alone.
    """

    def __init__(self, world: World, slot: int, role: Role, number: int) -> None:
        super().__init__(world, slot, role, number)
        self._order = next(order for order in world.schedule.orders if order.slot == slot)
        self._attempt = 0
        self._runs = False
        self._over = Signal(world.scheduler)
        self._claim: Claim | None = None

    def _claims(self) -> Sequence[Claim]:
        return () if self._claim is None else (self._claim,)

    def live(self) -> None:
        """Both deliveries, beside each other."""
        self.world.scheduler.sleep(max(0.0, self._order.at - self.world.now))
        self.world.begun.add(self._order.name)
        self.sign_on()
        for name in ("first", "second"):
            self.world.scheduler.spawn(self, name, self._deliver)
        while not self._over.wait(_STARVED_BEAT):
            try:
                self.gate.beat()
            except Unavailable:
                continue
        while True:
            try:
                self.gate.end(self._order.name)
                self.gate.retire()
                break
            except Unavailable:
                self.world.scheduler.sleep(_PAUSE)
        self.world.observer.commands_ended.add(self._order.name)
        self.end()

    def _deliver(self) -> None:
        while not self._over.is_set() and not self._runs:
            try:
                self.gate.publish([_wish(self._order)])
                if isinstance(self.gate.turn(self._order.name), Turn):
                    self._try()
            except (Unavailable, LeaseLost):
                pass
            self._over.wait(_PAUSE)

    def _try(self) -> None:
        upto = self.gate.ledger().fence
        self._attempt += 1
        attempt = Attempt(self._order.name, self._attempt, self.name)
        stay = self.gate.enter(attempt.search, attempt.number)
        if not isinstance(stay, Stay):
            return
        try:
            match stay.reserve(attempt):
                case Granted() as granted if not self._runs and not self._over.is_set():
                    self._submit(attempt, stay, granted)
                case Refused() if self._claim is None:
                    self.gate.give_back(attempt.search, upto=upto)  # nothing of it is alive
        finally:
            self.gate.leave(stay)

    def _submit(self, attempt: Attempt, stay: Stay, granted: Granted) -> None:
        self.reach("before:update:the record of a start")
        if not stay.is_trusted:
            return
        run = GuardedRun(self, _task(self._order, attempt.number), stay.deadline)
        order = self._order
        self._claim = Claim(
            order.name, order.user, order.level, attempt.number, HoldState.SUBMITTED, self.name
        )
        confirmed = False
        try:
            confirmed = stay.confirm(attempt.search, granted.fence) and stay.is_trusted
        finally:
            if not confirmed:
                run.end()
                self._claim = None
        if confirmed:
            run.extend(None)
            self._runs = True
            run.wait()
            self._over.set()
