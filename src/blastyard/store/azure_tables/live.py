"""Questions about the searches that have not ended.

Each has a row whose key begins with its runner's digest, then says whether it is queued, and for
queued ones by user, priority and arrival. So all of one runner are one range, and who is first of
each user is found by skipping from user to user, however many wait behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Final

from blastyard.domain.job import State
from blastyard.domain.search import Search
from blastyard.store.azure_tables import entity, key
from blastyard.store.azure_tables.key import BEYOND, Range
from blastyard.store.azure_tables.table import MOST_ROWS, Query, Table

_FEW: Final = 100
"""Rows that are as quickly read as one."""
_NAMED: Final = 3


class Live:
    """The live searches in one table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def of(self, runner: str | None, limit: int | None) -> list[Search]:
        """Of one runner, or of all; oldest first."""
        keys = key.LIVE if runner is None else key.runner(runner)
        found = self._searches(Query(keys))
        if limit is None:
            return sorted(found, key=_arrival)
        return nsmallest(limit, found, key=_arrival)

    def among(self, ids: Sequence[str]) -> Iterator[Search]:
        """Those with one of these ids."""
        wanted = frozenset(ids)
        return (search for search in self._searches(Query(key.LIVE)) if search.id in wanted)

    def states(self) -> Counter[State]:
        """How many are in each state."""
        rows = self._table.rows(Query(key.LIVE, select=("State",)))
        return Counter(State(row.values["State"]) for row in rows)

    def using(self, database: str) -> list[str]:
        """The ids of some that name this database; empty when none does."""
        where = f"Database eq '{key.digest(database)}'"
        found = self._searches(Query(key.LIVE, where, top=_NAMED))
        return [search.id for search in islice(found, _NAMED)]

    def runners(self) -> frozenset[str]:
        """All runners."""
        found: set[str] = set()
        low = key.LIVE.low
        while True:
            rows = self._table.rows(Query(Range(low, key.LIVE.high), top=1))
            row = next(rows, None)
            if row is None:
                return frozenset(found)
            found.add(entity.search(row).runner)
            low = key.of_runner(row.key) + BEYOND

    def waiting(self, runner: str, per_user: int) -> list[Search]:
        """Queued ones of a runner, the ``per_user`` first of each user; best first."""
        if per_user < 1:
            return []
        chosen: list[Search] = []
        taken: Counter[str] = Counter()
        keys = key.queued(runner)
        low, following, more = keys.low, None, True
        while more:
            query = Query(Range(low, keys.high), top=min(MOST_ROWS, max(per_user, _FEW)))
            page = self._table.page(query, following)
            user = ""
            for row in page.rows:
                user = key.of_queued_user(row.key)
                taken[user] += 1
                if taken[user] <= per_user:
                    chosen.append(entity.search(row))
            following, more = page.following, bool(page.following)
            if taken[user] >= per_user:  # on to the next user, past all that wait behind
                low, following = user + BEYOND, None
        return sorted(chosen, key=lambda one: (-one.request.priority.level, one.sequence))

    def _searches(self, query: Query) -> Iterator[Search]:
        return (entity.search(row) for row in self._table.rows(query))


def _arrival(search: Search) -> int:
    return search.sequence
