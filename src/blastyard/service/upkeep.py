"""What a worker does now and then besides searches."""

from __future__ import annotations

from blastyard.domain.search import DatabaseState
from blastyard.service.databases import Databases
from blastyard.service.retention import Retention
from blastyard.service.window import Window


class Upkeep:
    """Publishes what the queue does not know yet, deletes results whose time has come, and looks
    again at databases that are being copied."""

    def __init__(self, window: Window, retention: Retention, databases: Databases) -> None:
        self._window = window
        self._retention = retention
        self._databases = databases

    def __call__(self) -> None:
        """Once; cheap when there is nothing to do."""
        self._window.refill()
        self._retention.apply()
        for database in self._databases.list():
            if database.state is DatabaseState.COPYING:
                self._databases.refresh(database.name)
