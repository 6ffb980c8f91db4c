"""What lies between a client and a server, in real time or in virtual time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from blastyard.testing import scheduler
from blastyard.testing.memory_api.feed import Signal


class Line(Protocol):
    """What lies between a client and a server, where time passes."""

    def monotonic(self) -> float:
        """Seconds."""
        ...

    def signal(self) -> Signal:
        """Something to wait for, in the time that ``monotonic`` counts."""
        ...

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call back after so many seconds, whatever has become of the caller by then."""
        ...


class RealLine:
    """Real time, on threads."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic

    def monotonic(self) -> float:
        """See ``Line``, as for the others."""
        return self._monotonic()

    def signal(self) -> Signal:
        return threading.Event()

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, call)
        timer.daemon = True
        timer.start()


class VirtualLine:
    """Time of a simulation."""

    def __init__(self, time: scheduler.Scheduler) -> None:
        self._scheduler = time

    def monotonic(self) -> float:
        """See ``Line``, as for the others."""
        return self._scheduler.now

    def signal(self) -> Signal:
        return scheduler.Signal(self._scheduler)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self._scheduler.at(self._scheduler.now + seconds, call)
