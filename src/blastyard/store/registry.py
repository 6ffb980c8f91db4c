"""The registered databases in SQL."""

from __future__ import annotations

import sqlalchemy as sa

from blastyard.domain.search import Database
from blastyard.store import query, row, rule
from blastyard.store.schema import databases

_name = databases.c.name
_all = sa.select(*row.DATABASE).order_by(_name)


def add(connection: sa.Connection, database: Database) -> None:
    """Register; raises ``Conflict('database_exists')``."""
    if connection.execute(sa.select(_name).where(_name == database.name)).first() is not None:
        raise rule.database_exists(database.name)
    connection.execute(databases.insert(), row.new_database(database))


def overwrite(connection: sa.Connection, database: Database) -> None:
    """Overwrite; raises ``NotFound('database_unknown')``."""
    change = databases.update().where(_name == database.name)
    if connection.execute(change, row.new_database(database)).rowcount != 1:
        raise _unknown(connection, database.name)


def get(connection: sa.Connection, name: str) -> Database:
    """Raises ``NotFound('database_unknown')``."""
    found = connection.execute(_all.where(_name == name)).first()
    if found is None:
        raise _unknown(connection, name)
    return row.database(found)


def everything(connection: sa.Connection) -> list[Database]:
    """All, by name."""
    return [row.database(found) for found in connection.execute(_all)]


def remove(connection: sa.Connection, name: str) -> None:
    """Raises ``NotFound('database_unknown')`` and ``Conflict('database_in_use')``."""
    # waits for those who are adding a search, and has those wait who begin to
    if connection.execute(sa.select(_name).where(_name == name).with_for_update()).first() is None:
        raise _unknown(connection, name)
    users = connection.execute(query.using(name)).scalars().all()
    if users:
        raise rule.database_in_use(name, users)
    connection.execute(databases.delete().where(_name == name))


def require(connection: sa.Connection, name: str) -> None:
    """Raise ``NotFound('database_unknown')`` unless a database of this name is registered.

    It stays registered until the transaction ends.
    """
    kept = sa.select(_name).where(_name == name).with_for_update(read=True, key_share=True)
    if connection.execute(kept).first() is None:
        raise _unknown(connection, name)


def _unknown(connection: sa.Connection, name: str) -> Exception:
    return rule.unknown_database(name, connection.execute(sa.select(_name)).scalars())
