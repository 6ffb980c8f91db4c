"""The history of the schema, and the step from any earlier one to the present one.

Migrations only add, so that processes still running the version before are refused by their own
check at their next write, not broken in the middle of one. There is no way down.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from blastyard import sqlite
from blastyard.domain.errors import Misconfigured


def upgrade(path: Path) -> None:
    """Bring the SQLite file at ``path`` to this version's schema, making it when missing.

    Safe when many processes call it at once. Cheap when there is nothing to do. Raises
    ``Misconfigured`` for a newer schema or a network file system, ``Unavailable`` when the file
    cannot be used.
    """
    version = sqlite.stored_version(path)
    sqlite.refuse_newer(version, path)
    if version == sqlite.SCHEMA_VERSION:
        return
    sqlite.check_place(path)
    with sqlite.translated(path), sqlite.upgrading(path):
        if sqlite.stored_version(path) < sqlite.SCHEMA_VERSION:
            _use_write_ahead_log(path)
            # Alembic takes a third of a second to import: only those who need it wait for it
            from blastyard.store.migrations.run import run  # noqa: PLC0415

            run(path)


def _use_write_ahead_log(path: Path) -> None:
    with closing(sqlite.connect(path)) as connection:
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise Misconfigured(
            "settings_invalid",
            f"{path} is on a file system without shared memory, which SQLite needs to let several "
            f"processes in (journal mode is '{mode}')",
            "Set BLASTYARD_HOME to a directory on a disk of this machine.",
        )
