"""Removing what a process left that died at the wrong moment: files nobody will ask for again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from blastyard.domain.errors import NotFound
from blastyard.engine.port import Leavings
from blastyard.results.files import SearchFiles
from blastyard.service.task import Tasks
from blastyard.store.port import SearchStore

EVERY: Final = timedelta(hours=1)
UNSTORED: Final = timedelta(days=1)
"""How long a folder without a search is left alone: its search may be about to be stored."""


class Tidy:
    """Looks through the folders of all searches, at most once an hour, beginning with the first."""

    def __init__(
        self,
        store: SearchStore,
        files: SearchFiles,
        engine: Leavings,
        tasks: Tasks,
        monotonic: Callable[[], float],
    ) -> None:
        self._store = store
        self._files = files
        self._engine = engine
        self._tasks = tasks
        self._monotonic = monotonic
        self._next_at = float("-inf")

    def __call__(self) -> None:
        """Tidy up if it is time."""
        now = self._monotonic()
        if now < self._next_at:
            return
        self._next_at = now + EVERY.total_seconds()
        for search_id in self._files.ids():
            self._look_at(search_id)

    def _look_at(self, search_id: str) -> None:
        old = self._files.age(search_id) >= UNSTORED
        attempts = self._files.has_attempts(search_id)
        if not old and not attempts:
            return
        try:
            search = self._store.get(search_id)
        except NotFound:
            if old:
                self._files.remove(search_id)
            return
        if attempts and search.state.is_terminal:
            self._engine.discard(self._tasks.remains(search))
