"""The real gate, services and worker logic, run through one schedule of faults.

:func:`run` repeats exactly for the same schedule. What is simulated are the processes, the clock
and the machine; the stores are the memory stores behind :mod:`blastyard.testing.faulty`.

Not simulated: threads of one process inside a rule (rules touch nothing shared), real SQLite files,
real BLAST+ processes and files, the HTTP front door, clocks put forward by more than the
protocol's margin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from blastyard.domain.search import DatabaseState
from blastyard.testing import sample
from blastyard.testing.actor import Actor
from blastyard.testing.cast import Errand, Runner
from blastyard.testing.idleness import Idleness
from blastyard.testing.outside import MachineOutside
from blastyard.testing.passerby import Command, Twin
from blastyard.testing.schedule import Kind, Order, Role, Schedule
from blastyard.testing.shared_store import Stores, memory_stores
from blastyard.testing.simulation import Simulation, Verdict
from blastyard.testing.world import DATABASE, World

_PARTS: Final[dict[Kind, type[Runner | Command | Twin]]] = {
    Kind.SERVE: Runner,
    Kind.SEARCH: Runner,
    Kind.COMMAND: Command,
    Kind.TWIN: Twin,
}


class _Run(Simulation[Schedule]):
    keeper = Role(Kind.SERVE, 0)
    passing = (Command, Twin)
    recovery_seconds = 250.0
    aftermath_seconds = 30.0

    outside: MachineOutside

    def __init__(self, schedule: Schedule, stores: Stores) -> None:
        super().__init__(schedule)
        self.world = World(schedule, stores)
        self.outside = MachineOutside(self.world)
        ready = replace(sample.database(DATABASE), state=DatabaseState.READY)
        self.world.searches.add_database(ready)

    def _arrange(self) -> None:
        for order in self.schedule.orders:
            if order.posted:
                errand = self.outside.errand(self.schedule.roles[order.slot].account)
                post = partial(errand.run, partial(_post, order))
                self.world.scheduler.at(order.at, post)

    def _actor(self, slot: int, role: Role, number: int) -> Actor:
        actor = _PARTS[role.kind](self.world, slot, role, number)
        if isinstance(actor, Runner):
            actor.on_crash = partial(self._boot_later, slot)
        return actor

    def _put_right(self) -> None:
        world = self.world
        self.outside.clear_foreign()
        self.outside.put_right(self.schedule.ceiling)
        world.note("-- nothing goes wrong from now on --")
        if not any(actor.role == self.keeper and not actor.dead for actor in world.slots.values()):
            self._boot(len(self.schedule.roles))
        Idleness(world).look()

    def _left(self) -> Iterator[tuple[str, str]]:
        yield from super()._left()
        live = self.world.machine.live()
        if live:
            yield "runs on after its end", ", ".join(sorted(live))


def _post(order: Order, errand: Errand) -> None:
    errand.post(order)


def run(schedule: Schedule, stores: Stores = memory_stores) -> Verdict[Schedule]:
    """Run one schedule to its end, or to the first violation. ``stores`` makes what is behind."""
    return _Run(schedule, stores)()
