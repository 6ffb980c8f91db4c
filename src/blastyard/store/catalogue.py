"""Where a registered database lies, read without the ORM: for the commands that start often.

Reads what :mod:`blastyard.store.registry` writes; one contract test holds them together.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from blastyard import sqlite
from blastyard.domain.search import Database

_FIND: Final = "SELECT body FROM databases WHERE name = ?"
_DECODER: Final = msgspec.json.Decoder(Database)


class SqliteCatalogue:
    """The databases registered in the SQLite file at ``path``; the file may not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, name: str) -> Database | None:
        """The database of that exact name. Raises ``Unavailable``."""
        if not self._path.exists():
            return None
        with sqlite.translated(self._path), closing(sqlite.connect(self._path)) as connection:
            version = sqlite.schema_version(connection)
            sqlite.refuse_newer(version, self._path)
            if version == 0:
                return None
            row = _found(connection, name)
        return None if row is None else _DECODER.decode(row)


def _found(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute(_FIND, (name,)).fetchone()
    return None if row is None else str(row[0])
