"""Forgetting a search with all its rows.

All rows by which it can be found go in one transaction, and with them as many of its events as
there is room for. Those of a long history that are left over cannot be found any more, since they
hang on a sequence that never returns. A note of them stays until they are gone too; when whoever
deletes dies before, the next client that opens the table goes on.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from blastyard.domain.search import Search
from blastyard.store.azure_tables import key, table
from blastyard.store.azure_tables.entity import Stored
from blastyard.store.azure_tables.table import MOST_STEPS, Committed, NotCommitted, Query, Table
from blastyard.store.azure_tables.tally import Tally, change

WITH_THE_SEARCH: Final = 90
"""Events that go in the transaction that makes the search unknown; the rest is for its rows."""


class Deletion:
    """Deletes ended searches from one table."""

    def __init__(self, table: Table, tally: Tally) -> None:
        self._table = table
        self._tally = tally

    def __call__(self, search: Search, stored: Stored) -> Committed | NotCommitted:
        """Forget it, if it is still as it was read."""
        history = self._events(search.sequence, WITH_THE_SEARCH + 1)
        steps = [
            table.remove(key.by_id(search.id), stored.etag),
            table.remove(key.by_arrival(search.sequence)),
            table.remove(key.by_user(stored.user, search.sequence)),
            *(table.remove(each) for each in history[:WITH_THE_SEARCH]),
        ]
        if search.request.key is not None:
            steps.append(table.remove(key.claim(search.request.user, search.request.key)))
        is_long = len(history) > WITH_THE_SEARCH
        if is_long:
            steps.append(table.put(key.leftover(search.sequence), {}))
        outcome = self._tally.commit(steps, change(search.state, None))
        if is_long and isinstance(outcome, Committed):
            self._clear(search.sequence)
        return outcome

    def go_on(self) -> None:
        """Remove what deletions that came to no end have left."""
        for row in [*self._table.rows(Query(key.LEFTOVERS))]:
            self._clear(key.sequence_of(row.key))

    def _clear(self, sequence: int) -> None:
        """Remove the events that are left of a deleted search, and then the note of them."""
        while left := self._events(sequence, MOST_STEPS):
            self._table.commit([table.remove(each) for each in left])  # or somebody else did
        self._table.commit([table.remove(key.leftover(sequence))])

    def _events(self, sequence: int, most: int) -> list[str]:
        """Keys of the first events of a search."""
        query = Query(key.events(sequence), select=("RowKey",), top=most)
        return [row.key for row in islice(self._table.rows(query), most)]
