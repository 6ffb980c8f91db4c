"""The real cluster gate, run through one schedule of faults. Repeats exactly.

Simulated are the processes, time, the API server and its Job controller, and the commands; the
foreign programs are those that also run against a real server. Not simulated: threads within one
process inside a rule, kubeconfigs and credentials, HTTP, paged lists.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from blastyard.testing.cluster.execution import NOT_SUBMITTED, Execution
from blastyard.testing.cluster.outside import Outside
from blastyard.testing.cluster.schedule import ClusterOrder, ClusterSchedule
from blastyard.testing.cluster.service import Service
from blastyard.testing.cluster.stranger import StrangerProcess
from blastyard.testing.cluster.world import ClusterWorld
from blastyard.testing.history import History, Violation
from blastyard.testing.schedule import Fault, Kind, Role
from blastyard.testing.scheduler import HotLoop

RECOVERY_SECONDS: Final = 1400.0
"""Once nothing goes wrong any more, everything must have come to its end within this: somebody
foreign may have died inside Gate A, and the time all searches take one after another."""
AFTERMATH_SECONDS: Final = 700.0
"""Once everything has ended, nothing may be left in the cluster after this."""
SWEEP_SECONDS: Final = 60.0
"""And then no marker either, long before one ends by itself."""
_LOOK_EVERY: Final = 16
_KEEPER: Final = Role(Kind.SERVE, 50)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run came to."""

    schedule: ClusterSchedule
    violation: Violation | None
    history: History
    drawn: Mapping[tuple[int, int], Fault]
    steps: int
    seconds: float
    grants: int
    calls: Mapping[int, int]
    """Per slot, how many requests of its processes arrived at the API server."""
    outcomes: Mapping[str, str]


class _Run:
    def __init__(self, schedule: ClusterSchedule) -> None:
        self.schedule = schedule
        self.world = ClusterWorld(schedule)
        self.outside = Outside(self.world)
        self._numbers: dict[int, int] = {}
        self._down = 0

    def __call__(self) -> Verdict:
        world = self.world
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
            dict(world.requests),
            dict(world.outcomes),
        )

    def _set_up(self) -> None:
        world = self.world
        for slot, role in enumerate(self.schedule.roles):
            if role.arrives_at:
                self._boot_later(slot, role.arrives_at)
            else:
                self._boot(slot)
        for stranger in self.schedule.strangers:
            process = world.strangers[stranger.name] = StrangerProcess(world, stranger)
            world.scheduler.at(stranger.arrives_at, process.begin)
        for event in self.schedule.events:
            world.scheduler.at(event.at, partial(self.outside.do, event))

    def _boot(self, slot: int) -> None:
        world = self.world
        role = self.schedule.roles[slot] if slot < len(self.schedule.roles) else _KEEPER
        self._numbers[slot] = number = self._numbers.get(slot, 0) + 1
        if role.kind is Kind.EXEC:
            self._boot_execution(slot, role, number)
            return
        service = Service(world, slot, role, number)
        world.everyone[service.name] = service
        world.slots[slot] = service
        service.on_crash = lambda seconds: self._boot_later(slot, seconds)
        service.begin(service.live)

    def _boot_execution(self, slot: int, role: Role, number: int) -> None:
        world = self.world
        order = next(order for order in self.schedule.orders if order.slot == slot)
        assert isinstance(order, ClusterOrder)
        execution = Execution(world, slot, role, number)
        world.everyone[execution.name] = execution
        world.slots[slot] = execution
        may_again = order.again and number < 3

        def ended(outcome: str, after: float = 1.0) -> None:
            world.outcomes[order.name] = outcome
            if may_again and (outcome in NOT_SUBMITTED or outcome.endswith("unavailable")):
                self._boot_later(slot, after)

        execution.on_end = ended
        execution.on_crash = lambda seconds: ended("killed", seconds)
        execution.begin(execution.live)

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
        world.note("-- nothing goes wrong from now on --")
        self.outside.put_right(max(1, self.schedule.ceiling))
        if self.schedule.keeper:
            self._boot(len(self.schedule.roles))
        work = sum(order.seconds for order in self.schedule.orders)
        work += sum(one.searches * one.life[1] for one in self.schedule.strangers)
        world.scheduler.run(self._is_settled, world.now + RECOVERY_SECONDS + work)
        if world.history.violation is None and not self._is_done():
            world.accuse("stuck", self._unfinished())
        world.scheduler.run(self._is_clean, world.now + AFTERMATH_SECONDS)
        world.scheduler.run(self._is_swept, world.now + SWEEP_SECONDS)
        if world.history.violation is None:
            self._nothing_left()

    def _is_over(self) -> bool:
        return self.world.history.violation is not None

    def _is_settled(self) -> bool:
        if self._is_over():
            return True
        return self.world.scheduler.steps % _LOOK_EVERY == 0 and self._is_done()

    def _is_done(self) -> bool:
        last = max([self.schedule.trouble_until, *(order.at for order in self.schedule.orders)])
        return self.world.now >= last and not self._down and not self._unfinished()

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
            if not actor.dead and (isinstance(actor, Execution) or actor.has_orders)
        ]
        strangers = [one.name for one in world.strangers.values() if not one.is_done]
        return ", ".join(rows + alive + strangers + sorted(world.ours()))

    def _is_clean(self) -> bool:
        if self._is_over():
            return True
        return self.world.scheduler.steps % _LOOK_EVERY == 0 and not self._left()

    def _is_swept(self) -> bool:
        if self._is_over():
            return True
        return self.world.scheduler.steps % _LOOK_EVERY == 0 and not self.world.markers()

    def _left(self) -> list[tuple[str, str]]:
        world = self.world
        ledger = world.observer.ledger_rules.ledger
        left: list[tuple[str, str]] = []
        if ledger is not None:
            left += [("hold left over", name) for name in ledger.holds]
            left += [("ticket left over", name) for name in ledger.tickets]
        if world.observer.gate_a.lease.holder_identity:
            left.append(("lease left over", world.observer.gate_a.lease.holder_identity))
        return left

    def _nothing_left(self) -> None:
        for rule, detail in self._left():
            self.world.accuse(rule, detail)
        for marker in self.world.markers():
            self.world.accuse("marker left over", marker)


@contextmanager
def _faults_in_logs(world: ClusterWorld) -> Iterator[None]:
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


def run(schedule: ClusterSchedule) -> Verdict:
    """Run one schedule to its end, or to the first violation."""
    return _Run(schedule)()
