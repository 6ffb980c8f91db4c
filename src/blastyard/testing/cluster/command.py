"""Submit commands of a simulated cluster, each under a guardian that outlives its owner."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from blastyard.testing.cluster.schedule import ClusterOrder, Script
from blastyard.testing.cluster.wire import NAMESPACE, ObservedWire, VirtualLine
from blastyard.testing.faulty_wire import FaultyWire
from blastyard.testing.foreign.api import Api, Forbidden, Unanswered
from blastyard.testing.foreign.command import Command, CommandFailed, Order
from blastyard.testing.scheduler import Crashed, Process, Signal
from blastyard.testing.wire_fault import FINE, Trouble, WireFault

if TYPE_CHECKING:
    from blastyard.testing.cluster.actor import OnCluster

_FINALIZER_SECONDS: Final = {Script.SLOW: 28.0}
LATER_SECONDS: Final = 8.0
_LATE: Final = (5.5, 9.0, 15.0, 25.0)


@dataclass(frozen=True, slots=True)
class CommandEnding:
    """How a command ended."""

    by_itself: bool
    exit_code: int | None


class SubmitCommand(Process):
    """One command: a process of its own, which its guardian ends at a deadline."""

    def __init__(
        self, owner: OnCluster, order: ClusterOrder, attempt: int, deadline: float
    ) -> None:
        super().__init__(f"{order.name}/{attempt}")
        self.owner = owner
        self.order = order
        self.attempt = attempt
        self.deadline = deadline
        self.ending: CommandEnding | None = None
        self._minted: list[str] = []
        self._world = world = owner.world
        self._over = Signal(world.scheduler)
        self._chance = Random(f"command {world.schedule.seed} {self.name} {owner.name}")
        wire = FaultyWire(
            ObservedWire(world, None, "kubectl"), VirtualLine(world), self._plan, self._reach
        )
        scheduler = world.scheduler
        self._command = Command(
            Api(wire, NAMESPACE), lambda: world.clock.now().timestamp(), scheduler.sleep
        )
        world.commands.append(self)
        world.machine.started.append((order.name, attempt))
        world.observer.command_starts(self)
        scheduler.spawn(self, "command", self._run)
        scheduler.at(deadline, self._look_at_deadline)

    @property
    def is_live(self) -> bool:
        """Whether it can still do anything."""
        return self.ending is None

    # -- the guardian's side -------------------------------------------------------------------

    def extend(self, deadline: float | None) -> None:
        """See ``Running``; too late is too late."""
        if deadline is not None:
            self.deadline = deadline

    def end(self) -> None:
        """See ``Running``."""
        self.kill("asked to")

    def wait(self, timeout: float | None = None) -> CommandEnding | None:
        """See ``Running``."""
        self._over.wait(timeout)
        return self.ending

    def close(self) -> None:
        """Let go of it."""
        self.kill("let go of")

    def kill(self, why: str) -> None:
        """End it from outside."""
        if self.is_live:
            self._world.note(f"command {self.name} killed: {why}")
            self._world.scheduler.kill(self)
            self._ended(CommandEnding(by_itself=False, exit_code=None))

    def _look_at_deadline(self) -> None:
        if not self.is_live:
            return
        if self.deadline <= self._world.now:
            self.kill("deadline")
        else:
            self._world.scheduler.at(self.deadline, self._look_at_deadline)

    def _ended(self, ending: CommandEnding) -> None:
        self.ending = ending
        if ending.exit_code != 0:
            self._world.disown(self._minted)
        self._over.set()

    # -- the command's side --------------------------------------------------------------------

    def _run(self) -> None:
        try:
            code = self._submit()
        except CommandFailed as error:
            code = error.code
        except (Forbidden, Unanswered):
            code = 8
        self._world.note(f"command {self.name} ends: {code}")
        self._ended(CommandEnding(by_itself=True, exit_code=code))

    def _submit(self) -> int:
        script = self.order.script
        if script is Script.NOTHING:
            self._world.scheduler.sleep(1.0)
            return 0
        if script in (Script.FAIL, Script.HANG):
            self._command.begin(Order(self.order.name, 1))
            self._world.scheduler.sleep(1.0 if script is Script.FAIL else 1e6)
            return 7
        if script is Script.LATER:
            self._world.scheduler.at(self._world.now + LATER_SECONDS, self._made_later)
            return 0
        for _ in range(2 if script is Script.PAIR else 1):
            made = Order(self._id(), 1)
            seconds = _FINALIZER_SECONDS.get(script, self._chance.uniform(0.1, 1.1))
            self._command.submit(made, seconds)
        return 0

    def _made_later(self) -> None:
        """By somebody in the cluster, who has it from the command."""
        process = Process(f"{self.name}+")
        world = self._world
        wire = ObservedWire(world, None, "operator")
        now = world.clock.now
        command = Command(Api(wire, NAMESPACE), lambda: now().timestamp(), world.scheduler.sleep)
        made = Order(self.order.name, 1)
        world.scheduler.spawn(process, "later", lambda: command.submit(made, 0.5))

    def _id(self) -> str:
        if self.order.script not in (Script.MINT, Script.PAIR):
            return self.order.name
        minted = f"job-{self._chance.getrandbits(64):016x}"
        self._minted.append(minted)
        self._world.minted(minted, self.order.name)
        return minted

    def _reach(self, at: str) -> None:
        if self.dead:
            raise Crashed
        if at[0] == "b":
            self._world.scheduler.pause()

    def _plan(self, verb: str, resource: str) -> WireFault:
        world = self._world
        if world.now < world.down_until:
            return WireFault(Trouble.REFUSED)
        if not world.in_trouble or self._chance.random() >= world.schedule.command_faults:
            return FINE
        trouble = self._chance.choice(
            (Trouble.LOST_ANSWER, Trouble.LATE_REQUEST, Trouble.LATE_REQUEST, Trouble.REFUSED)
        )
        fault = WireFault(trouble, before=self._chance.choice(_LATE))
        world.note(f"command {self.name}: {trouble} {verb} {resource}")
        return fault
