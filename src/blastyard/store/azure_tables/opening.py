"""Opening the store: the table is there, the credential suffices, nobody newer wrote it."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from typing import Final

from blastyard.domain.clock import Clock
from blastyard.domain.errors import Misconfigured
from blastyard.store.azure_tables import account, key, table
from blastyard.store.azure_tables.failure import CredentialRefused, TableAbsent
from blastyard.store.azure_tables.searches import AzureTablesSearchStore
from blastyard.store.azure_tables.table import Table

FORMAT: Final = 1
"""How the rows lie, as :mod:`blastyard.store.azure_tables` says it; raised when that changes."""


def opened(
    where: str, name: str, credential: object | None, clock: Clock, patience: timedelta
) -> AzureTablesSearchStore:
    """See :func:`blastyard.store.azure_tables.open_azure_tables`."""
    with ExitStack() as undo:
        opened = Table(account.find(where, name, credential), clock, patience)
        undo.callback(opened.close)
        try:
            _prepare(opened)
        except CredentialRefused as error:
            raise Misconfigured("permission_denied", error.message, error.next_step) from error
        store = AzureTablesSearchStore(opened)
        store.go_on()
        undo.pop_all()
    return store


def _prepare(opened: Table) -> None:
    """Make the table if need be, and write into it: a write's answer tells the account's time."""
    try:
        found = opened.get(key.FORMAT)
    except TableAbsent:
        opened.create()
        found = opened.get(key.FORMAT)
    if found is None:
        opened.commit([table.insert(key.FORMAT, {"Format": FORMAT})])  # or somebody else just did
        found = opened.get(key.FORMAT)
    if found is not None and found.values["Format"] > FORMAT:
        raise Misconfigured(
            "store_newer",
            f"{opened.place} was written by a newer blastyard.",
            "Upgrade this blastyard.",
        )
    opened.commit([table.merge(key.FORMAT, {"Opened": key.PARTITION})])
