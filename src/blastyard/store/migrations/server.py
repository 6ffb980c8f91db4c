"""The step from any earlier schema to the present one, on a PostgreSQL server."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import Final

from blastyard.postgres import version
from blastyard.postgres.address import Address
from blastyard.postgres.failure import translated
from blastyard.postgres.session import connect
from blastyard.sqlite import SCHEMA_VERSION

PATIENCE: Final = timedelta(seconds=60)
"""How long to wait for a replica that migrates, or for a table that somebody uses."""


def upgrade(address: Address, patience: timedelta = PATIENCE) -> None:
    """Bring the database to this version's schema, making the tables when missing.

    Safe when many processes call it at once. Cheap when there is nothing to do. Raises
    ``Misconfigured`` for a newer schema or missing rights, ``Unavailable`` otherwise.
    """
    with translated(address):
        if _stored(address) == SCHEMA_VERSION:
            return
        # Alembic takes a third of a second to import: only those who need it wait for it
        from blastyard.store.migrations.run import run_on_server  # noqa: PLC0415

        run_on_server(address, patience)


def _stored(address: Address) -> int:
    with closing(connect(address)) as session:
        found = version.stored(session, address)
    version.refuse_newer(found, SCHEMA_VERSION, address)
    return found
