"""One attempt at one search: Gate A, a run slot, the command, and out again.

Each move is written before the next is made, so that whoever finds the row after a crash knows what
may be alive: *admitting* nothing, *submitting* a command nobody recorded (its guardian has ended
it), *running* the one that the row names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt
from blastyard.admission.inside import LeaseLost
from blastyard.admission.outcome import Granted, Reason, Refused, Waiting
from blastyard.admission.stay import Stay
from blastyard.domain.errors import Unavailable
from blastyard.domain.job import State
from blastyard.domain.search import Event, Run, Search
from blastyard.engine.port import Engine
from blastyard.service.task import Tasks
from blastyard.store.port import SearchStore

_LOST: Final = Waiting(Reason.SUBMIT_SLOT, "its turn was lost to another submission")


@dataclass(frozen=True, slots=True)
class Started:
    """The command runs, its hold is submitted, Gate A is free again."""

    search: Search


@dataclass(frozen=True, slots=True)
class NotNow:
    """The search is back in the queue."""

    search: Search
    waiting: Waiting


class Attempts:
    """Makes attempts. ``woken(search_id)`` is called when a command that was started has ended."""

    def __init__(
        self,
        store: SearchStore,
        gate: Gate,
        engine: Engine,
        tasks: Tasks,
        woken: Callable[[str], None],
    ) -> None:
        self._store = store
        self._gate = gate
        self._engine = engine
        self._tasks = tasks
        self._woken = woken

    def make(self, search: Search) -> Started | NotNow | Refused:
        """Try once. Raises ``Stale`` and ``Unavailable``; the row then tells how far it came."""
        claimed = replace(search, state=State.ADMITTING, attempt=search.attempt + 1, phase=None)
        claimed = self._store.update(claimed, Event(State.ADMITTING, reason="its turn has come"))
        stay = self._gate.enter(claimed.id, claimed.attempt)
        if isinstance(stay, Waiting):
            return self._back(claimed, stay)
        try:
            return self._inside(claimed, stay)
        except LeaseLost:
            return self._back(claimed, _LOST)
        finally:
            self._gate.leave(stay)

    def _inside(self, search: Search, stay: Stay) -> Started | NotNow | Refused:
        attempt = Attempt(search.id, search.attempt, self._gate.me.name)
        match stay.reserve(attempt):
            case Waiting() as waiting:
                return self._back(search, waiting)
            case Refused() as refused:
                self._back(search, None)
                return refused
            case Granted() as granted:
                return self._submit(search, stay, granted)

    def _submit(self, search: Search, stay: Stay, granted: Granted) -> Started | NotNow:
        task = self._tasks.make(search)
        reason = f"run slot granted, fence {granted.fence.number}"
        search = replace(search, state=State.SUBMITTING, command=task.argv)
        search = self._store.update(search, Event(State.SUBMITTING, reason=reason))
        if not stay.is_trusted:
            raise LeaseLost(stay.holder)
        run = self._engine.start(task, stay.deadline, lambda: self._woken(search.id))
        try:
            return Started(self._run(search, stay, granted, run))
        except BaseException:
            self._end(run, stay)
            raise

    def _end(self, run: Run, stay: Stay) -> None:
        """End a command that may not go on. Gate A is not given free while it cannot be ended."""
        try:
            self._engine.cancel(run)
        except Unavailable:
            stay.abandon()

    def _run(self, search: Search, stay: Stay, granted: Granted, run: Run) -> Search:
        now = self._store.now()
        search = replace(search, state=State.RUNNING, run=run, started_at=now)
        search = self._store.update(search, Event(State.RUNNING, reason=f"attempt {run.attempt}"))
        if not (stay.confirm(search.id, granted.fence) and stay.is_trusted):
            raise LeaseLost(stay.holder)
        self._engine.extend(run, None)
        return search

    def _back(self, search: Search, waiting: Waiting | None) -> NotNow:
        current = self._store.get(search.id)
        if current.state.is_attempt and current.attempt == search.attempt:
            phase = waiting.phase if waiting else None
            detail = waiting.detail if waiting else ""
            current = self._store.update(
                replace(current, state=State.QUEUED, phase=phase, run=None),
                Event(State.QUEUED, phase, detail),
            )
        return NotNow(current, waiting or _LOST)
