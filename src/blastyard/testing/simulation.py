"""One run of a schedule: processes that come and go, phases, and what may be left at the end.

What is simulated, a machine or a cluster, is its subclasses' matter.
"""

from __future__ import annotations

import logging
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, Generic, TypeVar

from blastyard.testing.actor import Actor
from blastyard.testing.history import History, Violation
from blastyard.testing.outside import Outside
from blastyard.testing.schedule import Fault, Role, Schedule
from blastyard.testing.scheduler import HotLoop
from blastyard.testing.world import World

_LOOK_EVERY: Final = 16
"""Steps between two looks whether all is done: it is no cheap question."""

S = TypeVar("S", bound=Schedule)
S_co = TypeVar("S_co", bound=Schedule, covariant=True)


@dataclass(frozen=True, slots=True)
class Verdict(Generic[S_co]):
    """What a run came to."""

    schedule: S_co
    violation: Violation | None
    history: History
    drawn: Mapping[tuple[int, int], Fault]
    """The faults that happened."""
    steps: int
    seconds: float
    """Virtual time at the end."""
    grants: int
    calls: Mapping[int, int]
    """Per slot, how many calls its processes made to what they share."""
    outcomes: Mapping[str, str]
    """What became of submit commands, in a cluster."""

    def story(self, lines: int | None) -> str:
        """The schedule, the last of what happened (``None`` = all), and what must not have."""
        told = [*self.schedule.described(), "", *self.history.lines(lines), ""]
        return "\n".join([*told, str(self.violation)])


class Simulation(ABC, Generic[S]):
    """Call it once. ``outside`` does what comes from outside the processes."""

    keeper: ClassVar[Role]
    """What looks after what is left, once nothing goes wrong any more."""
    passing: ClassVar[tuple[type[Actor], ...]]
    """Processes that end by themselves when their one search has."""
    recovery_seconds: ClassVar[float]
    """Once nothing goes wrong any more, everything must have come to its end within this, and the
    time that all searches take one after another."""
    aftermath_seconds: ClassVar[float]
    """Once everything has ended, nothing may be left after this."""

    world: World
    outside: Outside

    def __init__(self, schedule: S) -> None:
        self.schedule = schedule
        self._numbers: dict[int, int] = {}
        self._down = 0

    def __call__(self) -> Verdict[S]:
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
        return Verdict(
            self.schedule,
            world.history.violation,
            world.history,
            world.drawn,
            world.scheduler.steps,
            world.now,
            sum(entry[2].startswith("GRANT") for entry in world.history.entries),
            dict(world.calls),
            dict(world.outcomes),
        )

    # -- processes -----------------------------------------------------------------------------

    def _set_up(self) -> None:
        for slot, role in enumerate(self.schedule.roles):
            if role.arrives_at:
                self._boot_later(slot, role.arrives_at)
            else:
                self._boot(slot)
        self._arrange()
        for deed in self.schedule.interventions:
            self.world.scheduler.at(deed.at, partial(self.outside.do, deed))

    def _arrange(self) -> None:
        """Have come what comes besides the processes of the schedule."""

    def _boot(self, slot: int) -> None:
        """Start the process of a slot, anew if it was killed."""
        world = self.world
        role = self.schedule.roles[slot] if slot < len(self.schedule.roles) else self.keeper
        self._numbers[slot] = number = self._numbers.get(slot, 0) + 1
        actor = self._actor(slot, role, number)
        world.everyone[actor.name] = actor
        world.slots[slot] = actor
        actor.begin(actor.live)

    @abstractmethod
    def _actor(self, slot: int, role: Role, number: int) -> Actor:
        """The process of a slot, which does not live yet."""

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
        self._put_right()
        self._run_until(self._is_done, self.recovery_seconds + self._work())
        if world.history.violation is None and not self._is_done():
            world.accuse("stuck", ", ".join(self._unfinished()))
        self._settle()
        if world.history.violation is None:
            self._nothing_left()

    @abstractmethod
    def _put_right(self) -> None:
        """Nothing goes wrong any more."""

    def _work(self) -> float:
        """The seconds that all searches take one after another."""
        return sum(order.seconds for order in self.schedule.orders)

    def _settle(self) -> None:
        """Give what is left its time to go."""
        thawed_at = max((actor.frozen_until for actor in self.world.slots.values()), default=0.0)
        frozen = max(0.0, thawed_at - self.world.now)
        self._run_until(self._is_clean, frozen + self.aftermath_seconds)

    def _is_over(self) -> bool:
        return self.world.history.violation is not None

    def _run_until(self, true: Callable[[], bool], seconds: float) -> None:
        """Run until it is true, looked at now and then; at most for so long."""
        scheduler = self.world.scheduler

        def stop() -> bool:
            return self._is_over() or (scheduler.steps % _LOOK_EVERY == 0 and true())

        scheduler.run(stop, scheduler.now + seconds)

    def _is_done(self) -> bool:
        last = max([self.schedule.trouble_until, *(order.at for order in self.schedule.orders)])
        if self.world.now < last or self._down:
            return False
        return next(self._unfinished(), None) is None

    def _unfinished(self) -> Iterator[str]:
        """What goes on, in words."""
        for row in self.world.searches.rows.values():
            if not row.state.is_terminal:
                yield f"{row.id} {row.state}/{row.phase} of {row.runner}"
        for actor in self.world.slots.values():
            if not actor.dead and (isinstance(actor, self.passing) or actor.has_orders):
                yield actor.name

    def _is_clean(self) -> bool:
        return next(self._left(), None) is None

    def _nothing_left(self) -> None:
        for rule, detail in self._left():
            self.world.accuse(rule, detail)

    def _left(self) -> Iterator[tuple[str, str]]:
        """What must not be left, by the rule that it breaks."""
        ledger = self.world.observer.ledger_rules.ledger
        if ledger is not None:
            yield from (("hold left over", name) for name in ledger.holds)
            yield from (("ticket left over", name) for name in ledger.tickets)


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
