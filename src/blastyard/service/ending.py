"""The last write of a search: completed, failed or cancelled. Written once; nothing follows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from blastyard.domain.errors import Failure
from blastyard.domain.job import State
from blastyard.domain.search import Event, Result, Search
from blastyard.engine.port import Output
from blastyard.store.port import SearchStore

GRANT_LIMIT: Final = 5
"""How often the process that runs a search may die before the search is given up."""

HANDED_OVER: Final = "handed over: the process that looked after it ended"
"""The reason of the event by which a process that ends in good order leaves a search to others."""

ON_REQUEST: Final = "cancelled on request"
BY_PEER: Final = (
    "cancelled by another program of the cluster, which removed the Job (app=submit) that stood "
    "for it"
)


class Endings:
    """Writes terminal rows. ``version()`` says which BLAST+ answered."""

    def __init__(self, store: SearchStore, version: Callable[[], str]) -> None:
        self._store = store
        self._version = version

    def complete(self, search: Search, output: Output) -> Search:
        """The output is published; from now on it can be downloaded."""
        after = replace(
            search,
            state=State.COMPLETED,
            phase=None,
            finished_at=self._store.now(),
            result=Result(output.size, output.sha256, output.path.suffix.lstrip(".")),
            progress_done=search.query.records,
            blast_version=self._version(),
        )
        return self._store.update(after, Event(State.COMPLETED, reason=f"{output.size} bytes"))

    def why_given_up(self, search: Search, why: str) -> Failure | None:
        """The failure of a search that was granted a run slot too often; ``None`` = try again.

        Only grants count: waiting is no fault, however often a turn was lost, and handing a search
        over is none either.
        """
        events = self._store.events(search.id)
        granted = sum(event.state is State.SUBMITTING for event in events)
        granted -= sum(event.reason == HANDED_OVER for event in events)
        if granted < GRANT_LIMIT:
            return None
        message = f"{why}; that was start {granted} of {GRANT_LIMIT}"
        step = "look at the machine's memory and logs, then `blastyard rerun` it"
        return Failure("runner_died", message, step)

    def fail(self, search: Search, failure: Failure) -> Search:
        """It will not be answered, and why."""
        after = replace(
            search, state=State.FAILED, phase=None, finished_at=self._store.now(), error=failure
        )
        event = Event(State.FAILED, reason=failure.message, code=failure.code)
        return self._store.update(after, event)

    def cancel(self, search: Search, why: str = ON_REQUEST) -> Search:
        """Somebody did not want it any more."""
        failure = Failure("cancelled", why, "`blastyard rerun` starts it anew")
        after = replace(
            search, state=State.CANCELLED, phase=None, finished_at=self._store.now(), error=failure
        )
        event = Event(State.CANCELLED, reason="" if why == ON_REQUEST else why, code="cancelled")
        return self._store.update(after, event)
