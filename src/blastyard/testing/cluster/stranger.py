"""Programs that are no blastyards, in a simulated cluster: the foreign submitters, unchanged."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Final

from blastyard.testing.cluster.schedule import Stranger
from blastyard.testing.cluster.wire import NAMESPACE, ObservedWire, VirtualLine
from blastyard.testing.faulty_wire import FaultyWire
from blastyard.testing.foreign.count import count, list_jobs
from blastyard.testing.foreign.kind import Pace, Rules, Setup
from blastyard.testing.foreign.submitter import ForeignSubmitter
from blastyard.testing.scheduler import Crashed, Process
from blastyard.testing.wire_fault import FINE, Trouble, WireFault
from blastyard.testing.world import EPOCH

if TYPE_CHECKING:
    from blastyard.testing.cluster.world import ClusterWorld

GRACE_SECONDS: Final = 60.0
_TROUBLES: Final = (Trouble.LOST_REQUEST, Trouble.LOST_ANSWER, Trouble.REFUSED, Trouble.BUSY)


class StrangerTime:
    """True time; the API server's clock may be another one."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world

    def now(self) -> float:
        """See ``Time``, as for the other."""
        return EPOCH.timestamp() + self._world.now

    def wait(self, seconds: float) -> None:
        self._world.scheduler.sleep(max(0.0, seconds))


class _Program(ForeignSubmitter):
    """Tells what it has counted."""

    counted: frozenset[str] = frozenset()
    busy = False
    """Whether something is being done, be it only half."""

    def step(self) -> None:
        """See the program."""
        self.busy = True
        super().step()
        self.busy = False

    def _running(self) -> int:
        if not self._setup.kind.gate_b:
            return 0
        found = count(list_jobs(self._api), self._own_now(), self._setup.rules.grace_seconds)
        self.counted = found.active
        return len(found.active)


class StrangerProcess(Process):
    """One program, its wire, and what it is about."""

    def __init__(self, world: ClusterWorld, stranger: Stranger) -> None:
        super().__init__(stranger.name)
        self.stranger = stranger
        self.inside_until: datetime | None = None
        """Until when it is inside Gate A, by the server's clock."""
        self.waiting: dict[str, float] = {}
        """Searches it has not submitted yet, and since when."""
        self._world = world
        self._chance = Random(f"stranger {world.schedule.seed} {stranger.name}")
        self._wire = FaultyWire(
            ObservedWire(world, None, stranger.name), VirtualLine(world), self._plan, self._reach
        )
        self._program: _Program | None = None
        self.live = ""
        """The search that is being submitted."""

    @property
    def is_done(self) -> bool:
        """Whether all its searches have ended."""
        return self._program is not None and self._program.is_done and not self._program.busy

    def begin(self) -> None:
        """Let it live, from now on; again after it was killed."""
        self.dead = False
        if self._program is None:
            one = self.stranger
            setup = Setup(
                one.name,
                NAMESPACE,
                one.kind,
                one.searches,
                self._world.schedule.seed,
                one.clock_error,
                1,
                one.cancel_every,
                Pace(life=one.life, merge=(1.0, 20.0), arrival=5.0),
                Rules(one.ceiling, GRACE_SECONDS),
            )
            self._program = _Program(setup, self._wire, StrangerTime(self._world), self._told)
        self._program.busy = False
        self._world.scheduler.spawn(self, "program", self._program.run)

    def crash(self, back_after: float) -> None:
        """Be killed, its command with it; what it was about to submit is lost."""
        if self.dead:
            return
        self._world.note(f"{self.name} KILLED")
        self._world.scheduler.kill(self)
        self.inside_until = None
        self.waiting.pop(self.live, None)
        self._world.scheduler.at(self._world.now + max(0.1, back_after), self.begin)

    # -- what it tells -------------------------------------------------------------------------

    def _told(self, said: dict[str, object]) -> None:
        what, search = str(said["what"]), str(said["search"])
        world = self._world
        detail = said.get("holder") or said.get("count") or said.get("detail") or ""
        world.note(f"{what} {search} {detail}")
        match what:
            case "accepted":
                self.waiting[search] = world.now
            case "acquired":
                self.live = search
                lease = world.observer.gate_a
                self.inside_until = lease.foreign_until_by_record()
                lease.check()
            case "submitting":
                self.live = search
                self._submits()
            case "submitted":
                if said["code"] == 0:
                    self.waiting.pop(search, None)
            case "releasing":
                self.inside_until = None
            case "ended":
                self.waiting.pop(search, None)
                if said["outcome"] == "cancelled":
                    world.zombies.add(search)

    def _submits(self) -> None:
        assert self._program is not None
        until = self.inside_until
        if self.stranger.kind.gate_b and until is not None and self._world.server_now() < until:
            self._world.observer.stranger_starts(self, self._program.counted)

    # -- its wire ------------------------------------------------------------------------------

    def _reach(self, at: str) -> None:
        if self.dead:
            raise Crashed
        if at[0] == "b":
            self._world.scheduler.pause()

    def _plan(self, verb: str, resource: str) -> WireFault:  # noqa: ARG002
        world = self._world
        if world.now < world.down_until:
            return WireFault(Trouble.REFUSED)
        if not world.in_trouble or self._chance.random() >= world.schedule.command_faults:
            return FINE
        return WireFault(self._chance.choice(_TROUBLES))
