"""Putting right what a dead process left behind of searches that go on without it.

Nothing of them is ended, and none is run again: another process looks after them from then on. What
got as far as its submit command is looked at inside Gate A, by the search's next step.
"""

from __future__ import annotations

from dataclasses import replace

from blastyard.admission.gate import Gate
from blastyard.domain.job import State
from blastyard.domain.search import Event, Search
from blastyard.service.sweep import Sweep
from blastyard.store.port import SearchStore


class RemoteSweep(Sweep):
    """See :class:`~blastyard.service.sweep.Sweep`."""

    def __init__(self, store: SearchStore, gate: Gate) -> None:
        # nothing runs here that could be ended, so there is neither an engine nor an ending
        self._store = store
        self._gate = gate

    def _is_ours(self, search: Search) -> bool:  # noqa: ARG002
        return True

    def _adopt_queued(self, search: Search, upto: int) -> bool:
        if search.remote is None:
            return super()._adopt_queued(search, upto)
        self._take_on(search)
        return True

    def _recover(self, search: Search, upto: int, *, heir: bool) -> bool:
        if not heir:
            return False
        if search.remote is not None and search.state is not State.ADMITTING:
            self._take_on(search)
            return True
        # nothing of it was made; what ran on a machine has ended with its process
        self._store.update(
            replace(search, state=State.QUEUED, phase=None, run=None, runner=self._gate.me.name),
            Event(State.QUEUED, reason="the process that ran it is gone"),
        )
        self._gate.give_back(search.id, upto=upto)
        return True

    def _take_on(self, search: Search) -> None:
        self._store.update(
            replace(search, runner=self._gate.me.name, alive_at=None),
            Event(search.state, search.phase, f"{self._gate.me.label} looks after it now"),
        )
        self._gate.inherit(search.id)
