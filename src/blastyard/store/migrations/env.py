"""Called by Alembic: runs the migrations on the connection it is given."""

from __future__ import annotations

from alembic import context

from blastyard.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    transaction_per_migration=False,
)
context.run_migrations()  # the caller has begun a transaction, and commits it
