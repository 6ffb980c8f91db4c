"""One step of one search that is handed to a cluster."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from blastyard.admission.gate import Gate
from blastyard.admission.outcome import Reason, Refused, Waiting
from blastyard.domain.errors import BlastyardError, Failure, Unavailable
from blastyard.domain.job import Phase, State
from blastyard.domain.search import Event, Search
from blastyard.engine.remote import Absent, AtWork, Broken, Over, Partial, RemoteEngine
from blastyard.service.attempt import NotNow, Started
from blastyard.service.ending import BY_PEER, ON_REQUEST, Endings
from blastyard.service.outcome import NOW, Done, Wait
from blastyard.service.remote.attempt import Ended, RemoteAttempts, Result, Setback
from blastyard.service.remote.errand import Errands
from blastyard.service.step import FLOOR, Step
from blastyard.service.window import Window
from blastyard.store.port import SearchStore

QUIET: Final = timedelta(seconds=40)
"""How long a row must be without a sign of life before a second delivery of it acts."""
AGAIN: Final = timedelta(seconds=1)
"""Between two looks whether Gate A is free for a search that was submitted in part."""
REMOVED: Final = (
    "cancelled by another program of the cluster, which deleted its Jobs before they had ended"
)


@dataclass(frozen=True, slots=True)
class RemoteStages:
    """What a step works with."""

    store: SearchStore
    gate: Gate
    engine: RemoteEngine
    errands: Errands
    attempts: RemoteAttempts
    window: Window
    endings: Endings


class RemoteAdvance(Step):
    """See :class:`Step`."""

    def __init__(self, stages: RemoteStages) -> None:
        super().__init__(stages.store, stages.gate, stages.window, stages.endings)
        self._engine = stages.engine
        self._errands = stages.errands
        self._attempts = stages.attempts
        self._at_work: set[str] = set()
        """The ids that were seen at work when they were last looked at."""

    # -- submitting ------------------------------------------------------------------------------

    def _queued(self, search: Search) -> Done | Wait:
        left = None
        if search.not_before_at is not None:
            left = search.not_before_at - self._store.now()
        if left is None or left <= NOW:
            self._block(search, None)
            return super()._queued(search)
        self._block(search, search.phase or Phase.WAITING_FOR_SUBMIT_SLOT)
        full = search.phase == Phase.WAITING_FOR_CAPACITY
        reason = Reason.CAPACITY if full else Reason.SUBMIT_SLOT
        waits = self._wait(search, Waiting(reason, "its submission came to nothing a while ago"))
        return replace(waits, delay=min(left, waits.delay)) if isinstance(waits, Wait) else waits

    def _block(self, search: Search, phase: str | None) -> None:
        """Have its ticket say that it waits for its time, or no more."""
        ticket = self._gate.lately().tickets.get(search.id)
        if ticket is None or ticket.blocked == Phase.WAITING_FOR_DATABASE:
            return
        if ticket.blocked != phase:
            self._gate.block(search.id, phase)

    def _attempt(self, search: Search) -> Done | Wait:
        try:
            return self._came_to(search, self._attempts.make(search))
        except Unavailable:
            raise
        except BlastyardError as error:
            failure = Failure(error.code, error.message, error.next_step)
            return self._failed(self._store.get(search.id), failure)

    def _unfinished(self, search: Search) -> Done | Wait:
        left = self._quiet_in(search)
        if left > NOW:
            return Wait(left, search.state)
        if search.state is State.ADMITTING:  # nothing of it can have been made
            after = replace(search, state=State.QUEUED, phase=None, alive_at=None)
            self._store.update(after, Event(State.QUEUED, reason="an attempt did not begin"))
            return Wait(NOW, Phase.WAITING_FOR_SUBMIT_SLOT)
        match self._gate.turn(search.id):
            case Waiting(reason=Reason.SUBMIT_SLOT) as waiting:  # no claim while it cannot be had
                return self._not_now(search, waiting)
        return self._came_to(search, self._attempts.resume(search))

    def _quiet_in(self, search: Search) -> timedelta:
        """How long somebody else may still be at work on it."""
        if search.alive_at is None or self._attempts.is_over(search):
            return NOW
        return search.alive_at + QUIET - self._store.now()

    def _came_to(self, search: Search, result: Result) -> Done | Wait:
        match result:
            case Started(search=started):
                self._at_work.add(_name(started))
                return Wait(FLOOR, State.RUNNING)
            case Setback(search=again):
                return Wait(NOW, again.phase or again.state)
            case Ended(search=ended):
                return self._ended(ended)
            case NotNow(search=again, waiting=waiting):
                return self._not_now(again, waiting)
            case Refused():
                return self._refused(search)

    def _not_now(self, search: Search, waiting: Waiting) -> Done | Wait:
        if search.state is State.QUEUED:
            return (
                Wait(NOW, search.state) if search.cancel_requested else self._wait(search, waiting)
            )
        if waiting.until is None:  # it is looked at inside Gate A, which is woken for
            return Wait(AGAIN, search.state)
        return Wait(max(AGAIN, min(FLOOR, waiting.until - self._gate.now())), search.state)

    # -- running -----------------------------------------------------------------------------------

    def _running(self, search: Search) -> Done | Wait:
        name = _name(search)
        if self._gate.is_cancelled(search.id):
            return self._cancelled(search, BY_PEER)
        match self._engine.poll(name):
            case AtWork() | Partial():
                self._at_work.add(name)
                return Wait(FLOOR, State.RUNNING)
            case Broken(failure=failure):
                self._engine.cancel(name)  # what else of it runs, runs for nothing
                return self._failed(search, failure)
            case Absent() | Over():
                after = replace(search, state=State.COLLECTING)
                return self._collect(self._store.update(after, Event(State.COLLECTING)))

    def _collect(self, search: Search) -> Done | Wait:
        state = self._engine.poll(_name(search))
        seen = state.total if isinstance(state, Over) else 0
        collected = self._engine.collect(self._errands.again(search), seen)
        if isinstance(collected, Failure):
            if isinstance(state, Absent) and _name(search) in self._at_work:
                return self._cancelled(search, REMOVED)
            return self._failed(search, collected)
        self._endings.complete(replace(search, exactness=collected.exactness), collected.output)
        with suppress(Unavailable):  # they end by themselves, and peers list them until then
            self._engine.cancel(_name(search))
        return self._ended(search)

    # -- ending ------------------------------------------------------------------------------------

    def _cancelled(self, search: Search, why: str = ON_REQUEST) -> Done | Wait:
        if search.state is State.SUBMITTING:  # inside Gate A only
            return self._unfinished(search)
        if search.remote is not None:
            self._engine.cancel(search.remote.id)
        self._endings.cancel(search, why)
        return self._ended(search)

    def _ended(self, search: Search) -> Done:
        self._attempts.forget(search.id)
        if search.remote is not None:
            self._at_work.discard(search.remote.id)
        self._let_go(search)
        self._window.refill()
        self._engine.discard(self._errands.remains(search))
        return Done()

    def _let_go(self, search: Search) -> None:
        """A slot of which something may still arrive is kept until it cannot; then that goes, and
        the slot is free."""
        hold = self._gate.lately().holds.get(search.id)
        if hold is not None and hold.failed_at is not None:
            if self._gate.now() - hold.failed_at < self._gate.timings.settle:
                return
            if search.remote is not None:
                self._engine.cancel(search.remote.id)
        super()._let_go(search)


def _name(search: Search) -> str:
    """The id of a search that runs."""
    if search.remote is None:
        raise AssertionError("a search is handed over under an id")
    return search.remote.id
