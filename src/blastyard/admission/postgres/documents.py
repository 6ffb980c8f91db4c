"""Documents in the table ``documents`` of a PostgreSQL database, by psycopg alone.

Each call is one statement and one transaction. A swap is written under the condition that the
version still is the one given; of two at once the server lets one write, and the other finds that
its condition no longer holds. Versions come from a sequence, which gives no number twice. A swap
that was answered is on the server's disk. What a server tells after it was replaced by a standby
that had missed commits is not what it told before; synchronous replication prevents that.

The clock is the server's, in microseconds; every session reads the same.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from blastyard.admission.port import SUBMITTER, Snapshot, Version, Watch
from blastyard.admission.postgres.listener import CHANNEL, Listener, Pace
from blastyard.admission.postgres.pool import Pool, Row
from blastyard.domain.errors import BlastyardError
from blastyard.postgres import version as schema
from blastyard.postgres.address import Address
from blastyard.postgres.failure import translated
from blastyard.postgres.session import PATIENCE
from blastyard.sqlite import SCHEMA_VERSION

CONNECTIONS: Final = 4
"""How many one process opens at most, the one that listens apart."""

# what is put into these texts is a constant
_READ: Final = """
    SELECT d.body, d.version, d.stamped_at, clock_timestamp()
    FROM (SELECT) AS one LEFT JOIN documents AS d ON d.name = %s
"""
_SCAN: Final = """
    SELECT name, body, version, stamped_at, clock_timestamp()
    FROM documents WHERE name >= %s AND name < %s ORDER BY name
"""
_KNOWN: Final = f"({schema.STORED}) <= '{SCHEMA_VERSION:04}'"
_TOLD: Final = f"CASE WHEN %(matters)s THEN pg_notify('{CHANNEL}', %(origin)s) END"
_MAKE: Final = f"""
    WITH written AS (
        INSERT INTO documents (name, body, stamped_at)
        SELECT %(name)s, %(body)s, clock_timestamp() WHERE {_KNOWN}
        ON CONFLICT (name) DO NOTHING
        RETURNING version, stamped_at
    ) SELECT version, stamped_at, stamped_at, {_TOLD} FROM written
"""  # noqa: S608
_WRITE: Final = f"""
    WITH written AS (
        UPDATE documents SET version = DEFAULT, body = %(body)s, stamped_at = clock_timestamp()
        WHERE name = %(name)s AND version = %(version)s AND {_KNOWN}
        RETURNING version, stamped_at
    ) SELECT version, stamped_at, stamped_at, {_TOLD} FROM written
"""  # noqa: S608
_DELETE: Final = f"""
    WITH written AS (
        DELETE FROM documents WHERE name = %(name)s AND version = %(version)s AND {_KNOWN}
        RETURNING version
    ) SELECT 0, NULL::timestamptz, clock_timestamp(), {_TOLD} FROM written
"""  # noqa: S608
_NOTIFY: Final = f"SELECT pg_notify('{CHANNEL}', %s)"
_LAST_CHARACTER: Final = "\U0010ffff"


class PostgresDocumentStore:
    """Documents in the database at ``url``.

    ``upgrade(address)`` is called when the tables are missing or old. ``patience`` is how long a
    call waits for a lock or a connection before it raises ``Unavailable``. Constructing raises
    ``Misconfigured`` for a URL that is none, and opens nothing yet. Thread-safe; a forked child may
    go on using it.
    """

    def __init__(
        self,
        url: str,
        *,
        upgrade: Callable[[Address], None],
        patience: timedelta = PATIENCE,
        connections: int = CONNECTIONS,
        pace: Pace | None = None,
    ) -> None:
        self._address = Address.parse(url)
        self._upgrade = upgrade
        self._pool = Pool(self._address, patience, connections)
        self._listener = Listener(self._address, self._is_ours, pace=pace, patience=patience)
        self._token = secrets.token_hex(8)
        self._is_prepared = False

    def read(self, name: str) -> Snapshot:
        """The document as it is now. Raises ``Unavailable``."""
        self._prepare()
        (row,) = self._pool.ask(_READ, (name,), twice=True)
        return _snapshot(name, row)

    def scan(self, prefix: str) -> Mapping[str, Snapshot]:
        """All documents whose name starts with ``prefix``, by name. Raises ``Unavailable``."""
        self._prepare()
        rows = self._pool.ask(_SCAN, (prefix, prefix + _LAST_CHARACTER), twice=True)
        return {row[0]: _snapshot(row[0], row[1:]) for row in rows}

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
        self._prepare()
        if not isinstance(version, int):  # no version of this store
            return None
        if body is None and version == 0:
            found = self.read(name)
            return found if found.version == 0 else None
        matters = not name.startswith(SUBMITTER)  # a sign of life concerns nobody who waits
        words = {"name": name, "version": version, "body": body}
        change = _DELETE if body is None else _MAKE if version == 0 else _WRITE
        try:
            rows = self._pool.ask(change, {**words, "matters": matters, "origin": self._origin})
        except BlastyardError:
            self._listener.ring()  # it may have happened, and our own notices are not listened to
            raise
        if not rows:
            self._refuse_newer()  # which looks like a conflict
            return None
        if matters:
            self._listener.ring()
        number, stamped_at, now, _ = rows[0]
        return _snapshot(name, (body, number, stamped_at, now))

    def notify(self) -> None:
        """Wake the watches of all processes. Never raises."""
        self._listener.ring()
        try:
            self._pool.ask(_NOTIFY, (self._origin,))
        except BlastyardError:
            return  # others are woken by their floors

    def watch(self) -> Watch:
        """A watch of this process, to be closed by its owner."""
        return self._listener.watch()

    def close(self) -> None:
        """Close the connections that nobody uses at the moment, and refuse further calls."""
        self._listener.close()
        self._pool.close()

    @property
    def _origin(self) -> str:
        return f"{self._token}/{os.getpid()}"

    def _is_ours(self, notice: str) -> bool:
        return notice == self._origin

    def _prepare(self) -> None:
        """Meet the database for the first time."""
        if self._is_prepared:
            return
        with translated(self._address), self._pool.session() as session:
            found = schema.stored(session, self._address)
        if found < SCHEMA_VERSION:
            self._upgrade(self._address)
        self._refuse_newer()
        self._is_prepared = True

    def _refuse_newer(self) -> None:
        row = next(iter(self._pool.ask(schema.STORED, twice=True)), None)
        schema.refuse_newer(schema.number(row, self._address), SCHEMA_VERSION, self._address)


def _snapshot(name: str, row: Row) -> Snapshot:
    body: bytes | None
    number: int | None
    stamped_at: datetime | None
    body, number, stamped_at, now = row
    return Snapshot(name=name, body=body, version=number or 0, stamped_at=stamped_at, now=now)
