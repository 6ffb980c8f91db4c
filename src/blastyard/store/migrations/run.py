"""Runs Alembic without files of its own: no alembic.ini, nothing on the command line."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.pool import NullPool

from blastyard import sqlite

if TYPE_CHECKING:  # its library is not there where SQLite is all that is used
    from blastyard.postgres.address import Address

_HERE: Final = Path(__file__).parent
_LOCK: Final = 0x626C617374  # "blast": a number that everybody who migrates here agrees on


def head() -> int:
    """The number of the last migration there is."""
    return int(ScriptDirectory.from_config(_config()).get_current_head() or 0)


def run(path: Path) -> None:
    """Run what is missing on the file at ``path``, and mark it, in one transaction.

    Raises ``sqlite3.Error``, and then nothing was changed.
    """
    engine = sa.create_engine("sqlite://", creator=lambda: sqlite.connect(path), poolclass=NullPool)
    try:
        _run(engine)
    except sa.exc.DBAPIError as error:
        raise error.orig or error from error


def _run(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA synchronous=FULL")
        # the driver is in autocommit mode: this is where the transaction begins
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        _upgrade(connection)
        connection.exec_driver_sql(f"PRAGMA user_version={head()}")
        connection.commit()


def run_on_server(address: Address, patience: timedelta) -> None:
    """Run what is missing on a PostgreSQL server, in one transaction.

    One process does it, and the others wait for it. Raises ``psycopg.Error``, and
    ``Misconfigured('store_newer')`` when the one waited for was newer; then nothing was changed.
    """
    from blastyard.postgres import session, version  # noqa: PLC0415

    def open_session() -> session.Session:
        return session.connect(address, patience, longest=timedelta(hours=12))

    engine = sa.create_engine(
        "postgresql+psycopg://", creator=open_session, poolclass=NullPool, use_native_hstore=False
    )
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")  # autocommit mode here, too
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            found = version.stored(connection.connection.driver_connection, address)  # type: ignore[arg-type]
            version.refuse_newer(found, sqlite.SCHEMA_VERSION, address)
            _upgrade(connection)
            connection.commit()
    except sa.exc.DBAPIError as error:
        raise error.orig or error from error


def _upgrade(connection: sa.Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
