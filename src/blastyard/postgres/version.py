"""Which schema a database has: the number of the last migration that ran on it."""

from __future__ import annotations

from typing import Final

from blastyard.domain.errors import Misconfigured
from blastyard.postgres.address import Address
from blastyard.postgres.session import Session

STORED: Final = "SELECT version_num FROM alembic_version"
"""SQL for the number, as text; Alembic keeps it."""

_EXISTS: Final = "SELECT to_regclass('alembic_version') IS NOT NULL"


def stored(session: Session, address: Address) -> int:
    """0 for a database without tables of ours. Raises ``psycopg.Error``, ``Misconfigured``."""
    exists = session.execute(_EXISTS, prepare=False).fetchone()
    if exists is None or not exists[0]:
        return 0
    return number(session.execute(STORED, prepare=False).fetchone(), address)


def number(row: tuple[object, ...] | None, address: Address) -> int:
    """The number in a row of :data:`STORED`; ``Misconfigured`` when it is another program's."""
    text = "0" if row is None else str(row[0])
    if not text.isdecimal():
        raise Misconfigured(
            "settings_invalid",
            f"{address} holds the tables of another program (its schema is called {text}).",
            "Give blastyard a database of its own.",
        )
    return int(text)


def refuse_newer(version: int, known: int, address: Address) -> None:
    """Raise ``Misconfigured('store_newer')`` for a schema this program does not know."""
    if version > known:
        raise Misconfigured(
            "store_newer",
            f"{address} has schema {version}; this blastyard knows schema {known}",
            "Install the blastyard that wrote it, or a newer one, and restart what is still old.",
        )
