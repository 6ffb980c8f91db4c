"""A worker inside a process: calls ``advance`` and comes back when told to; nothing else.

One thread follows the document store's watch and decides what to step; a small pool makes the
steps, never two of one search at once; one thread gives signs of life, so that no step, however
busy, lets a lease go stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Final

from blastyard.domain.clock import Clock
from blastyard.worker.driver import Driver, Work

STEPS: Final = 4
BEAT_AGAIN: Final = 1.0
"""Seconds after a beat that failed until the next: the lease may end before a whole one is over."""


class Worker:
    """Drives the searches that this process looks after. ``run`` returns after ``stop``."""

    def __init__(self, work: Work, clock: Clock) -> None:
        self._work = work
        self._driver = Driver(work, clock.monotonic)
        self._stopping = Event()
        self._pool = ThreadPoolExecutor(STEPS, thread_name_prefix="step")
        self._heart = Thread(target=self._beat, name="heartbeat", daemon=True)

    # -- from outside --------------------------------------------------------------------------

    def take(self, searches: Iterable[str]) -> None:
        """Drive these searches from now on."""
        self._driver.take(searches)
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
        return self._driver.active

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
            self._work.watch.close()

    # -- the threads ---------------------------------------------------------------------------

    def _round(self) -> None:
        planned = self._driver.plan()
        for search_id in self._driver.begin():
            self._pool.submit(self._step, search_id)
        delay = self._driver.pause(planned)
        if delay > 0:
            self._work.watch.wait(delay)
            self._driver.resume()

    def _step(self, search_id: str) -> None:
        if self._driver.step(search_id):
            self._work.watch.wake()

    def _beat(self) -> None:
        every = pause = self._work.gate.timings.beat.total_seconds()
        while not self._stopping.wait(pause):
            pause = every if self._driver.beat() else min(every, BEAT_AGAIN)
