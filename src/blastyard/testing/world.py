"""The shared part of a simulation: machine, stores, clock, and who observes them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from blastyard.admission.ledger import Submitter
from blastyard.admission.timing import Timings
from blastyard.domain.errors import Failure
from blastyard.testing.engine import FakeMachine, FakeRun
from blastyard.testing.history import History
from blastyard.testing.invariant import Observer
from blastyard.testing.schedule import Fault, Order, Schedule
from blastyard.testing.scheduler import Scheduler
from blastyard.testing.shared_store import SharedDocuments, SharedSearches, Stores

if TYPE_CHECKING:
    from blastyard.testing.actor import Actor

EPOCH: Final = datetime(2031, 5, 1, 12, tzinfo=UTC)
TIMINGS: Final = Timings(command=timedelta(seconds=40), forgotten=timedelta(seconds=100))
"""The defaults, but a shorter longest command, so that what comes after it happens too."""
DATABASE: Final = "nt"
FAILED: Final = Failure("blast_failed", "it was to fail", "")


class WorldClock:
    """Virtual time of the machine. ``now`` is a wall clock that may jump."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.offset = 0.0

    def now(self) -> datetime:
        """See ``domain.clock``."""
        return EPOCH + timedelta(seconds=self._scheduler.now + self.offset)

    def monotonic(self) -> float:
        """See ``domain.clock``."""
        return self._scheduler.now


class World:
    """Everything that simulated processes share."""

    def __init__(self, schedule: Schedule, stores: Stores) -> None:
        self.schedule = schedule
        self.chance = random.Random(f"picks {schedule.picks}")
        self.fate = random.Random(f"fate {schedule.seed}")
        self.scheduler = Scheduler(self.chance, schedule.stickiness)
        self.clock = WorldClock(self.scheduler)
        self.history = History()
        self.machine = FakeMachine(self.clock)
        self.observer = Observer(self)
        documents, searches = stores(self.clock.now)
        self.documents = SharedDocuments(self, documents)
        self.searches = SharedSearches(self, searches)
        self.everyone: dict[str, Actor] = {}
        self.slots: dict[int, Actor] = {}
        self.points: dict[int, int] = {}
        self.begun: set[str] = set()
        self.intruders: dict[str, float] = {}
        """Foreign searches, and until when they run."""
        self.orders: dict[str, Order] = {order.name: order for order in schedule.orders}
        self.timings = TIMINGS
        self.clock_was_set = False
        self.down_until = 0.0
        self.in_trouble = True
        self.drawn: dict[tuple[int, int], Fault] = {}
        self.outcomes: dict[str, str] = {}
        """What became of submit commands, in a cluster."""

    @property
    def now(self) -> float:
        """Virtual seconds since the beginning."""
        return self.scheduler.now

    @property
    def calls(self) -> Mapping[int, int]:
        """Per slot, how many calls its processes made to stores and engine, writes twice."""
        return self.points

    def actor(self) -> Actor | None:
        """The process whose task runs; ``None`` = nobody's: the outside acts."""
        task = self.scheduler.current
        return None if task is None else self.everyone.get(task.process.name)

    def take_census(self) -> frozenset[str]:
        """All that runs, whoever started it."""
        now = self.now
        foreign = {name for name, until in self.intruders.items() if until > now}
        seen = frozenset(self.machine.live() | foreign)
        self.observer.ledger_rules.counted(seen)
        return seen

    def new_uid(self) -> str:
        """A name for a ledger."""
        return f"uid{self.chance.getrandbits(40)}"

    def finish(self, run: FakeRun, seconds: float, *, fails: bool) -> None:
        """Let a command end by itself after so many seconds."""

        def end() -> None:
            self.machine.tick()
            if fails and run.is_live:
                self.machine.fail(run.task.search_id, FAILED)

        self.scheduler.at(self.now + seconds, end)
        if run.deadline is not None:
            self.scheduler.at(run.deadline, self.machine.tick)

    def is_gone(self, submitter: Submitter) -> bool:
        """Whether a submitter's process has ended, as the operating system would tell."""
        actor = self.everyone.get(submitter.name)
        return actor is None or actor.dead

    def note(self, what: str) -> None:
        """Write an event of whoever acts now into the history."""
        actor = self.actor()
        self.history.note(self.now, "outside" if actor is None else actor.name, what)

    def accuse(self, rule: str, detail: str) -> None:
        """An invariant does not hold."""
        self.history.accuse(rule, detail, self.now)
