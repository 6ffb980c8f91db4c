"""Documents in the SQLite file of an installation, by the standard library alone.

The drop-in commands start many times an hour and need nothing but this, so no ORM is imported.
What a caller may rely on beyond the port: several threads, processes and accounts may share the
file, and a process killed at any moment leaves a file the others go on with. A swap survives the
death of its process; a power cut may take the last swaps back, together with every process they
concerned.

The clock is SQLite's: the time of the machine, UTC, in milliseconds.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from blastyard import sqlite
from blastyard.admission.port import SUBMITTER, Snapshot, Version, Watch
from blastyard.admission.wakeup import Wakeup
from blastyard.domain.errors import Unavailable

# what is put into these texts is a constant
_READ: Final = f"""
    SELECT d.name, d.body, d.version, d.stamped_at, {sqlite.NOW}
    FROM (SELECT 1) LEFT JOIN documents AS d ON d.name = ?
"""  # noqa: S608
_SCAN: Final = f"""
    SELECT name, body, version, stamped_at, {sqlite.NOW}
    FROM documents WHERE name >= ? AND name < ? ORDER BY name
"""  # noqa: S608
# A replaced row is a new row, and AUTOINCREMENT never gives a number twice, whatever was deleted.
_WRITE: Final = f"""
    INSERT OR REPLACE INTO documents (name, body, stamped_at)
    SELECT ?1, ?2, {sqlite.NOW}
    WHERE ?3 = coalesce((SELECT version FROM documents WHERE name = ?1), 0)
    RETURNING name, body, version, stamped_at, stamped_at
"""  # noqa: S608
_DELETE: Final = f"""
    DELETE FROM documents WHERE name = ? AND version = ?
    RETURNING NULL, NULL, 0, NULL, {sqlite.NOW}
"""  # noqa: S608
_LAST_CHARACTER: Final = "\U0010ffff"

_Row = tuple[str | None, bytes | None, int | None, str | None, str]

_inherited: list[sqlite3.Connection] = []
"""Connections of a parent process: SQLite forbids their use, closing included, after a fork."""


class SqliteDocumentStore:
    """Documents in the table ``documents`` of the file at ``path``.

    ``upgrade(path)`` is called when the file, or its schema, is missing or old. ``patience`` is how
    long a swap waits for another process before it raises ``Unavailable``. Constructing raises
    ``Misconfigured`` for a network file system, and opens nothing yet.
    """

    def __init__(
        self,
        path: Path,
        *,
        wakeup: Wakeup,
        upgrade: Callable[[Path], None],
        patience: timedelta = sqlite.PATIENCE,
    ) -> None:
        sqlite.check_place(path)
        self._path = path
        self._wakeup = wakeup
        self._upgrade = upgrade
        self._patience = patience
        self._idle: list[sqlite3.Connection] = []
        self._file: tuple[int, int] | None = None
        self._process = os.getpid()
        self._closed = False

    def read(self, name: str) -> Snapshot:
        """The document as it is now. Raises ``Unavailable``."""
        with self._connection() as connection:
            return _snapshot(name, connection.execute(_READ, (name,)).fetchone())

    def scan(self, prefix: str) -> Mapping[str, Snapshot]:
        """All documents whose name starts with ``prefix``, by name. Raises ``Unavailable``."""
        with self._connection() as connection:
            rows = connection.execute(_SCAN, (prefix, prefix + _LAST_CHARACTER)).fetchall()
            return {row[0]: _snapshot(row[0], row) for row in rows}

    def glance(self, name: str) -> Snapshot:
        """As :meth:`read`: there is no cache."""
        return self.read(name)

    def glance_all(self, prefix: str) -> Mapping[str, Snapshot]:
        """As :meth:`scan`: there is no cache."""
        return self.scan(prefix)

    def swap(self, name: str, version: Version, body: bytes | None) -> Snapshot | None:
        """Write when the version still is ``version``; ``None`` on a conflict.

        Wakes all watches when it wrote, signs of life apart. Raises ``Unavailable``: the swap may
        have happened.
        """
        with sqlite.turn(self._path, self._patience), self._connection() as connection:
            row = self._swap(connection, name, version, body)
        if row is None:
            return None
        if not name.startswith(SUBMITTER):  # a sign of life concerns nobody who waits
            self._wakeup.notify()
        return _snapshot(name, row)

    def notify(self) -> None:
        """Wake the watches of all processes. Never raises."""
        self._wakeup.notify()

    def watch(self) -> Watch:
        """A watch of this process, to be closed by its owner."""
        return self._wakeup.watch()

    def close(self) -> None:
        """Close the connections that nobody uses at the moment, and refuse further calls."""
        self._closed = True
        _close_all(self._idle)

    def _swap(
        self, connection: sqlite3.Connection, name: str, version: Version, body: bytes | None
    ) -> _Row | None:
        connection.execute("BEGIN IMMEDIATE")
        sqlite.refuse_newer(sqlite.schema_version(connection), self._path)
        if body is not None:
            cursor = connection.execute(_WRITE, (name, body, version))
        elif version != 0:
            cursor = connection.execute(_DELETE, (name, version))
        else:  # to delete what is absent: a conflict only when it is there
            cursor = connection.execute(_READ, (name,))
        row: _Row | None = cursor.fetchone()
        cursor.close()
        connection.execute("COMMIT")
        if row is None or (body is None and row[0] is not None):
            return None
        return row

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for one call; it is closed, not reused, after any error."""
        with sqlite.translated(self._path):
            connection, idle = self._take()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
        idle.append(connection)
        if idle is not self._idle or self._closed:
            _close_all(idle)

    def _take(self) -> tuple[sqlite3.Connection, list[sqlite3.Connection]]:
        """A connection, and the list to put it back to."""
        if self._closed:
            raise Unavailable("store_unavailable", f"{self._path} was closed.")
        if self._process != os.getpid():
            _inherited.extend(self._idle)
            self._idle, self._process = [], os.getpid()
        if self._file is None:
            self._prepare()
        sqlite.refuse_replaced(self._path, self._file)
        idle = self._idle
        try:
            return idle.pop(), idle
        except IndexError:
            return sqlite.connect(self._path, self._patience), idle

    def _prepare(self) -> None:
        """Meet the file for the first time."""
        version = sqlite.stored_version(self._path)
        if version < sqlite.SCHEMA_VERSION:
            self._upgrade(self._path)
            version = sqlite.stored_version(self._path)
        sqlite.refuse_newer(version, self._path)
        self._file = sqlite.identity(self._path)


def _close_all(connections: list[sqlite3.Connection]) -> None:
    while connections:
        try:
            connection = connections.pop()
        except IndexError:  # another thread was faster
            return
        connection.close()


def _snapshot(name: str, row: _Row) -> Snapshot:
    _, body, version, stamped_at, now = row
    return Snapshot(
        name=name,
        body=body,
        version=version or 0,
        stamped_at=None if stamped_at is None else _instant(stamped_at),
        now=_instant(now),
    )


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
