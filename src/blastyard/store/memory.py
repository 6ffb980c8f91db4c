"""Searches in this process's memory: for tests and the simulator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from threading import RLock

from blastyard.domain.job import State
from blastyard.domain.search import Database, Event, Search
from blastyard.store import rule
from blastyard.store.port import Filter, Stale


class MemorySearchStore:
    """Searches in dictionaries; ``now`` is the store's clock (aware, UTC).

    Thread-safe. What one instance holds is shared by everyone who has the instance: it stands for
    the server, not for a client of it.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = RLock()
        self._searches: dict[str, Search] = {}
        self._keys: dict[tuple[str, str], str] = {}
        self._events: dict[str, list[Event]] = {}
        self._databases: dict[str, Database] = {}
        self._last_sequence = 0

    def now(self) -> datetime:
        """The store's clock."""
        return self._now()

    def add(self, search: Search, event: Event) -> Search:
        """Store a new search, or return the one stored under its id or its key."""
        request = search.request
        with self._lock:
            if search.id in self._searches:
                return self._searches[search.id]
            if request.key is not None and (request.user, request.key) in self._keys:
                return self._searches[self._keys[request.user, request.key]]
            if rule.is_registered_name(request.database):
                self.get_database(request.database)
            self._last_sequence += 1
            at = self._now()
            stored = replace(search, sequence=self._last_sequence, version=1, created_at=at)
            self._searches[search.id] = stored
            self._events[search.id] = [replace(event, at=at)]
            if request.key is not None:
                self._keys[request.user, request.key] = search.id
            return stored

    def get(self, search_id: str) -> Search:
        """One search. Raises ``NotFound('search_unknown')``."""
        with self._lock:
            return self._known(search_id)

    def by_key(self, user: str, key: str) -> Search | None:
        """The search of this user with this idempotency key."""
        with self._lock:
            search_id = self._keys.get((user, key))
            return None if search_id is None else self._searches[search_id]

    def resolve(self, prefix: str) -> str:
        """The one id that starts with ``prefix``; ``NotFound`` when none or several do."""
        with self._lock:
            found = sorted(name for name in self._searches if name.startswith(prefix))
        return rule.the_one(prefix, found)

    def list(self, wanted: Filter) -> Sequence[Search]:
        """Searches, newest first."""
        with self._lock:
            # by arrival: a dictionary keeps its order, and an update does not move an entry
            found = (one for one in reversed(self._searches.values()) if rule.matches(one, wanted))
            return [*islice(found, wanted.limit)]

    def counts(self) -> dict[State, int]:
        """How many searches are in each state; every state is there."""
        with self._lock:
            counter = Counter(search.state for search in self._searches.values())
        return {state: counter[state] for state in State}

    def live(self, runner: str | None = None, *, limit: int | None = None) -> Sequence[Search]:
        """Non-terminal searches, oldest first; of one runner, or of all."""
        with self._lock:
            found = (
                search
                for search in self._searches.values()
                if not search.state.is_terminal and runner in (None, search.runner)
            )
            return [*islice(found, limit)]

    def runners(self) -> frozenset[str]:
        """The runners of all live searches; empty among them when nobody looks after one."""
        return frozenset(search.runner for search in self.live())

    def waiting(self, runner: str, *, per_user: int) -> Sequence[Search]:
        """Queued searches of one runner, the ``per_user`` first of each user; best first."""
        queued = [one for one in self.live(runner) if one.state is State.QUEUED]
        queued.sort(key=lambda one: (-one.request.priority.level, one.sequence))
        seen: Counter[str] = Counter()
        chosen = []
        for search in queued:
            seen[search.request.user] += 1
            if seen[search.request.user] <= per_user:
                chosen.append(search)
        return chosen

    def update(self, search: Search, event: Event | None = None) -> Search:
        """Write ``search`` over the row of the same id and version; raises ``Stale``."""
        with self._lock:
            if self._known(search.id).version != search.version:
                raise Stale(search.id)
            written = replace(search, version=search.version + 1)
            self._searches[search.id] = written
            if event is not None:
                self._events[search.id].append(replace(event, at=self._now()))
            return written

    def delete(self, search_id: str) -> None:
        """Forget a terminal search and its events."""
        with self._lock:
            search = self._known(search_id)
            rule.refuse_live(search)
            del self._searches[search_id], self._events[search_id]
            if search.request.key is not None:
                del self._keys[search.request.user, search.request.key]

    def events(self, search_id: str) -> Sequence[Event]:
        """The events of a search, oldest first. Raises ``NotFound('search_unknown')``."""
        with self._lock:
            self._known(search_id)
            return [*self._events[search_id]]

    def add_database(self, database: Database) -> None:
        """Register; raises ``Conflict('database_exists')``."""
        with self._lock:
            if database.name in self._databases:
                raise rule.database_exists(database.name)
            self._databases[database.name] = replace(database, created_at=self._now())

    def update_database(self, database: Database) -> None:
        """Overwrite the registration of the same name; ``NotFound('database_unknown')``."""
        with self._lock:
            self.get_database(database.name)
            self._databases[database.name] = database

    def get_database(self, name: str) -> Database:
        """Raises ``NotFound('database_unknown')`` naming the nearest registered names."""
        with self._lock:
            if name not in self._databases:
                raise rule.unknown_database(name, self._databases)
            return self._databases[name]

    def list_databases(self) -> Sequence[Database]:
        """All registered databases, by name."""
        with self._lock:
            return [self._databases[name] for name in sorted(self._databases)]

    def remove_database(self, name: str) -> None:
        """Forget a registration nobody uses; ``NotFound`` and ``Conflict('database_in_use')``."""
        with self._lock:
            self.get_database(name)
            users = [one.id for one in self.live() if one.request.database == name]
            if users:
                raise rule.database_in_use(name, users[:3])
            del self._databases[name]

    def close(self) -> None:
        """Nothing to let go of: the searches live as long as the instance."""

    def _known(self, search_id: str) -> Search:
        if search_id not in self._searches:
            raise rule.unknown_search(search_id)
        return self._searches[search_id]
