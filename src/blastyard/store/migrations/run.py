"""Runs Alembic without files of its own: no alembic.ini, nothing on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.pool import NullPool

from blastyard import sqlite

_HERE: Final = Path(__file__).parent


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
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        connection.exec_driver_sql(f"PRAGMA user_version={head()}")
        connection.commit()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
