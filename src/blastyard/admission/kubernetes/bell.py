"""Waking those of this process that wait for a document to change."""

from __future__ import annotations

from threading import Condition, Lock
from weakref import WeakSet


class BellWatch:
    """Wakes when the bell it belongs to rings; several rings are one wake-up."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._rung = False

    def wait(self, timeout_seconds: float) -> bool:
        """Block up to the timeout, in real seconds; whether it was rung."""
        with self._condition:
            rung = self._condition.wait_for(lambda: self._rung, max(0.0, timeout_seconds))
            self._rung = False
            return rung

    def wake(self) -> None:
        """End the ``wait`` that is going on, or else the next one. From any thread."""
        with self._condition:
            self._rung = True
            self._condition.notify_all()

    def close(self) -> None:
        """End a ``wait`` that is going on."""
        self.wake()


class Bell:
    """Rings all watches of this process that somebody still holds. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._watches: WeakSet[BellWatch] = WeakSet()

    def watch(self) -> BellWatch:
        """A new watch; forgotten when its owner drops it."""
        watch = BellWatch()
        with self._lock:
            self._watches.add(watch)
        return watch

    def ring(self) -> None:
        """Wake them all."""
        with self._lock:
            watches = list(self._watches)
        for watch in watches:
            watch.wake()
