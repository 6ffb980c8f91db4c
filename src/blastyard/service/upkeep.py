"""What a worker does now and then besides searches."""

from __future__ import annotations

from collections.abc import Callable

from blastyard.admission.gate import Gate
from blastyard.domain.errors import NotFound
from blastyard.domain.search import DatabaseState
from blastyard.service.databases import Databases
from blastyard.service.retention import Retention
from blastyard.service.tidy import Tidy
from blastyard.service.window import Window
from blastyard.store.port import SearchStore


class Arrivals:
    """Looks again at databases that are being copied, and unblocks the searches that wait."""

    def __init__(self, store: SearchStore, gate: Gate, databases: Databases) -> None:
        self._store = store
        self._gate = gate
        self._databases = databases

    def __call__(self) -> None:
        """Look once."""
        for database in self._databases.list():
            if database.state is DatabaseState.COPYING:
                self._databases.refresh(database.name)
        blocked = [name for name, held in self._gate.lately().tickets.items() if held.blocked]
        for search_id in blocked:
            if self._is_ready(search_id):
                self._gate.block(search_id, None)

    def _is_ready(self, search_id: str) -> bool:
        try:
            search = self._store.get(search_id)
            database = self._store.get_database(search.request.database)
        except NotFound:
            return True
        return database.state is not DatabaseState.COPYING


class Upkeep:
    """Keeps in order what is shared with others (``tend``), publishes what the queue does not know
    yet, lets go on who waited for a database that is ready now, deletes results whose time has
    come, and tidies up."""

    def __init__(
        self,
        window: Window,
        arrivals: Arrivals,
        retention: Retention,
        tidy: Tidy,
        tend: Callable[[], None] = lambda: None,
    ) -> None:
        self._window = window
        self._arrivals = arrivals
        self._retention = retention
        self._tidy = tidy
        self._tend = tend

    def __call__(self) -> None:
        """Once; cheap when there is nothing to do."""
        self._tend()
        self._window.refill()
        self._arrivals()
        self._retention.apply()
        self._tidy()
