"""Time, as the rest of the program may know it.

This module is the only one that asks the operating system what time it is. Everything else is
given a :class:`Clock`, so that tests and the simulator decide what time means. Instants that are
compared *between* processes never come from here: a store stamps its documents with its own clock.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

SECOND = timedelta(seconds=1)


class Clock(Protocol):
    """What time it is, for people and for measuring."""

    def now(self) -> datetime:
        """Wall-clock time, aware, in UTC. May jump; never used to judge another process."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment of this machine's boot; never jumps."""
        ...


class SystemClock:
    """The operating system's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
