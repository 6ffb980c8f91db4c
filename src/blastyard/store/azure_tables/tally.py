"""How many searches have ended, without reading them.

The partition may hold a hundred thousand ended searches, and counting them would take everybody's
share of its throughput. So each transaction that ends a search, or deletes an ended one, also
writes a row of counts, a *sheet*. No two writers share a sheet, so nobody waits for anybody; the
truth is the sum of all. Sheets that nobody has written for long are added up into one by whoever
counts.
"""

from __future__ import annotations

import secrets
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from blastyard.domain.errors import Unavailable
from blastyard.domain.job import TERMINAL, State
from blastyard.store.azure_tables import key, table
from blastyard.store.azure_tables.table import Committed, NotCommitted, Query, Row, Step, Table

TOO_MANY: Final = 64
"""Sheets at which whoever counts adds up the old ones."""
OLD: Final = timedelta(hours=1)
_AT_ONCE: Final = table.MOST_STEPS - 1

Change = Mapping[State, int]
"""How many more, or fewer, have ended so."""

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_decode: Final = msgspec.json.Decoder(dict[State, int]).decode


def change(before: State | None, after: State | None) -> Change:
    """What a write from one state to another does to the counts; ``None``: not stored."""
    if before is after:
        return {}
    changed = {state: by for state, by in ((before, -1), (after, 1)) if state is not None}
    return {state: by for state, by in changed.items() if state in TERMINAL}


@dataclass(frozen=True, slots=True)
class _Sheet:
    owner: str = field(default_factory=lambda: secrets.token_hex(8))
    counts: Change = field(default_factory=dict)
    etag: str = ""
    """Empty: not written yet."""

    def plus(self, by: Change) -> _Sheet:
        return replace(self, counts=_sum(self.counts, by))

    def written(self, at: datetime) -> Step:
        where, columns = key.tally(self.owner), _columns(self.counts, at)
        if not self.etag:
            return table.insert(where, columns)
        return table.replace(where, columns, self.etag)


class Tally:
    """The counts of one table. Thread-safe."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._free: deque[_Sheet] = deque()

    def commit(self, steps: Sequence[Step], by: Change) -> Committed | NotCommitted:
        """Commit the steps, and with them what they do to the counts."""
        if not by:
            return self._table.commit(steps)
        sheet = self._take().plus(by)
        outcome = self._table.commit([*steps, sheet.written(self._table.clock.now())])
        if isinstance(outcome, Committed):
            # one whose fate is not known is never written again: what it says stays true
            self._free.append(replace(sheet, etag=outcome.etags[-1]))
        return outcome

    def counts(self) -> Change:
        """How many have ended, by state."""
        sheets = list(self._table.rows(Query(key.TALLIES)))
        if len(sheets) > TOO_MANY:
            with suppress(Unavailable):
                self._add_up(sheets)
        return _sum(*map(_read, sheets))

    def _take(self) -> _Sheet:
        try:
            return self._free.pop()
        except IndexError:
            return _Sheet()

    def _add_up(self, sheets: Sequence[Row]) -> None:
        """Put old sheets together. Who still has one of them takes a new one."""
        now = self._table.clock.now()
        old = [row for row in sheets if now - datetime.fromisoformat(row.values["At"]) > OLD]
        old = old[:_AT_ONCE]
        one = _Sheet(counts=_sum(*map(_read, old)))
        removed = [table.remove(row.key, row.etag) for row in old]
        if len(old) > 1:
            self._table.commit([*removed, one.written(now)])


def _sum(*all_counts: Change) -> Change:
    total: Counter[State] = Counter()
    for counts in all_counts:
        total.update(counts)
    return dict(total)


def _columns(counts: Change, at: datetime) -> dict[str, str]:
    return {"Counts": _encode(counts).decode(), "At": at.isoformat()}


def _read(row: Row) -> Change:
    return _decode(row.values["Counts"])
