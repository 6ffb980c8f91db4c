"""Putting right what a dead process left behind.

Bookkeeping may be done by anybody on the store: a slot whose command is certainly gone is free, an
ended search has no hold. Looking after a search from then on is another matter: a service does it
for every account, any other process only for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from blastyard.admission.gate import Gate
from blastyard.admission.ledger import HoldState, Ledger, Submitter
from blastyard.admission.restoration import Claim
from blastyard.admission.roster import Presence
from blastyard.domain.errors import NotFound
from blastyard.domain.job import State
from blastyard.domain.search import Event, Search
from blastyard.engine.port import Engine, Running
from blastyard.service.ending import Endings
from blastyard.service.task import Tasks
from blastyard.store.port import SearchStore, Stale

SERVICE = "serve"


def may_look_after(submitter: Submitter, search: Search) -> bool:
    """Whether a process may run a search that another process left behind."""
    return submitter.kind == SERVICE or submitter.account == search.account


def claims(store: SearchStore) -> list[Claim]:
    """What the store knows to be running, for a ledger that was lost."""
    return [
        Claim(
            search.id,
            search.request.user,
            search.request.priority.level,
            search.attempt,
            HoldState.SUBMITTED if search.run is not None else HoldState.RESERVED,
            search.runner,
        )
        for search in store.live()
        if search.state.is_attempt
    ]


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep found: the searches that this process looks after from now on."""

    adopted: tuple[str, ...]


class Sweep:
    """Looks for what dead processes left. ``wants(search)`` says whether to adopt one more."""

    def __init__(
        self,
        store: SearchStore,
        gate: Gate,
        engine: Engine,
        tasks: Tasks,
        endings: Endings,
    ) -> None:
        self._store = store
        self._gate = gate
        self._engine = engine
        self._tasks = tasks
        self._endings = endings

    def __call__(self, wants: Callable[[Search], bool]) -> Swept:
        """Sweep once. Safe to run in several processes at a time: rows decide.

        What is to be judged is read *before* who is alive: a submitter signs on before it writes
        anything, so nothing of a newcomer is ever taken for an orphan.
        """
        runners = self._store.runners() - {self._gate.me.name}
        ledger = self._gate.ledger()
        present = self._gate.submitters()
        adopted: list[str] = []
        for runner in sorted(runners):
            adopted += self._left_by(runner, present.get(runner), wants)
        self._clear_ledger(ledger, present)
        self._retire(present)
        return Swept(tuple(adopted))

    def adopt(self, search_id: str) -> bool:
        """Look after one search that nobody alive looks after; whether it is ours now."""
        search = self._store.get(search_id)
        present = self._gate.submitters()
        if search.runner == self._gate.me.name:
            return True
        if search.state.is_terminal:
            return False
        seen = present.get(search.runner)
        if seen is not None and not seen.gone:
            return False
        return search_id in self._take([search], seen, lambda _: True)

    def _left_by(
        self, runner: str, seen: Presence | None, wants: Callable[[Search], bool]
    ) -> list[str]:
        if seen is not None and seen.is_alive(self._gate.timings):
            return []
        return self._take(self._store.live(runner), seen, wants)

    def _take(
        self,
        searches: Iterable[Search],
        seen: Presence | None,
        wants: Callable[[Search], bool],
    ) -> list[str]:
        adopted = []
        gone = seen is None or seen.gone
        for search in searches:
            heir = may_look_after(self._gate.me, search) and wants(search)
            try:
                if search.state is State.QUEUED:
                    taken = heir and self._adopt_queued(search)
                else:
                    taken = gone and self._recover(search, heir=heir)
            except (Stale, NotFound):
                continue
            if taken:
                adopted.append(search.id)
        return adopted

    def _adopt_queued(self, search: Search) -> bool:
        self._store.update(
            replace(search, runner=self._gate.me.name),
            Event(State.QUEUED, reason=f"{self._gate.me.label} looks after it now"),
        )
        self._gate.give_back(search.id)
        self._gate.adopt(search.id)
        return True

    def _recover(self, search: Search, *, heir: bool) -> bool:
        """End an attempt whose process is gone; back to the queue, to its old place."""
        if search.run is not None:
            self._engine.cancel(search.run)
            if isinstance(self._engine.poll(self._tasks.remains(search), search.run), Running):
                return False
        if search.cancel_requested:
            self._endings.cancel(search)
            self._gate.end(search.id)
            return False
        runner = self._gate.me.name if heir else ""
        self._store.update(
            replace(search, state=State.QUEUED, phase=None, run=None, runner=runner),
            Event(State.QUEUED, reason="the process that ran it is gone"),
        )
        self._gate.give_back(search.id, runner)
        return heir

    def _clear_ledger(self, ledger: Ledger, present: Mapping[str, Presence]) -> None:
        """End what the ledger still holds of searches that have ended."""
        for name, submitter in [
            *((name, hold.submitter) for name, hold in ledger.holds.items()),
            *((name, ticket.submitter) for name, ticket in ledger.tickets.items()),
        ]:
            seen = present.get(submitter)
            if seen is not None and not seen.gone and submitter != self._gate.me.name:
                continue
            try:
                ended = self._store.get(name).state.is_terminal
            except NotFound:
                ended = submitter != self._gate.me.name
            if ended:
                self._gate.end(name)
        for name in self._gate.overdue():
            self._gate.give_back(name, "")

    def _retire(self, present: Mapping[str, Presence]) -> None:
        """Remove submitters that have ended and left nothing."""
        ledger = self._gate.ledger()
        owners = {hold.submitter for hold in ledger.holds.values()}
        owners |= {ticket.submitter for ticket in ledger.tickets.values()}
        owners |= self._store.runners()
        for name, seen in present.items():
            if seen.gone and name not in owners:
                self._gate.forget(name)
