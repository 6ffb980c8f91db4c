"""Searches in Azure Storage Tables.

**All of an installation is in one partition of one table**, because only rows of one partition can
be written in one transaction (at most 100 of them, 4 MiB), and a search's row, its event, its
idempotency key, its place among the live ones and the database it names must be written together
or not at all. So there is no second write that could be lost, and no index to be healed, and each
write of a search's life is one request. The price is the throughput of one partition, 2,000 rows a
second: some fifty searches a second, from being added to their end.

::

    i.<id>                                  the search: what writers compare (its ETag)
    n.<falling sequence>                    the same, among all, newest first
    u.<user>.<falling sequence>             the same, among its user's
    l.<runner>.q.<user>.<level>.<sequence>  the same, while it is queued
    l.<runner>.r.<user>.<level>.<sequence>  the same, from then on to its end
    e.<sequence>.<version>                  an event
    k.<user, key>                           a user's idempotency key: the id
    d.<name>                                a database
    c.<writer>                              how many have ended                (tally.py)
    g.<sequence>                            events of a deleted search remain  (deletion.py)
    f                                       the format of all this

A table sorts rows by their keys and finds nothing else without reading all; that is why a search
stands there three or four times. The copies are written in the transaction that writes the first,
so they never differ. What people have written is in keys as a digest (key.py).

* **Optimism.** ``update`` replaces ``i.<id>`` on condition of its ETag. A client remembers the
  ETags of what it has read and written; it reads first only if it does not know the one it needs.
* **A lost answer** is followed by the same transaction once more, which fails if the first was
  carried out. Each version of a search says which write made it, and remembers the seven before;
  a database says who made and who changed it. So a writer recognises its own, and reports success.
* **Sequences** are the account's time in microseconds, not a counter: that would be one row for
  which everybody waits who adds a search. They grow with each client, and beyond those of all rows
  that a client has seen. Of two searches that two clients add within the same few milliseconds,
  neither having seen the other, either may come first.
* **Removing a database** and adding a search that names it cannot both succeed (registry.py).
* **The clock** is the account's, told from its answers (clock.py).

Not guaranteed: that a filter by tag, state or database is quick in a long history, through which it
reads, newest first. By user, by id, and of live searches it is. The Table API of Cosmos DB has
other limits and is not served.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from blastyard.domain.clock import Clock, SystemClock
from blastyard.domain.errors import Misconfigured

if TYPE_CHECKING:
    from blastyard.store.azure_tables.searches import AzureTablesSearchStore

TABLE: Final = "blastyard"
PATIENCE: Final = timedelta(seconds=5)


def open_azure_tables(
    where: str,
    *,
    table: str = TABLE,
    credential: object | None = None,
    clock: Clock | None = None,
    patience: timedelta = PATIENCE,
) -> AzureTablesSearchStore:
    """The store in a table of an Azure storage account; the table is made if it is not there.

    ``where`` is the account's connection string, or its address, which a shared access signature or
    a ``credential`` (the account key, or an object of azure-core or azure-identity) belongs to.
    ``patience`` is how long a call goes on asking while it is throttled or not answered.

    Raises ``Misconfigured`` for a malformed address, a refused credential, a package that is not
    installed or a table of a newer format, and ``Unavailable`` when the account does not answer.
    """
    try:
        from blastyard.store.azure_tables.opening import opened  # noqa: PLC0415  (its packages)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("azure"):
            raise
        raise Misconfigured(
            "dependency_missing",
            "The Python package azure-data-tables, which searches in Azure Storage Tables take, is"
            " not installed.",
            "pip install 'blastyard[team]'",
        ) from None
    return opened(where, table, credential, clock or SystemClock(), patience)
