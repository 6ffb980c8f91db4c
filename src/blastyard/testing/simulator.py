"""The real gate, services and worker logic, run through one schedule of faults.

:func:`run` repeats exactly for the same schedule. What is simulated are the processes, the clock
and the machine; the stores are the memory stores behind :mod:`blastyard.testing.faulty`.

Not simulated: threads of one process inside a rule (rules touch nothing shared), real SQLite files,
real BLAST+ processes and files, the HTTP front door, clocks put forward by more than the
protocol's margin.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from blastyard.domain.search import DatabaseState
from blastyard.testing import sample
from blastyard.testing.cast import Errand, Runner
from blastyard.testing.history import History, Violation
from blastyard.testing.idleness import Idleness
from blastyard.testing.outside import Outside
from blastyard.testing.passerby import Command, Twin
from blastyard.testing.schedule import Fault, Kind, Order, Role, Schedule
from blastyard.testing.scheduler import HotLoop
from blastyard.testing.shared_store import Stores, memory_stores
from blastyard.testing.world import DATABASE, World

RECOVERY_SECONDS: Final = 250.0
"""Once nothing goes wrong any more, everything must have come to its end within this, and the time
that all commands take one after another."""
AFTERMATH_SECONDS: Final = 30.0
"""Once everything has ended, nothing may be left in the ledger after this."""
_LOOK_EVERY: Final = 16
"""Steps between two looks whether all is done: it is no cheap question."""
_PARTS: Final[dict[Kind, type[Runner | Command | Twin]]] = {
    Kind.SERVE: Runner,
    Kind.SEARCH: Runner,
    Kind.COMMAND: Command,
    Kind.TWIN: Twin,
}
_KEEPER: Final = Role(Kind.SERVE, 0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run came to."""

    schedule: Schedule
    violation: Violation | None
    history: History
    drawn: Mapping[tuple[int, int], Fault]
    """The faults that happened."""
    steps: int
    seconds: float
    """Virtual time at the end."""
    grants: int
    calls: Mapping[int, int]
    """Per slot, how many calls its processes made to stores and engine, writes counted twice."""


class _Run:
    def __init__(self, schedule: Schedule, stores: Stores) -> None:
        self.schedule = schedule
        self.world = World(schedule, stores)
        self.outside = Outside(self.world)
        self._numbers: dict[int, int] = {}
        self._down = 0

    def __call__(self) -> Verdict:
        world = self.world
        world.searches.add_database(replace(sample.database(DATABASE), state=DatabaseState.READY))
        self._set_up()
        with _faults_in_logs(world):
            try:
                self._phases()
            except HotLoop as error:
                world.accuse("endless loop", str(error))
            except Exception as error:
                where = traceback.format_exception(error)[-2].strip()
                world.accuse("unexpected error", f"{error!r} {where}")
            finally:
                world.scheduler.end()
        grants = sum(entry[2].startswith("GRANT") for entry in world.history.entries)
        return Verdict(
            self.schedule,
            world.history.violation,
            world.history,
            world.drawn,
            world.scheduler.steps,
            world.now,
            grants,
            dict(world.points),
        )

    def _set_up(self) -> None:
        world = self.world
        for slot, role in enumerate(self.schedule.roles):
            if role.arrives_at:
                self._boot_later(slot, role.arrives_at)
            else:
                self._boot(slot)
        for order in self.schedule.orders:
            if order.posted:
                account = self.schedule.roles[order.slot].account
                errand = self.outside.errand(account)
                world.scheduler.at(
                    order.at,
                    partial(errand.run, partial(_post, order)),
                )
        for deed in self.schedule.interventions:
            world.scheduler.at(deed.at, partial(self.outside.do, deed))

    def _boot(self, slot: int) -> None:
        """Start the process of a slot, anew if it was killed."""
        world = self.world
        role = self.schedule.roles[slot] if slot < len(self.schedule.roles) else _KEEPER
        self._numbers[slot] = number = self._numbers.get(slot, 0) + 1
        actor = _PARTS[role.kind](world, slot, role, number)
        world.everyone[actor.name] = actor
        world.slots[slot] = actor
        if role.kind in (Kind.SERVE, Kind.SEARCH):
            actor.on_crash = lambda seconds: self._boot_later(slot, seconds)
        actor.begin(actor.live)

    def _boot_later(self, slot: int, seconds: float) -> None:
        self._down += 1
        self.world.scheduler.at(self.world.now + seconds, lambda: self._boot_again(slot))

    def _boot_again(self, slot: int) -> None:
        self._down -= 1
        if slot not in self.world.slots or self.world.slots[slot].dead:
            self._boot(slot)

    # -- the phases ----------------------------------------------------------------------------

    def _phases(self) -> None:
        world = self.world
        world.scheduler.run(self._is_over, self.schedule.trouble_until)
        world.in_trouble = False
        world.down_until = 0.0
        self.outside.clear_foreign()
        self.outside.put_right(self.schedule.ceiling)
        world.note("-- nothing goes wrong from now on --")
        if not any(actor.role == _KEEPER and not actor.dead for actor in world.slots.values()):
            self._boot(len(self.schedule.roles))
        Idleness(world).look()
        work = sum(order.seconds for order in self.schedule.orders)
        world.scheduler.run(self._is_settled, world.now + RECOVERY_SECONDS + work)
        if world.history.violation is None and not self._is_done():
            world.accuse("stuck", self._unfinished())
        thawed_at = max(actor.frozen_until for actor in world.slots.values())
        world.scheduler.run(self._is_clean, max(world.now, thawed_at) + AFTERMATH_SECONDS)
        if world.history.violation is None:
            self._nothing_left()

    def _is_over(self) -> bool:
        return self.world.history.violation is not None

    def _is_settled(self) -> bool:
        world = self.world
        if world.history.violation is not None:
            return True
        return world.scheduler.steps % _LOOK_EVERY == 0 and self._is_done()

    def _is_done(self) -> bool:
        world = self.world
        if world.now < self._last_event() or self._down:
            return False
        if any(not row.state.is_terminal for row in world.searches.rows.values()):
            return False
        return not any(
            isinstance(actor, Command | Twin) or actor.has_orders
            for actor in world.slots.values()
            if not actor.dead
        )

    def _is_clean(self) -> bool:
        ledger = self.world.observer.ledger_rules.ledger
        empty = ledger is None or not (ledger.holds or ledger.tickets)
        return self._is_over() or (empty and not self.world.machine.live())

    def _last_event(self) -> float:
        return max([self.schedule.trouble_until, *(order.at for order in self.schedule.orders)])

    def _unfinished(self) -> str:
        world = self.world
        rows = [
            f"{row.id} {row.state}/{row.phase} of {row.runner}"
            for row in world.searches.rows.values()
            if not row.state.is_terminal
        ]
        alive = [
            actor.name
            for actor in world.slots.values()
            if not actor.dead and (isinstance(actor, Command | Twin) or actor.has_orders)
        ]
        return ", ".join(rows + alive)

    def _nothing_left(self) -> None:
        ledger = self.world.observer.ledger_rules.ledger
        if ledger is None:
            return
        for name in ledger.holds:
            self.world.accuse("hold left over", name)
        for name in ledger.tickets:
            self.world.accuse("ticket left over", name)
        live = self.world.machine.live()
        if live:
            self.world.accuse("runs on after its end", ", ".join(sorted(live)))


@contextmanager
def _faults_in_logs(world: World) -> Iterator[None]:
    """An exception that the worker only logs is a violation here."""
    logger = logging.getLogger("blastyard.worker.driver")

    def judge(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR:
            error = record.exc_info[1] if record.exc_info else None
            world.accuse("unexpected error", f"{record.getMessage()}: {error!r}")
        return False

    logger.addFilter(judge)
    try:
        yield
    finally:
        logger.removeFilter(judge)


def _post(order: Order, errand: Errand) -> None:
    errand.post(order)


def run(schedule: Schedule, stores: Stores = memory_stores) -> Verdict:
    """Run one schedule to its end, or to the first violation. ``stores`` makes what is behind."""
    return _Run(schedule, stores)()
