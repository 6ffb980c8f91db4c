"""The port through which searches, their events and databases are remembered.

Obligations of an implementer:

* Every write is atomic, and durable when the call returns.
* ``update`` is optimistic: it writes only when the stored version is the one given, and appends its
  event in the same transaction.
* Instants written by the store (``created_at``, ``Event.at``, ``alive_at``) are its own clock's.
* A call that could not be answered raises ``Unavailable``; the write may or may not have happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from blastyard.domain.job import State
from blastyard.domain.search import Database, Event, Search


@dataclass(frozen=True, slots=True)
class Filter:
    """Which searches to list; all conditions must hold, newest first."""

    states: frozenset[State] = frozenset()
    user: str | None = None
    tag: str | None = None
    database: str | None = None
    ids: tuple[str, ...] = ()
    before: int | None = None
    """Only sequences smaller than this: the cursor of the next page."""
    limit: int = 100


class Stale(Exception):
    """Another process changed the row; read it again."""


class SearchStore(Protocol):
    """Remembers searches. See the module docstring for what an implementer owes."""

    def now(self) -> datetime:
        """The store's own clock, UTC."""
        ...

    def add(self, search: Search, event: Event) -> Search:
        """Store a new search; returns it with sequence, version and created_at set.

        Idempotent by id. When (user, key) is taken, returns the stored search that has it instead:
        the caller compares. Raises ``NotFound('database_unknown')`` when the database is a
        registered name that is not registered (any more).
        """
        ...

    def get(self, search_id: str) -> Search:
        """One search. Raises ``NotFound('search_unknown')``."""
        ...

    def by_key(self, user: str, key: str) -> Search | None:
        """The search of this user with this idempotency key."""
        ...

    def resolve(self, prefix: str) -> str:
        """The one id that starts with ``prefix`` (4 characters or more); ``NotFound`` otherwise."""
        ...

    def list(self, wanted: Filter) -> Sequence[Search]:
        """Searches, newest first."""
        ...

    def counts(self) -> dict[State, int]:
        """How many searches are in each state."""
        ...

    def live(self, runner: str | None = None, *, limit: int | None = None) -> Sequence[Search]:
        """Non-terminal searches, oldest first; of one runner (empty: of nobody), or of all."""
        ...

    def runners(self) -> frozenset[str]:
        """The runners of all non-terminal searches; empty among them: nobody looks after one."""
        ...

    def waiting(self, runner: str, *, per_user: int) -> Sequence[Search]:
        """Queued searches of one runner: of each user the first, by priority and arrival."""
        ...

    def update(self, search: Search, event: Event | None = None) -> Search:
        """Write ``search`` over the row of the same id and version.

        Returns it with the new version. Raises ``Stale`` and ``NotFound('search_unknown')``.
        """
        ...

    def delete(self, search_id: str) -> None:
        """Forget a terminal search and its events."""
        ...

    def events(self, search_id: str) -> Sequence[Event]:
        """The events of a search, oldest first."""
        ...

    def add_database(self, database: Database) -> None:
        """Register; raises ``Conflict('database_exists')``."""
        ...

    def update_database(self, database: Database) -> None:
        """Overwrite the registration of the same name; ``NotFound('database_unknown')``."""
        ...

    def get_database(self, name: str) -> Database:
        """Raises ``NotFound('database_unknown')`` naming the nearest registered names."""
        ...

    def list_databases(self) -> Sequence[Database]:
        """All registered databases, by name."""
        ...

    def remove_database(self, name: str) -> None:
        """Forget a registration. Raises ``NotFound``, and ``Conflict('database_in_use')`` when a
        non-terminal search names it (checked in the same transaction)."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
