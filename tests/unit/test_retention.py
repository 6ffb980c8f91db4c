"""Which results are deleted, and that the search itself stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from blastyard.domain.job import State
from blastyard.domain.search import Event, Result
from blastyard.results.files import SearchFiles
from blastyard.service.retention import EVERY, GB, Retention, Rule
from blastyard.store.memory import MemorySearchStore
from blastyard.testing import sample

NOW = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


class Shelf:
    """Completed searches, each a day younger than the one before; the last ended just now."""

    def __init__(self, folder: Path, sizes: Sequence[int]) -> None:
        self.now = NOW
        self.store = MemorySearchStore(lambda: self.now)
        self.store.add_database(sample.database())
        self.files = SearchFiles(folder)
        self.ids = [f"search-{number}" for number in range(len(sizes))]
        for number, (name, size) in enumerate(zip(self.ids, sizes, strict=True), start=1):
            self.files.directory(name).mkdir()
            self.files.query(name).touch()
            self.files.result(name, "tsv").touch()
            self._ended(name, size, len(sizes) - number)

    def _ended(self, name: str, size: int, age: int) -> None:
        added = self.store.add(replace(sample.search(), id=name), sample.QUEUED)
        ended = replace(
            added,
            state=State.COMPLETED,
            finished_at=NOW - timedelta(days=age),
            result=Result(size, "0" * 64, "tsv"),
        )
        self.store.update(ended, Event(State.COMPLETED))

    def kept(self) -> list[str]:
        """Whose results are there, oldest first; the rows must say the same."""
        there = [name for name in self.ids if self.files.result(name, "tsv").exists()]
        assert there == [name for name in self.ids if not self.store.get(name).result_deleted_at]
        return there

    def after(self, rule: Rule) -> list[str]:
        """Whose results are left when the rule was applied once."""
        Retention(self.store, self.files, rule).apply()
        return self.kept()


def test_results_older_than_so_many_days_go_and_their_searches_stay(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, [1, 1, 1, 1])

    assert shelf.after(Rule(days=2)) == shelf.ids[2:]

    gone = shelf.store.get(shelf.ids[0])
    assert (gone.state, gone.result_deleted_at) == (State.COMPLETED, NOW)
    assert shelf.files.query(gone.id).exists()
    assert "older than 2 days" in shelf.store.events(gone.id)[-1].reason


@pytest.mark.parametrize(
    ("tenths", "kept"),
    [((3, 3, 3), 3), ((5, 5, 5), 2), ((1, 6, 6), 1), ((1, 1, 11), 0), ((9, 1), 2)],
)
def test_beyond_so_many_gigabytes_the_oldest_results_go_first(
    tenths: tuple[int, ...], kept: int, tmp_path: Path
) -> None:
    shelf = Shelf(tmp_path, [size * GB // 10 for size in tenths])

    assert shelf.after(Rule(gigabytes=1)) == shelf.ids[len(tenths) - kept :]


def test_without_a_rule_everything_is_kept(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, [GB, GB, GB])

    assert shelf.after(Rule()) == shelf.ids


def test_it_looks_again_only_after_a_while(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, [1])
    shelf.now += timedelta(days=1) - EVERY / 2
    retention = Retention(shelf.store, shelf.files, Rule(days=1))
    retention.apply()

    shelf.now += EVERY * 0.9
    retention.apply()
    assert shelf.kept() == shelf.ids
    shelf.now += EVERY * 0.1
    retention.apply()

    assert shelf.kept() == []
