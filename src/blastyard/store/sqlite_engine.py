"""SQLAlchemy on one SQLite file: real transactions, a pool, and our errors.

The driver's own idea of when a transaction begins is switched off (the connections are in
autocommit mode); each one begins here, explicitly, as a reader's or as a writer's.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.pool import Pool, QueuePool

from blastyard import sqlite
from blastyard.domain.errors import Unavailable
from blastyard.store import migrations

_BEGIN: Final = "blastyard_begin"
_READ: Final = ("BEGIN",)
_WRITE: Final = ("PRAGMA synchronous=NORMAL", "BEGIN IMMEDIATE")
_FLUSH: Final = ("PRAGMA synchronous=FULL", "BEGIN IMMEDIATE")

_IDLE_CONNECTIONS: Final = 4
_MORE_CONNECTIONS: Final = 60

_inherited: list[Pool] = []
"""Pools of a parent process: SQLite forbids their use, closing included, after a fork."""


class SqliteEngine:
    """Transactions on the file at ``path``; errors leave as ``Unavailable``."""

    def __init__(self, path: Path, patience: timedelta) -> None:
        migrations.upgrade(path)
        self._path = path
        self._file = sqlite.identity(path)
        self._patience = patience
        self._process = os.getpid()
        self._closed = False
        self._engine = sa.create_engine(
            "sqlite://",
            creator=self._open,
            poolclass=QueuePool,
            pool_size=_IDLE_CONNECTIONS,
            max_overflow=_MORE_CONNECTIONS,
            pool_timeout=patience.total_seconds(),
        )
        sa.event.listen(self._engine, "begin", self._begin)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees one state of the file, and changes nothing."""
        with self._translated(), self._with(_READ).begin() as connection:
            yield connection

    @contextmanager
    def writing(self, *, flush: bool = False) -> Iterator[sa.Connection]:
        """A transaction that nobody else writes beside; committed at the end, or rolled back.

        ``flush``: the commit is on the disk, safe from a power cut, when this returns.
        """
        mode = _FLUSH if flush else _WRITE
        with (
            self._translated(),
            sqlite.turn(self._path, self._patience),
            self._with(mode).begin() as connection,
        ):
            yield connection

    def close(self) -> None:
        """Close what is idle; calls that are going on close theirs at their end."""
        self._closed = True
        self._engine.dispose()

    def _with(self, mode: tuple[str, ...]) -> sa.Engine:
        if self._closed:
            raise Unavailable("store_unavailable", f"{self._path} was closed.")
        if self._process != os.getpid():
            _inherited.append(self._engine.pool)
            self._engine.dispose(close=False)
            self._process = os.getpid()
        sqlite.refuse_replaced(self._path, self._file)
        return self._engine.execution_options(**{_BEGIN: mode})

    def _open(self) -> sqlite3.Connection:
        sqlite.refuse_replaced(self._path, self._file)
        return sqlite.connect(self._path, self._patience)

    def _begin(self, connection: sa.Connection) -> None:
        mode = connection.get_execution_options().get(_BEGIN, _READ)
        driver: Any = connection.connection.driver_connection
        for statement in mode:
            driver.execute(statement)
        if mode is not _READ:
            sqlite.refuse_newer(sqlite.schema_version(driver), self._path)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            with sqlite.translated(self._path):
                yield
        except sa.exc.DBAPIError as error:
            if not isinstance(error.orig, sqlite3.Error):
                raise
            raise sqlite.unavailable(error.orig, self._path) from error
        except sa.exc.TimeoutError as error:
            raise Unavailable(
                "store_unavailable",
                f"All connections to {self._path} were in use for {self._patience}.",
                "Send fewer requests at once.",
            ) from error
