"""What a filter wants, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final

from blastyard.domain.search import Search
from blastyard.store import rule
from blastyard.store.azure_tables import entity, key
from blastyard.store.azure_tables.live import Live
from blastyard.store.azure_tables.table import MOST_ROWS, Query, Table
from blastyard.store.port import Filter

READERS: Final = 8
"""Rows asked for at the same time: the service answers one row for each request."""
_ONE_BY_ONE: Final = 32
"""Ids up to which asking for each is less work than reading all that are live."""


class Listing:
    """Lists the searches of one table."""

    def __init__(self, table: Table, live: Live) -> None:
        self._table = table
        self._live = live

    def __call__(self, wanted: Filter) -> Sequence[Search]:
        """Searches, newest first."""
        if wanted.limit < 1:
            return []
        found = self._named(wanted) if wanted.ids else self._by_arrival(wanted)
        return [*islice((one for one in found if rule.matches(one, wanted)), wanted.limit)]

    def _by_arrival(self, wanted: Filter) -> Iterator[Search]:
        user = None if wanted.user is None else key.digest(wanted.user)
        keys = key.arrivals_before(wanted.before, user)
        query = Query(keys, _condition(wanted), top=min(wanted.limit, MOST_ROWS))
        return (entity.search(row) for row in self._table.rows(query))

    def _named(self, wanted: Filter) -> list[Search]:
        ids = [*dict.fromkeys(wanted.ids)]
        only_live = wanted.states and not any(state.is_terminal for state in wanted.states)
        if only_live and len(ids) > _ONE_BY_ONE:
            found: Iterable[Search] = self._live.among(ids)
        else:
            found = self._one_by_one(ids)
        return sorted(found, key=lambda one: -one.sequence)

    def _one_by_one(self, ids: Sequence[str]) -> Iterator[Search]:
        keys = [key.by_id(each) for each in ids if key.is_possible_id(each)]
        with ThreadPoolExecutor(READERS) as pool:
            rows = [*pool.map(self._table.get, keys)]
        return (entity.search(row) for row in rows if row is not None)


def _condition(wanted: Filter) -> str:
    """As OData; at most 15 comparisons, with those of the keys, are allowed."""
    parts = []
    if wanted.states:
        parts.append(" or ".join(f"State eq '{state}'" for state in sorted(wanted.states)))
    if wanted.database is not None:
        parts.append(f"Database eq '{key.digest(wanted.database)}'")
    if wanted.tag is not None:
        parts.append(f"{entity.tag_column(wanted.tag)} eq true")
    return " and ".join(f"({part})" for part in parts)
