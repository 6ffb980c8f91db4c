"""A process that ends in good order leaves its searches to others; they go on meanwhile."""

from __future__ import annotations

from dataclasses import replace

from blastyard.admission.gate import Gate
from blastyard.domain.job import State
from blastyard.domain.search import Event, Search
from blastyard.service.ending import HANDED_OVER
from blastyard.service.handover import Handover
from blastyard.store.port import SearchStore


class RemoteHandover(Handover):
    """See :class:`~blastyard.service.handover.Handover`."""

    def __init__(self, store: SearchStore, gate: Gate) -> None:
        # nothing runs here that would have to be ended, so there is no engine
        self._store = store
        self._gate = gate

    def _give(self, search: Search, heir: str, upto: int) -> None:
        made = search.remote is not None and search.state is not State.ADMITTING
        state = search.state if made else State.QUEUED
        self._store.update(
            replace(search, state=state, runner=heir, alive_at=None),
            Event(state, search.phase, HANDED_OVER),
        )
        if made:
            self._gate.inherit(search.id, heir)
        else:
            self._gate.give_back(search.id, heir, upto=upto)
