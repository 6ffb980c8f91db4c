"""The worker of a command's own process: begun when there is something to run.

Such a process takes on what a dead one of the same account left behind only while it has to wait
for its own turn anyway, one search at a time, and finishes what it took on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Thread

from blastyard.bootstrap.yard import Yard
from blastyard.cli.session import SHORT
from blastyard.domain.errors import NotFound
from blastyard.domain.search import Search
from blastyard.worker.inprocess import Worker


class Labour:
    """Runs searches in this process, besides what its main thread does."""

    def __init__(self, yard: Yard, say: Callable[[str], None]) -> None:
        self.is_waiting = False
        """Whether what this process was started for still waits for its turn."""
        self._yard = yard
        self._say = say
        self._worker: Worker | None = None
        self._thread: Thread | None = None
        self._own: set[str] = set()
        self._adopted = ""

    def take(self, searches: Iterable[str]) -> None:
        """Run these searches from now on."""
        ids = list(searches)
        self._own.update(ids)
        if self._worker is None:
            self._yard.gate.beat()  # reading the query may have taken longer than a sign of life
            self._worker = self._yard.make_worker(self._wants)
            self._thread = Thread(target=self._worker.run, name="worker", daemon=True)
            self._thread.start()
        self._worker.take(ids)

    def stop(self) -> None:
        """Finish the steps under way and make no more."""
        if self._worker is not None and self._thread is not None:
            self._worker.stop()
            self._thread.join()

    def unfinished(self) -> Search | None:
        """The search taken on from a dead process that is under way."""
        search = self._read(self._adopted)
        return search if search and search.state.is_attempt else None

    def _wants(self, search: Search) -> bool:
        if search.id in self._own:
            return True
        if not self.is_waiting or self._is_open(self._adopted):
            return False
        self._adopted = search.id
        self._say(f"also looking after search {search.id[:SHORT]}, whose process is gone")
        return True

    def _is_open(self, search_id: str) -> bool:
        search = self._read(search_id)
        return search is not None and not search.state.is_terminal

    def _read(self, search_id: str) -> Search | None:
        """A search of ours; ``None`` when it is not (any more)."""
        try:
            search = self._yard.store.get(search_id) if search_id else None
        except NotFound:
            return None
        return search if search and search.runner == self._yard.gate.me.name else None
