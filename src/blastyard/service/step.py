"""One step of one search, whatever runs it. Nothing waits in here; whoever calls comes back when
told to.

How a search waits, for its turn, its database, its deadlines, is here; how it is run is its
subclasses' matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from datetime import datetime, timedelta

from blastyard.admission.gate import Gate
from blastyard.admission.order import Turn
from blastyard.admission.outcome import Reason, Waiting
from blastyard.domain.errors import Failure, NotFound, Unavailable
from blastyard.domain.job import Phase, State
from blastyard.domain.search import DatabaseState, Event, Search
from blastyard.service.ending import ON_REQUEST, Endings
from blastyard.service.outcome import NOW, Done, Wait
from blastyard.service.window import Window
from blastyard.store.port import SearchStore, Stale

FLOOR = timedelta(seconds=30)
"""How often a waiting search is looked at when no event wakes it."""
LAST_STEPS_SECONDS = 60.0
"""How long a process that ends waits for steps under way; a step submits at most one search."""


class Step(ABC):
    """Moves searches forward, one step at a time; never two steps of one search at once."""

    def __init__(self, store: SearchStore, gate: Gate, window: Window, endings: Endings) -> None:
        self._store = store
        self._gate = gate
        self._window = window
        self._endings = endings

    def __call__(self, search_id: str) -> Done | Wait:
        """One step. Raises ``Unavailable`` when it cannot be told what is true; ask again."""
        try:
            search = self._store.get(search_id)
            return self._step(search)
        except NotFound as error:
            if error.code == "search_unknown":
                self._gate.end(search_id)
                return Done()
            raise
        except Stale:
            return Wait(NOW, "changed meanwhile")

    def _step(self, search: Search) -> Done | Wait:
        if search.state.is_terminal:
            self._let_go(search)
            return Done()
        if search.runner != self._gate.me.name:
            self._gate.adopt(search.id, search.runner)
            return Done()
        if search.cancel_requested:
            return self._cancelled(search)
        return self._by_state(search)

    def _by_state(self, search: Search) -> Done | Wait:
        match search.state:
            case State.QUEUED:
                return self._queued(search)
            case State.RUNNING:
                return self._running(search)
            case State.COLLECTING:
                return self._collect(search)
            case _:
                return self._unfinished(search)

    # -- what runs it ----------------------------------------------------------------------------

    @abstractmethod
    def _attempt(self, search: Search) -> Done | Wait:
        """It is its turn."""

    @abstractmethod
    def _unfinished(self, search: Search) -> Done | Wait:
        """An attempt began and did not get far enough."""

    @abstractmethod
    def _running(self, search: Search) -> Done | Wait:
        """It runs."""

    @abstractmethod
    def _collect(self, search: Search) -> Done | Wait:
        """It has run."""

    @abstractmethod
    def _cancelled(self, search: Search, why: str = ON_REQUEST) -> Done | Wait:
        """Nobody wants it any more."""

    @abstractmethod
    def _ended(self, search: Search) -> Done:
        """Its last write is made."""

    def _let_go(self, search: Search) -> None:
        """It has ended: neither slot nor place is left."""
        self._gate.end(search.id)

    def _failed(self, search: Search, failure: Failure) -> Done:
        self._endings.fail(search, failure)
        return self._ended(search)

    # -- waiting -------------------------------------------------------------------------------

    def _queued(self, search: Search) -> Done | Wait:
        try:
            return self._decided(search)
        except Unavailable as error:
            ended = self._undecided(search.id, error)
            if ended is not None:
                return ended
            raise

    def _undecided(self, search_id: str, error: Unavailable) -> Done | None:
        """It cannot be told whether it may run: it waits for that reason, and its deadline runs."""
        search = self._store.get(search_id)
        is_ours = search.runner == self._gate.me.name
        if search.state not in (State.QUEUED, State.ADMITTING) or not is_ours:
            return None  # a command may have begun
        waiting = Waiting(Reason.SUBMIT_SLOT, error.message)
        overdue = _overdue(search, waiting, self._store.now())
        if overdue is not None:
            return self._failed(search, overdue)
        if (search.state, search.phase) != (State.QUEUED, waiting.phase):
            self._store.update(
                replace(search, state=State.QUEUED, phase=waiting.phase),
                Event(State.QUEUED, waiting.phase, waiting.detail),
            )
        return None

    def _decided(self, search: Search) -> Done | Wait:
        not_ready = self._database_wait(search)
        if not_ready is not None:
            return not_ready
        match self._gate.turn(search.id):
            case Turn():
                return self._attempt(search)
            case Waiting(reason=Reason.UNPUBLISHED):
                self._window.refill(force=True)
                return Wait(FLOOR, Phase.WAITING_FOR_CAPACITY)
            case Waiting(reason=Reason.SUBMITTER):
                self._gate.adopt(search.id)
                return Wait(NOW, Phase.WAITING_FOR_CAPACITY)
            case waiting:
                return self._wait(search, waiting)

    def _database_wait(self, search: Search) -> Done | Wait | None:
        try:
            database = self._store.get_database(search.request.database)
        except NotFound as error:
            return self._failed(search, Failure(error.code, error.message, error.next_step))
        if database.state is not DatabaseState.COPYING:
            if search.phase == Phase.WAITING_FOR_DATABASE:
                self._gate.block(search.id, None)
            return None
        self._gate.block(search.id, Phase.WAITING_FOR_DATABASE)
        return self._wait(search, Waiting(Reason.BLOCKED, f"{database.name} is being copied"))

    def _wait(self, search: Search, waiting: Waiting) -> Done | Wait:
        delay = FLOOR
        if waiting.until is not None:
            delay = min(delay, waiting.until - self._gate.now())
        if deadlines := _deadlines(search):
            now = self._store.now()
            overdue = _overdue(search, waiting, now)
            if overdue is not None:
                return self._failed(search, overdue)
            delay = min(delay, *(at - now for at in deadlines))
        if search.phase != waiting.phase:
            self._store.update(
                replace(search, phase=waiting.phase),
                Event(State.QUEUED, waiting.phase, waiting.detail),
            )
        return Wait(max(NOW, delay), waiting.phase)

    def _refused(self, search: Search) -> Done | Wait:
        """Something stands in the ledger that does not belong to this attempt.

        The row says that nothing of it is alive, so a hold it has is a leftover. The row is read
        after the fence: whoever took the search over meanwhile and was granted a slot has a later
        one.
        """
        upto = self._gate.ledger().fence
        search = self._store.get(search.id)
        if search.state is State.QUEUED and search.runner == self._gate.me.name:
            self._gate.give_back(search.id, upto=upto)
            self._window.refill(force=True)
        return Wait(NOW, Phase.WAITING_FOR_CAPACITY)


def _overdue(search: Search, waiting: Waiting, now: datetime) -> Failure | None:
    slot = waiting.phase == Phase.WAITING_FOR_SUBMIT_SLOT
    deadline = search.submit_deadline_at if slot else search.capacity_deadline_at
    if deadline is None or now < deadline:
        return None
    code = "submit_slot_timeout" if slot else "capacity_timeout"
    waited = int((now - search.created_at).total_seconds())
    message = f"waited {waited} s and did not get its turn: {waiting.detail}"
    return Failure(code, message, "see `blastyard gate status` for who holds what, then rerun it")


def _deadlines(search: Search) -> list[datetime]:
    """Until when the search may wait, by the clock of its store."""
    deadlines = (search.submit_deadline_at, search.capacity_deadline_at)
    return [at for at in deadlines if at is not None]
