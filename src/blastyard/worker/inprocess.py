"""A worker inside a process: calls ``advance`` and comes back when told to; nothing else.

One thread follows the document store's watch and decides what to step; a small pool makes the
steps, never two of one search at once; one thread gives signs of life, so that no step, however
busy, lets a lease go stale.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Thread
from typing import Final, TypeVar

from blastyard.admission.gate import Gate
from blastyard.admission.port import Watch
from blastyard.domain.clock import Clock
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
STEPS: Final = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Work:
    """What a worker drives."""

    advance: Callable[[str], Done | Wait]
    sweep: Callable[[Callable[[Search], bool]], Swept]
    gate: Gate
    watch: Watch
    wants: Callable[[Search], bool]
    """Whether to adopt one more search that a dead process left behind."""
    upkeep: Callable[[], None] = lambda: None
    """Called with every sweep: retention and the like."""


class Worker:
    """Drives the searches that this process looks after. ``run`` returns after ``stop``."""

    def __init__(self, work: Work, clock: Clock) -> None:
        self._work = work
        self._clock = clock
        self._agenda = Agenda(clock.monotonic)
        self._stopping = Event()
        self._failures: dict[str, int] = {}
        self._pool = ThreadPoolExecutor(STEPS, thread_name_prefix="step")
        self._heart = Thread(target=self._beat, name="heartbeat", daemon=True)
        self._sweep_at = float("-inf")

    # -- from outside --------------------------------------------------------------------------

    def take(self, searches: Iterable[str]) -> None:
        """Drive these searches from now on."""
        for search_id in searches:
            self._agenda.wake(search_id)
        self._work.watch.wake()

    def wake(self, search_id: str) -> None:
        """Step this search at once: something of it has changed."""
        self.take([search_id])

    def stop(self) -> None:
        """Make no further step; ``run`` returns when those under way have ended."""
        self._stopping.set()
        self._work.watch.wake()

    @property
    def active(self) -> int:
        """How many searches this worker drives."""
        return len(self._agenda)

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Work until stopped, or until ``until()`` after any change."""
        self._heart.start()
        try:
            while not self._stopping.is_set() and not until():
                self._round()
        finally:
            self._stopping.set()
            self._pool.shutdown(wait=True)
            self._heart.join()

    # -- the loop ------------------------------------------------------------------------------

    def _round(self) -> None:
        pause = _safely(self._plan, default=RETRY.total_seconds())
        for search_id in self._agenda.begin():
            self._pool.submit(self._step, search_id)
        delay = min(pause, self._agenda.next_in())
        if delay > 0:
            self._work.watch.wait(delay)
            self._agenda.wake_running()

    def _plan(self) -> float:
        """Sweep if it is time, note who is due; seconds until planning again could help."""
        now = self._clock.monotonic()
        waiting = False
        due = self._work.gate.due()
        for search_id in due.waiting:
            waiting = True
            self._agenda.know(search_id)
        for search_id in due.searches:
            self._agenda.wake(search_id)
        every = (SWEEP_WAITING if waiting else SWEEP).total_seconds()
        if now - self._sweep_at >= every:
            self._sweep_at = now
            for search_id in self._work.sweep(self._work.wants).adopted:
                self._agenda.wake(search_id)
            self._work.upkeep()
        pause = self._sweep_at + every - self._clock.monotonic()
        if due.until is not None:
            pause = min(pause, (due.until - due.now).total_seconds())
        return max(0.0, pause)

    def _step(self, search_id: str) -> None:
        outcome: Done | Wait | None = None
        try:
            outcome = self._work.advance(search_id)
            self._failures.pop(search_id, None)
        except Unavailable as error:
            LOG.warning("search %s: %s", search_id, error)
        except Exception:
            LOG.exception("search %s: a step failed", search_id)
        finally:
            running = isinstance(outcome, Wait) and outcome.phase == State.RUNNING
            self._agenda.finish(search_id, self._delay(search_id, outcome), running=running)
            self._work.watch.wake()

    def _delay(self, search_id: str, outcome: Done | Wait | None) -> float | None:
        match outcome:
            case Done():
                return None
            case Wait(delay=delay):
                return delay.total_seconds()
            case _:
                count = self._failures[search_id] = self._failures.get(search_id, 0) + 1
                return min(30.0, RETRY.total_seconds() * 2.0 ** (count - 1))

    def _beat(self) -> None:
        every = self._work.gate.timings.beat.total_seconds()
        while not self._stopping.wait(every):
            _safely(self._work.gate.beat, default=None)


def _safely(call: Callable[[], T], default: T) -> T:
    """What the next round will try again anyway must not end the worker."""
    try:
        return call()
    except BlastyardError as error:
        LOG.warning("%s", error)
    except Exception:
        LOG.exception("unexpected")
    return default
