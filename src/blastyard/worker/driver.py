"""What a worker decides: which searches it drives, which is to be stepped, and when.

No threads in here: whoever drives calls :meth:`Driver.plan`, steps what is due, and pauses. The
worker of a process does so with threads, the simulator with virtual time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol, TypeVar

from blastyard.admission.port import Watch
from blastyard.admission.timing import Timings
from blastyard.admission.view import Due
from blastyard.domain.errors import BlastyardError, Unavailable
from blastyard.domain.job import State
from blastyard.domain.search import Search
from blastyard.service.outcome import Done, Wait
from blastyard.service.sweep import Swept
from blastyard.worker.agenda import Agenda

LOG = logging.getLogger(__name__)

SWEEP: Final = timedelta(seconds=10)
"""Between two looks for what dead processes left behind, when nothing waits."""
SWEEP_WAITING: Final = timedelta(seconds=2)
"""The same while searches of ours wait: a dead process's slot is theirs."""
RETRY: Final = timedelta(seconds=1)
"""How soon a step is tried again that could not tell what is true; doubled up to 30 s."""
LONGEST_RETRY: Final = timedelta(seconds=30)

T = TypeVar("T")


class Queue(Protocol):
    """Admission, as far as a worker asks it anything."""

    timings: Timings

    def due(self) -> Due:
        """Which of our searches may claim now."""
        ...

    def beat(self) -> None:
        """Give a sign of life."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """What a worker drives."""

    advance: Callable[[str], Done | Wait]
    sweep: Callable[[Callable[[Search], bool]], Swept]
    gate: Queue
    watch: Watch
    wants: Callable[[Search], bool]
    """Whether to adopt one more search that a dead process left behind."""
    upkeep: Callable[[], None] = lambda: None
    """Called with every sweep: retention and the like."""


class Driver:
    """Drives the searches of one process. Thread-safe where it says so."""

    def __init__(self, work: Work, monotonic: Callable[[], float]) -> None:
        self._work = work
        self._monotonic = monotonic
        self._agenda = Agenda(monotonic)
        self._failures: dict[str, int] = {}
        self._sweep_at = float("-inf")

    def take(self, searches: Iterable[str]) -> None:
        """Drive these searches from now on, each with a step at once. From any thread."""
        for search_id in searches:
            self._agenda.wake(search_id)

    @property
    def active(self) -> int:
        """How many searches are driven."""
        return len(self._agenda)

    def plan(self) -> float:
        """Sweep if it is time, note who is due; seconds until planning again could help."""
        return safely(self._plan, default=RETRY.total_seconds())

    def begin(self) -> list[str]:
        """The searches to be stepped now; each is busy until its :meth:`step` has ended."""
        return self._agenda.begin()

    def pause(self, planned: float) -> float:
        """How many seconds nothing needs to be done, if nothing changes."""
        return min(planned, self._agenda.next_in())

    def resume(self) -> None:
        """The pause has ended: look at all that run, their cancellation may have been asked for."""
        self._agenda.wake_running()

    def beat(self) -> bool:
        """Give a sign of life. Called every ``timings.beat`` from a thread of its own, and sooner
        again when it did not come about."""
        return safely(self._beaten, default=False)

    def _beaten(self) -> bool:
        self._work.gate.beat()
        return True

    def step(self, search_id: str) -> bool:
        """One step of one search. From any thread; never two of one search at once.

        Whether to plan anew now; what only has to be looked at again much later needs no plan, or
        the looks at running searches would bring about each other.
        """
        outcome: Done | Wait | None = None
        try:
            outcome = self._work.advance(search_id)
            self._failures.pop(search_id, None)
        except Unavailable as error:
            LOG.warning("search %s: %s", search_id, error)
        except Exception:
            LOG.exception("search %s: a step failed", search_id)
        running = isinstance(outcome, Wait) and outcome.phase == State.RUNNING
        delay = self._delay(search_id, outcome)
        failed = outcome is None
        again = self._agenda.finish(search_id, delay, running=running, failed=failed)
        return again or delay is None or delay < SWEEP.total_seconds()

    def _plan(self) -> float:
        now = self._monotonic()
        waiting = False
        due = self._work.gate.due()
        for search_id in due.waiting:
            waiting = True
            self._agenda.know(search_id)
        for search_id in due.searches:
            # a step that fails changes something others are told of, so it would wake itself
            self._agenda.wake(search_id, patient=True)
        every = (SWEEP_WAITING if waiting else SWEEP).total_seconds()
        if now - self._sweep_at >= every:
            self._sweep_at = now
            for search_id in self._work.sweep(self._work.wants).adopted:
                self._agenda.wake(search_id)
            self._work.upkeep()
        pause = self._sweep_at + every - self._monotonic()
        if due.until is not None:
            pause = min(pause, (due.until - due.now).total_seconds())
        return max(0.0, pause)

    def _delay(self, search_id: str, outcome: Done | Wait | None) -> float | None:
        match outcome:
            case Done():
                return None
            case Wait(delay=delay):
                return delay.total_seconds()
            case _:
                count = self._failures[search_id] = self._failures.get(search_id, 0) + 1
                return min(LONGEST_RETRY, RETRY * 2.0 ** (min(count, 10) - 1)).total_seconds()


def safely(call: Callable[[], T], default: T) -> T:
    """What the next round will try again anyway must not end the worker."""
    try:
        return call()
    except BlastyardError as error:
        LOG.warning("%s", error)
    except Exception:
        LOG.exception("unexpected")
    return default
