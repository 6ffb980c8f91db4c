"""SQLAlchemy on a PostgreSQL server: short transactions, a pool, and our errors.

**Isolation** is READ COMMITTED, and what must not change between two statements is locked. An
update names the version it is about, so of two at once the second finds another version. What is
added takes a shared lock on the row of its database, which whoever removes the database must have
alone. Two that add under one id or key meet in a unique index: the second waits for the first, and
then is told so (:class:`~blastyard.store.sql_engine.Taken`). No transaction takes locks in two
places that another takes in the other order, so there are no deadlocks.

**Sequence numbers** come from the server one by one, while the row is being written. Of two that
are added at the same moment the one with the larger number may be seen first, and a number may be
missing. That is enough for what numbers are used for: whoever adds after another's ``add`` has
returned gets a larger one, and whoever turns pages goes from new to old, where a search that
becomes visible on a page already turned is one that was accepted after the reader had begun. A
reader that followed what is new by "larger than the last I saw" would miss searches; the port has
no such question, and to make it safe would cost every ``add`` a lock against all others.

**Every commit is on the disk** when it is answered, also where ``flush`` was not asked for. Here
the server dies apart from the processes that use it: had it forgotten what they were told, they
would go on with version numbers that it gives out again.

Each commit that must not be lost when a server is replaced by its standby needs synchronous
replication; that is the server's to set up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from sqlalchemy.pool import Pool, QueuePool

from blastyard.domain.errors import Unavailable
from blastyard.postgres import version
from blastyard.postgres.address import Address
from blastyard.postgres.failure import is_read_only, unavailable
from blastyard.postgres.session import LONGEST, PATIENCE, Session, connect, is_silent
from blastyard.sqlite import SCHEMA_VERSION
from blastyard.store.migrations import server
from blastyard.store.sql_engine import Taken

CONNECTIONS: Final = 10
"""How many one process opens at most."""

_WRITES: Final = "blastyard_writes"
_BEGIN: Final = f"BEGIN; {version.STORED}"
_IDLE_CONNECTIONS: Final = 5

_inherited: list[Pool] = []
"""Pools of a parent process: to close one would end the parent's sessions."""


class PostgresEngine:
    """Transactions in the database at ``url``, whose tables are made or upgraded when needed.

    ``patience`` is how long a call waits for a lock, or for one of ``connections``, and ``longest``
    how long a statement may take. Constructing raises ``Misconfigured`` for what would not go away
    by itself, ``Unavailable`` otherwise. Thread-safe; a forked child may go on using it.
    """

    def __init__(
        self,
        url: str,
        *,
        patience: timedelta = PATIENCE,
        longest: timedelta = LONGEST,
        connections: int = CONNECTIONS,
    ) -> None:
        self._address = Address.parse(url)
        self._patience = patience
        self._longest = longest
        self._process = os.getpid()
        self._closed = False
        server.upgrade(self._address)
        idle = min(connections, _IDLE_CONNECTIONS)
        self._engine = sa.create_engine(
            "postgresql+psycopg://",
            creator=self._open,
            poolclass=QueuePool,
            pool_size=idle,
            max_overflow=connections - idle,
            pool_timeout=patience.total_seconds(),
            pool_use_lifo=True,
            use_native_hstore=False,
            hide_parameters=True,
        )
        sa.event.listen(self._engine, "checkout", _refuse_ended)
        sa.event.listen(self._engine, "begin", self._begin)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Statements that each see what is committed, and change nothing."""
        with self._translated(), self._with(writes=False).begin() as connection:
            yield connection

    @contextmanager
    def writing(self, *, flush: bool = False) -> Iterator[sa.Connection]:  # noqa: ARG002
        """A transaction; committed at the end and on the disk then, or rolled back."""
        with self._translated(), self._with(writes=True).begin() as connection:
            yield connection

    def close(self) -> None:
        """Close what is idle; calls that are going on close theirs at their end."""
        self._closed = True
        self._engine.dispose()

    def _with(self, *, writes: bool) -> sa.Engine:
        if self._closed:
            raise Unavailable("store_unavailable", f"{self._address} was closed.")
        if self._process != os.getpid():
            _inherited.append(self._engine.pool)
            self._engine.dispose(close=False)
            self._process = os.getpid()
        return self._engine.execution_options(**{_WRITES: writes})

    def _open(self) -> Session:
        return connect(self._address, self._patience, longest=self._longest)

    def _begin(self, connection: sa.Connection) -> None:
        """The connections are in autocommit mode: this is where a transaction begins."""
        if not connection.get_execution_options().get(_WRITES, False):
            return
        driver: Any = connection.connection.driver_connection
        try:
            cursor = driver.execute(_BEGIN, prepare=False)
            cursor.nextset()
            found = version.number(cursor.fetchone(), self._address)
        except psycopg.Error as error:
            connection.invalidate(error)
            raise
        version.refuse_newer(found, SCHEMA_VERSION, self._address)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._unavailable(error) from error
        except sa.exc.DBAPIError as error:
            if isinstance(error.orig, psycopg.errors.UniqueViolation):
                raise Taken from error
            if not isinstance(error.orig, psycopg.Error):
                raise
            raise self._unavailable(error.orig) from error
        except sa.exc.TimeoutError as error:
            raise Unavailable(
                "store_unavailable",
                f"All connections to {self._address.place} were in use for {self._patience}.",
                "Send fewer requests at once.",
            ) from error

    def _unavailable(self, error: psycopg.Error) -> Exception:
        if is_read_only(error):
            self._engine.dispose()  # it will not become the primary again while we hold on to it
        return unavailable(error, self._address)


def _refuse_ended(session: Session, *_: object) -> None:
    """When a connection is taken from the pool: a new one in place of one that has ended."""
    if not is_silent(session):
        raise sa.exc.DisconnectionError
