"""A process that ends in good order leaves its searches to others, at once and at their places."""

from __future__ import annotations

from dataclasses import replace

from blastyard.admission.gate import Gate
from blastyard.domain.job import State
from blastyard.domain.search import Event, Search
from blastyard.engine.port import Engine
from blastyard.service.ending import HANDED_OVER
from blastyard.service.sweep import PUBLIC
from blastyard.store.port import SearchStore, Stale


class Handover:
    """Hands over what this process looks after. Its worker must have stopped."""

    def __init__(self, store: SearchStore, gate: Gate, engine: Engine) -> None:
        self._store = store
        self._gate = gate
        self._engine = engine

    def __call__(self) -> tuple[str, ...]:
        """Hand everything over; the ids. A search that somebody changes meanwhile is theirs."""
        me = self._gate.me.name
        mine = self._store.live(me)
        if not mine:
            return ()
        heir = self._heir()
        upto = self._gate.ledger().fence
        for search in mine:
            try:
                self._give(search, heir, upto)
            except Stale:
                continue
        return tuple(search.id for search in mine)

    def _heir(self) -> str:
        """Another live service on the same store; empty when there is none."""
        for name, seen in self._gate.siblings().items():
            is_service = seen.submitter.kind in PUBLIC and name != self._gate.me.name
            if is_service and seen.is_alive(self._gate.timings):
                return name
        return ""

    def _give(self, search: Search, heir: str, upto: int) -> None:
        if search.run is not None:
            self._engine.cancel(search.run)
        self._store.update(
            replace(search, state=State.QUEUED, phase=None, run=None, runner=heir),
            Event(State.QUEUED, reason=HANDED_OVER),
        )
        self._gate.give_back(search.id, heir, upto=upto)
