"""Which results go, and when: older than so many days, or beyond so many gigabytes, oldest first.

Only outputs go. The search itself, its query and its history stay, so it can be run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from blastyard.domain.job import State
from blastyard.domain.search import Event, Search
from blastyard.results.files import SearchFiles
from blastyard.store.port import Filter, SearchStore, Stale

EVERY = timedelta(minutes=10)
GB = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Rule:
    """How long and how much to keep; 0 = without limit."""

    days: int = 0
    gigabytes: int = 0

    @property
    def sentence(self) -> str:
        """The rule in words; empty when everything is kept."""
        parts = []
        if self.days:
            parts.append(f"older than {self.days} days")
        if self.gigabytes:
            parts.append(f"beyond {self.gigabytes} GB in all (oldest first)")
        return f"results {' or '.join(parts)} are deleted" if parts else ""


class Retention:
    """Applies a rule to the stored results."""

    def __init__(self, store: SearchStore, files: SearchFiles, rule: Rule) -> None:
        self.rule = rule
        self._store = store
        self._files = files
        self._applied_at: datetime | None = None

    def goes_at(self, search: Search) -> datetime | None:
        """When the result of a search goes because of its age; ``None`` = not for its age."""
        if not self.rule.days or search.result is None or search.finished_at is None:
            return None
        return search.finished_at + timedelta(days=self.rule.days)

    def apply(self) -> None:
        """Delete what has to go; does nothing when it was asked less than ten minutes ago."""
        if not self.rule.sentence:
            return
        now = self._store.now()
        if self._applied_at is not None and now - self._applied_at < EVERY:
            return
        self._applied_at = now
        for search in list(self._surplus(now)):
            self._delete(search, now)

    def _surplus(self, now: datetime) -> Iterator[Search]:
        newer = 0  # bytes of this result and all newer ones: none outlives a newer one
        for search, size in self._results():
            newer += size
            goes_at = self.goes_at(search)
            too_much = self.rule.gigabytes and newer > self.rule.gigabytes * GB
            if too_much or (goes_at is not None and goes_at <= now):
                yield search

    def _results(self) -> Iterator[tuple[Search, int]]:
        """Searches with a result, and its bytes, newest first."""
        wanted = Filter(states=frozenset({State.COMPLETED}), limit=500)
        page = self._store.list(wanted)
        while page:
            yield from (
                (search, search.result.size)
                for search in page
                if search.result and not search.result_deleted_at
            )
            page = self._store.list(replace(wanted, before=page[-1].sequence))

    def _delete(self, search: Search, now: datetime) -> None:
        try:
            self._store.update(
                replace(search, result_deleted_at=now),
                Event(search.state, reason=f"result deleted: {self.rule.sentence}"),
            )
        except Stale:
            return
        if search.result is not None:
            self._files.remove_result(search.id, search.result.extension)
