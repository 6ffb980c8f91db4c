"""Searches in SQLite or PostgreSQL, by SQLAlchemy Core.

One database holds searches, events, databases and the documents of admission. In SQLite, writers
take the write lock first (``BEGIN IMMEDIATE``), so what a transaction read is still true when it
writes; PostgreSQL lets many write at once, so what must still be true then is locked here, or
written under a condition (see :mod:`blastyard.store.postgres_engine`). Readers see the last commit
and wait for nobody.

What a person was promised is flushed to the disk before the call returns: that a search is
accepted, how it ended, what is registered or deleted. The steps between survive the death of the
process, and a power cut at worst repeats them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from blastyard import sqlite
from blastyard.domain.job import State
from blastyard.domain.search import Database, Event, Search
from blastyard.store import query, registry, row, rule
from blastyard.store.port import Filter, Stale
from blastyard.store.schema import events, searches, tags
from blastyard.store.sql_engine import SqlEngine, Taken
from blastyard.store.sqlite_engine import SqliteEngine


def open_postgres_store(url: str) -> SqlSearchStore:
    """Searches in the PostgreSQL database at ``url``, whose tables are made or upgraded if needed.

    Raises ``Misconfigured`` for what would not go away by itself, a newer schema among it, and
    ``Unavailable``. Thread-safe; a forked child may go on using it.
    """
    # its libraries are not there where SQLite is all that is used
    from blastyard.store.postgres_engine import PostgresEngine  # noqa: PLC0415

    return SqlSearchStore(PostgresEngine(url))


class SqlSearchStore:
    """Searches in the SQLite file at ``place``, made or upgraded when needed, or over an engine.

    ``patience`` is how long a write waits for another process before it raises ``Unavailable``.
    Constructing raises ``Misconfigured`` for a network file system or a newer schema, and
    ``Unavailable`` when the file cannot be used. Thread-safe; a forked child may go on using it.
    """

    def __init__(
        self, place: Path | str | SqlEngine, *, patience: timedelta = sqlite.PATIENCE
    ) -> None:
        if isinstance(place, Path | str):
            place = SqliteEngine(Path(place), patience)
        self._engine: SqlEngine = place

    def now(self) -> datetime:
        """The database's clock, UTC, in milliseconds."""
        with self._engine.reading() as connection:
            return _now(connection)

    def add(self, search: Search, event: Event) -> Search:
        """Store a new search and its first event; returns it as stored.

        When the id, or (user, key), is stored already, returns the stored search instead. Raises
        ``NotFound('database_unknown')`` when a database that is a name, not a path, is not
        registered (any more).
        """
        try:
            return self._add(search, event)
        except Taken:  # by somebody who added it between our look and our write
            return self._add(search, event)

    def _add(self, search: Search, event: Event) -> Search:
        with self._engine.writing(flush=True) as connection:
            same = {"id": search.id, "user": search.request.user, "key": search.request.key}
            known = connection.execute(query.SAME, same).first()
            if known is not None:
                return row.search(known)
            if rule.is_registered_name(search.request.database):
                registry.require(connection, search.request.database)
            at = _now(connection)
            search = replace(search, version=1, created_at=at)
            sequence = connection.execute(query.NEW, row.new(search)).scalar_one()
            search = replace(search, sequence=sequence)
            if search.request.tags:
                rows = row.tag_rows(search.sequence, search.request.tags)
                connection.execute(tags.insert(), rows)
            first = {**row.new_event(search.sequence, event), "at": at}
            connection.execute(events.insert(), first)
        return search

    def get(self, search_id: str) -> Search:
        """One search. Raises ``NotFound('search_unknown')``."""
        with self._engine.reading() as connection:
            found = connection.execute(query.BY_ID, {"id": search_id}).first()
        if found is None:
            raise rule.unknown_search(search_id)
        return row.search(found)

    def by_key(self, user: str, key: str) -> Search | None:
        """The search of this user with this idempotency key."""
        with self._engine.reading() as connection:
            found = connection.execute(query.by_key(user, key)).first()
        return None if found is None else row.search(found)

    def resolve(self, prefix: str) -> str:
        """The one id that starts with ``prefix``; ``NotFound`` when none or several do."""
        with self._engine.reading() as connection:
            found = connection.execute(query.starting_with(prefix)).scalars().all()
        return rule.the_one(prefix, found)

    def list(self, wanted: Filter) -> Sequence[Search]:
        """Searches, newest first."""
        return self._searches(query.listed(wanted))

    def counts(self) -> dict[State, int]:
        """How many searches are in each state; every state is there."""
        with self._engine.reading() as connection:
            found = {each.state: each.number for each in connection.execute(query.COUNTS)}
        return {state: found.get(state.value, 0) for state in State}

    def live(self, runner: str | None = None, *, limit: int | None = None) -> Sequence[Search]:
        """Non-terminal searches, oldest first; of one runner (empty: of nobody), or of all."""
        return self._searches(query.live(runner, limit))

    def runners(self) -> frozenset[str]:
        """The runners of all live searches; empty among them when nobody looks after one."""
        with self._engine.reading() as connection:
            return frozenset(connection.execute(query.RUNNERS).scalars())

    def waiting(self, runner: str, *, per_user: int) -> Sequence[Search]:
        """Queued searches of one runner, the ``per_user`` first of each user; best first."""
        return self._searches(query.waiting(runner, per_user))

    def update(self, search: Search, event: Event | None = None) -> Search:
        """Write ``search`` over the row of the same id and version; the request stays as it was.

        Returns it with the new version. Raises ``Stale`` and ``NotFound('search_unknown')``.
        """
        written = replace(search, version=search.version + 1)
        with self._engine.writing(flush=search.state.is_terminal) as connection:
            same = {"same_id": search.id, "same_version": search.version}
            if connection.execute(query.OVER, {**row.changed(written), **same}).rowcount != 1:
                if connection.execute(query.BY_ID, {"id": search.id}).first() is None:
                    raise rule.unknown_search(search.id)
                raise Stale(search.id)
            if event is not None:
                connection.execute(query.EVENT, row.new_event(search.sequence, event))
        return written

    def delete(self, search_id: str) -> None:
        """Forget a terminal search and its events.

        Raises ``NotFound('search_unknown')`` and ``Conflict('search_unfinished')``.
        """
        with self._engine.writing(flush=True) as connection:
            found = connection.execute(query.BY_ID.with_for_update(), {"id": search_id}).first()
            if found is None:
                raise rule.unknown_search(search_id)
            rule.refuse_live(row.search(found))
            connection.execute(searches.delete().where(searches.c.id == search_id))

    def events(self, search_id: str) -> Sequence[Event]:
        """The events of a search, oldest first. Raises ``NotFound('search_unknown')``."""
        with self._engine.reading() as connection:
            found = connection.execute(query.EVENTS, {"id": search_id}).all()
        if not found:
            raise rule.unknown_search(search_id)
        return [row.event(one) for one in found]

    def add_database(self, database: Database) -> None:
        """Register; raises ``Conflict('database_exists')``."""
        try:
            with self._engine.writing(flush=True) as connection:
                registry.add(connection, replace(database, created_at=_now(connection)))
        except Taken as error:
            raise rule.database_exists(database.name) from error

    def update_database(self, database: Database) -> None:
        """Overwrite the registration of the same name; ``NotFound('database_unknown')``."""
        with self._engine.writing(flush=True) as connection:
            registry.overwrite(connection, database)

    def get_database(self, name: str) -> Database:
        """Raises ``NotFound('database_unknown')`` naming the nearest registered names."""
        with self._engine.reading() as connection:
            return registry.get(connection, name)

    def list_databases(self) -> Sequence[Database]:
        """All registered databases, by name."""
        with self._engine.reading() as connection:
            return registry.everything(connection)

    def remove_database(self, name: str) -> None:
        """Forget a registration nobody uses; ``NotFound`` and ``Conflict('database_in_use')``."""
        with self._engine.writing(flush=True) as connection:
            registry.remove(connection, name)

    def close(self) -> None:
        """Let go of files and connections."""
        self._engine.close()

    def _searches(self, rows: query.Rows) -> Sequence[Search]:
        with self._engine.reading() as connection:
            return [row.search(found) for found in connection.execute(rows)]


def _now(connection: sa.Connection) -> datetime:
    return connection.execute(query.NOW).scalar_one()
