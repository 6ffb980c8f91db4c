"""Documents in this process's memory: for tests and the simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Condition
from weakref import WeakSet

from blastyard.admission.port import Snapshot, Version, Watch


class MemoryWatch:
    """Wakes when the store it belongs to changes."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._changed = False

    def wait(self, timeout_seconds: float) -> bool:
        """Block up to the timeout, in real seconds; whether something may have changed."""
        with self._condition:
            changed = self._condition.wait_for(lambda: self._changed, timeout_seconds)
            self._changed = False
            return changed

    def wake(self) -> None:
        """End a ``wait`` from any thread."""
        with self._condition:
            self._changed = True
            self._condition.notify_all()

    def close(self) -> None:
        """End a ``wait`` that is going on."""
        self.wake()


class MemoryDocumentStore:
    """Documents in a dictionary; ``now`` is the store's clock (aware, UTC).

    Thread-safe. What one instance holds is shared by everyone who has the instance: it stands for
    the server, not for a client of it.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._condition = Condition()
        self._documents: dict[str, tuple[int, bytes, datetime]] = {}
        self._last_version = 0
        self._watches: WeakSet[MemoryWatch] = WeakSet()

    def read(self, name: str) -> Snapshot:
        """The document as it is now."""
        with self._condition:
            return self._snapshot(name)

    def scan(self, prefix: str) -> Mapping[str, Snapshot]:
        """All documents whose name starts with ``prefix``, by name."""
        with self._condition:
            names = sorted(name for name in self._documents if name.startswith(prefix))
            return {name: self._snapshot(name) for name in names}

    def glance(self, name: str) -> Snapshot:
        """As :meth:`read`: there is no cache."""
        return self.read(name)

    def glance_all(self, prefix: str) -> Mapping[str, Snapshot]:
        """As :meth:`scan`: there is no cache."""
        return self.scan(prefix)

    def swap(self, name: str, version: Version, body: bytes | None) -> Snapshot | None:
        """Write when the version still is ``version``; ``None`` on a conflict."""
        with self._condition:
            if self._snapshot(name).version != version:
                return None
            self._documents.pop(name, None)
            if body is not None:
                self._last_version += 1
                self._documents[name] = (self._last_version, body, self._now())
            written = self._snapshot(name)
        self.notify()
        return written

    def notify(self) -> None:
        """Wake all watches."""
        with self._condition:
            watches = list(self._watches)
        for watch in watches:
            watch.wake()

    def watch(self) -> Watch:
        """A new watch; forgotten by the store when its owner drops it."""
        watch = MemoryWatch()
        with self._condition:
            self._watches.add(watch)
        return watch

    def close(self) -> None:
        """Nothing to let go of: the documents live as long as the instance."""

    def _snapshot(self, name: str) -> Snapshot:
        now = self._now()
        version, body, stamped_at = self._documents.get(name, (0, None, None))
        return Snapshot(name, body, version, stamped_at, now)
