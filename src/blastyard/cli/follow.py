"""Waiting for searches: watching them, and running them here when nobody else does.

A change wakes the watch at once; a look each second stays underneath. Nothing here decides anything
about a search: rows and the sweep do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from blastyard.bootstrap.yard import Yard
from blastyard.cli.interrupt import Interrupt
from blastyard.cli.labour import Labour
from blastyard.cli.line import SilentLine, TerminalLine, describe
from blastyard.cli.session import SHORT
from blastyard.domain.errors import Unavailable
from blastyard.domain.job import State
from blastyard.domain.search import Search
from blastyard.service.sweep import PUBLIC
from blastyard.store.port import Filter

FLOOR: Final = 1.0
"""Seconds between two looks when nothing wakes."""
PATIENCE: Final = 60.0
"""Seconds for which the store may fail to answer before waiting is given up."""


class Detached(Exception):
    """The person does not want to wait any more; the searches go on, or stay in the queue."""


class Follower:
    """Follows searches to their ends."""

    def __init__(
        self, yard: Yard, labour: Labour, interrupt: Interrupt, line: SilentLine | TerminalLine
    ) -> None:
        self._yard = yard
        self._labour = labour
        self._interrupt = interrupt
        self._line = line
        self._looked_after_at = float("-inf")
        self._shown_at = float("-inf")
        self._told: set[str] = set()

    def until_ended(self, ids: Sequence[str]) -> list[Search]:
        """The searches as they ended, in the order of ``ids``. Raises :class:`Detached`."""
        watch = self._yard.documents.watch()
        self._interrupt.on_request = watch.wake
        try:
            answered_at = self._now()
            while True:
                if self._interrupt.requested:
                    raise Detached
                try:
                    searches = self._look(ids)
                    if all(search.state.is_terminal for search in searches):
                        return searches
                    answered_at = self._now()
                except Unavailable:
                    if self._now() - answered_at > PATIENCE:
                        raise
                watch.wait(FLOOR)
        finally:
            self._interrupt.on_request = lambda: None
            watch.close()

    def _look(self, ids: Sequence[str]) -> list[Search]:
        searches = self._read(ids)
        waiting = [search for search in searches if not search.state.is_terminal]
        if waiting:
            self._look_after(waiting)
            self._show(searches)
        return searches

    def _read(self, ids: Sequence[str]) -> list[Search]:
        if len(ids) == 1:
            return [self._yard.store.get(ids[0])]
        found = self._yard.store.list(Filter(ids=tuple(ids), limit=len(ids)))
        by_id = {search.id: search for search in found}
        return [by_id[search_id] for search_id in ids if search_id in by_id]

    def _look_after(self, searches: Sequence[Search]) -> None:
        """Once a second: take on what nobody alive looks after, unless a service will."""
        now = self._now()
        if now - self._looked_after_at < FLOOR:
            return
        # What is queued at the second look really waits.
        first = self._looked_after_at == float("-inf")
        self._labour.is_waiting = not first and all(s.state is State.QUEUED for s in searches)
        self._looked_after_at = now
        me = self._yard.gate.me
        others = [search for search in searches if search.runner != me.name]
        if not others:
            return
        present = self._yard.gate.siblings()
        alive = [seen for seen in present.values() if seen.is_alive(self._yard.gate.timings)]
        if any(seen.submitter.kind in PUBLIC for seen in alive):
            return
        for search in others:
            seen = present.get(search.runner)
            if seen is None or not seen.is_alive(self._yard.gate.timings):
                self._take_on(search)

    def _take_on(self, search: Search) -> None:
        if search.account != self._yard.gate.me.account:
            self._tell_once(
                search, "belongs to another account and nobody runs it: start `blastyard serve`"
            )
        elif self._yard.sweep.adopt(search.id):
            self._tell_once(search, "has nobody to run it: it runs in this process now")
            self._labour.take([search.id])

    def _tell_once(self, search: Search, what: str) -> None:
        if search.id not in self._told:
            self._told.add(search.id)
            self._line.say(f"search {search.id[:SHORT]} {what}")

    def _show(self, searches: Sequence[Search]) -> None:
        """At most a few times a second, however many changes there are."""
        now = self._now()
        if self._line.is_seen and now - self._shown_at >= 0.2:
            self._shown_at = now
            self._line.show(describe(searches, self._yard.gate.view()))

    def _now(self) -> float:
        return self._yard.clock.monotonic()
