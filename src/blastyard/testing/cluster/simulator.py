"""The real cluster gate, run through one schedule of faults. Repeats exactly.

Simulated are the processes, time, the API server and its Job controller, and the commands; the
foreign programs are those that also run against a real server. Not simulated: threads within one
process inside a rule, kubeconfigs and credentials, HTTP, paged lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from blastyard.testing.actor import Actor
from blastyard.testing.cluster.execution import NOT_SUBMITTED, Execution
from blastyard.testing.cluster.outside import ClusterOutside
from blastyard.testing.cluster.schedule import ClusterSchedule
from blastyard.testing.cluster.service import Service
from blastyard.testing.cluster.stranger import StrangerProcess
from blastyard.testing.cluster.world import ClusterWorld
from blastyard.testing.schedule import Kind, Role
from blastyard.testing.simulation import Simulation, Verdict

SWEEP_SECONDS: Final = 60.0
"""Once nothing is held, no marker may be left after this, long before one ends by itself."""
_TRIES: Final = 3


class _Run(Simulation[ClusterSchedule]):
    keeper = Role(Kind.SERVE, 50)
    passing = (Execution,)
    recovery_seconds = 1400.0  # somebody foreign may have died inside Gate A
    aftermath_seconds = 700.0

    world: ClusterWorld

    def __init__(self, schedule: ClusterSchedule) -> None:
        super().__init__(schedule)
        self.world = ClusterWorld(schedule)
        self.outside = ClusterOutside(self.world)

    def _arrange(self) -> None:
        for stranger in self.schedule.strangers:
            process = self.world.strangers[stranger.name] = StrangerProcess(self.world, stranger)
            self.world.scheduler.at(stranger.arrives_at, process.begin)

    def _actor(self, slot: int, role: Role, number: int) -> Actor:
        if role.kind is Kind.EXEC:
            return self._execution(slot, role, number)
        service = Service(self.world, slot, role, number)
        service.on_crash = partial(self._boot_later, slot)
        return service

    def _execution(self, slot: int, role: Role, number: int) -> Execution:
        execution = Execution(self.world, slot, role, number)
        order = execution.order
        may_again = order.again and number < _TRIES

        def ended(outcome: str, after: float = 1.0) -> None:
            self.world.outcomes[order.name] = outcome
            if may_again and (outcome in NOT_SUBMITTED or outcome.endswith("unavailable")):
                self._boot_later(slot, after)

        execution.on_end = ended
        execution.on_crash = partial(ended, "killed")
        return execution

    # -- the phases ----------------------------------------------------------------------------

    def _put_right(self) -> None:
        self.world.note("-- nothing goes wrong from now on --")
        self.outside.put_right(max(1, self.schedule.ceiling))
        if self.schedule.keeper:
            self._boot(len(self.schedule.roles))

    def _work(self) -> float:
        theirs = sum(one.searches * one.life[1] for one in self.schedule.strangers)
        return super()._work() + theirs

    def _settle(self) -> None:
        super()._settle()
        self._run_until(lambda: not self.world.markers(), SWEEP_SECONDS)

    def _unfinished(self) -> Iterator[str]:
        yield from super()._unfinished()
        yield from (one.name for one in self.world.strangers.values() if not one.is_done)
        yield from sorted(self.world.ours())

    def _left(self) -> Iterator[tuple[str, str]]:
        yield from super()._left()
        holder = self.world.observer.gate_a.lease.holder_identity
        if holder:
            yield "lease left over", holder

    def _nothing_left(self) -> None:
        super()._nothing_left()
        for marker in self.world.markers():
            self.world.accuse("marker left over", marker)


def run(schedule: ClusterSchedule) -> Verdict[ClusterSchedule]:
    """Run one schedule to its end, or to the first violation."""
    return _Run(schedule)()
