"""The registered databases in Azure Storage Tables.

A database is not removed while a live search names it, although the two are different rows: adding
a search writes into the row of its database (:meth:`Registry.used`), in the same transaction.
Removing reads that row, looks for live searches, and removes the row only if nobody has written
into it since. So either the search sees that its database is gone, or the removal sees the search.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from blastyard.domain.errors import Unavailable
from blastyard.domain.search import Database
from blastyard.store import rule
from blastyard.store.azure_tables import entity, key, table
from blastyard.store.azure_tables.table import Committed, Query, Row, Step, Table

_ATTEMPTS: Final = 20


class Registry:
    """The databases of one table. ``using(name)`` are ids of live searches that name one."""

    def __init__(self, table: Table, using: Callable[[str], Sequence[str]]) -> None:
        self._table = table
        self._using = using

    def add(self, database: Database) -> None:
        """Register; raises ``Conflict('database_exists')``."""
        database = replace(database, created_at=self._table.clock.now())
        mine = secrets.token_hex(8)
        columns = {**entity.of_database(database), "Born": mine, "Write": mine}
        outcome = self._table.commit([table.insert(key.database(database.name), columns)])
        if isinstance(outcome, Committed):
            return
        row = self._row(database.name)
        if not (outcome.doubtful and row is not None and row.values["Born"] == mine):
            raise rule.database_exists(database.name)

    def overwrite(self, database: Database) -> None:
        """Overwrite; raises ``NotFound('database_unknown')``."""
        mine = secrets.token_hex(8)
        columns = {**entity.of_database(database), "Write": mine}
        doubtful = False
        for _ in range(_ATTEMPTS):
            row = self._need(database.name)
            if doubtful and row.values["Write"] == mine:
                return
            same = {"Born": row.values["Born"]}
            over = table.replace(row.key, {**columns, **same}, row.etag)
            outcome = self._table.commit([over])
            if isinstance(outcome, Committed):
                return
            doubtful = doubtful or outcome.doubtful
        raise self._never_quiet(database.name)

    def get(self, name: str) -> Database:
        """Raises ``NotFound('database_unknown')``."""
        return entity.database(self._need(name))

    def everything(self) -> list[Database]:
        """All, by name."""
        found = map(entity.database, self._table.rows(Query(key.DATABASES)))
        return sorted(found, key=lambda one: one.name)

    def remove(self, name: str) -> None:
        """Raises ``NotFound('database_unknown')`` and ``Conflict('database_in_use')``."""
        born = self._need(name).values["Born"]
        doubtful = False
        for _ in range(_ATTEMPTS):
            row = self._row(name)
            if doubtful and (row is None or row.values["Born"] != born):
                return  # it went when the answer was lost; what is there now is another
            if row is None:
                raise self._unknown(name)
            if users := self._using(name):
                raise rule.database_in_use(name, users)
            outcome = self._table.commit([table.remove(row.key, row.etag)])
            if isinstance(outcome, Committed):
                return
            doubtful = doubtful or outcome.doubtful
        raise self._never_quiet(name)

    def used(self, name: str, write: str) -> Step:
        """What a new search that names the database does to its row; fails if there is none."""
        return table.merge(key.database(name), {"Used": write})

    def require(self, name: str) -> None:
        """Raise ``NotFound('database_unknown')`` unless a database of this name is registered."""
        self._need(name)

    def _row(self, name: str) -> Row | None:
        return self._table.get(key.database(name))

    def _need(self, name: str) -> Row:
        row = self._row(name)
        if row is None:
            raise self._unknown(name)
        return row

    def _unknown(self, name: str) -> Exception:
        return rule.unknown_database(name, (one.name for one in self.everything()))

    def _never_quiet(self, name: str) -> Unavailable:
        message = f"{self._table.place}: the database {name} is being written all the time."
        return Unavailable("store_unavailable", message, "Try again.")
