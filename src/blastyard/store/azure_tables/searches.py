"""The store: searches in one partition of one table. The package says how they lie there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from blastyard.domain.job import State
from blastyard.domain.search import Database, Event, Search
from blastyard.store import rule
from blastyard.store.azure_tables import entity, key
from blastyard.store.azure_tables.key import BEYOND, Range
from blastyard.store.azure_tables.listing import Listing
from blastyard.store.azure_tables.live import Live
from blastyard.store.azure_tables.registry import Registry
from blastyard.store.azure_tables.table import Query, Table
from blastyard.store.azure_tables.tally import Tally
from blastyard.store.azure_tables.writer import Writer
from blastyard.store.port import Filter


class AzureTablesSearchStore:
    """Searches in a table that is there and was written by no newer blastyard.

    :func:`blastyard.store.azure_tables.open_azure_tables` makes sure of that. Thread-safe; a forked
    child may go on using it.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._tally = Tally(table)
        self._live = Live(table)
        self._listing = Listing(table, self._live)
        self._registry = Registry(table, self._live.using)
        self._writer = Writer(table, self._tally, self._registry)

    def __repr__(self) -> str:
        return f"<AzureTablesSearchStore {self._table.place}>"

    def now(self) -> datetime:
        """The account's clock, or somewhat less; asks nobody."""
        return self._table.clock.now()

    def add(self, search: Search, event: Event) -> Search:
        """Store a new search and its first event; returns it as stored.

        When the id, or (user, key), is stored already, returns the stored search instead. Raises
        ``NotFound('database_unknown')`` when a database that is a name, not a path, is not
        registered (any more), and ``CallerMistake`` for what is too large.
        """
        return self._writer.add(search, event)

    def get(self, search_id: str) -> Search:
        """One search. Raises ``NotFound('search_unknown')``."""
        found = self._writer.read(search_id)
        if found is None:
            raise rule.unknown_search(search_id)
        return found

    def by_key(self, user: str, key: str) -> Search | None:
        """The search of this user with this idempotency key."""
        return self._writer.claimed(user, key)

    def resolve(self, prefix: str) -> str:
        """The one id that starts with ``prefix``; ``NotFound`` when none or several do."""
        if not key.is_possible_id(prefix):
            return rule.the_one(prefix, [])
        low = key.by_id(prefix)
        rows = self._table.rows(Query(Range(low, low + BEYOND), top=2))
        return rule.the_one(prefix, [entity.search(row).id for row in islice(rows, 2)])

    def list(self, wanted: Filter) -> Sequence[Search]:
        """Searches, newest first."""
        return self._listing(wanted)

    def counts(self) -> dict[State, int]:
        """How many searches are in each state; every state is there.

        One that ends while they are counted is counted once or not at all.
        """
        ended = self._tally.counts()
        live = self._live.states()
        return {state: ended.get(state, 0) + live[state] for state in State}

    def live(self, runner: str | None = None, *, limit: int | None = None) -> Sequence[Search]:
        """Non-terminal searches, oldest first; of one runner (empty: of nobody), or of all."""
        return self._live.of(runner, limit)

    def runners(self) -> frozenset[str]:
        """The runners of all live searches; empty among them when nobody looks after one."""
        return self._live.runners()

    def waiting(self, runner: str, *, per_user: int) -> Sequence[Search]:
        """Queued searches of one runner, the ``per_user`` first of each user; best first."""
        return self._live.waiting(runner, per_user)

    def update(self, search: Search, event: Event | None = None) -> Search:
        """Write ``search`` over the stored one of the same id and version.

        Returns it with the new version. Raises ``Stale`` and ``NotFound('search_unknown')``, and
        ``CallerMistake`` for what is too large.
        """
        return self._writer.update(search, event)

    def delete(self, search_id: str) -> None:
        """Forget a terminal search and its events.

        Raises ``NotFound('search_unknown')`` and ``Conflict('search_unfinished')``.
        """
        self._writer.delete(search_id)

    def events(self, search_id: str) -> Sequence[Event]:
        """The events of a search, oldest first. Raises ``NotFound('search_unknown')``."""
        rows = self._table.rows(Query(key.events(self.get(search_id).sequence)))
        return [entity.event(row) for row in rows]

    def add_database(self, database: Database) -> None:
        """Register; raises ``Conflict('database_exists')``, ``CallerMistake`` if too large."""
        self._registry.add(database)

    def update_database(self, database: Database) -> None:
        """Overwrite the registration of the same name; ``NotFound('database_unknown')``."""
        self._registry.overwrite(database)

    def get_database(self, name: str) -> Database:
        """Raises ``NotFound('database_unknown')`` naming the nearest registered names."""
        return self._registry.get(name)

    def list_databases(self) -> Sequence[Database]:
        """All registered databases, by name."""
        return self._registry.everything()

    def remove_database(self, name: str) -> None:
        """Forget a registration nobody uses; ``NotFound`` and ``Conflict('database_in_use')``."""
        self._registry.remove(name)

    def close(self) -> None:
        """Let go of connections."""
        self._table.close()

    def go_on(self) -> None:
        """Finish what clients that died in the midst of a deletion have left."""
        self._writer.go_on()
