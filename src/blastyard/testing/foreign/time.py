"""Time as a foreign program has it: what it really is, and how it waits."""

from __future__ import annotations

import threading
from typing import Protocol

from blastyard.domain.clock import SystemClock


class Time(Protocol):
    """Injected, so that rules are tested without waiting."""

    def now(self) -> float:
        """The true time in seconds since 1970, whatever the program's own clock says."""
        ...

    def wait(self, seconds: float) -> None:
        """Let so many seconds pass."""
        ...


class RealTime:
    """The machine's time. ``stop`` ends every wait, now and later."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._stopped = threading.Event()

    def now(self) -> float:
        """See the protocol."""
        return self._clock.now().timestamp()

    def wait(self, seconds: float) -> None:
        """See the protocol. Raises :class:`Stopped`."""
        if self._stopped.wait(max(0.0, seconds)):
            raise Stopped

    def stop(self) -> None:
        """From any thread."""
        self._stopped.set()


class Stopped(Exception):
    """The program was asked to end."""
