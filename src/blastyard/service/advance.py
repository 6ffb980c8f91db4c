"""One step of one search that runs on this machine, under a guardian of this process."""

from __future__ import annotations

from dataclasses import dataclass, replace

from blastyard.admission.gate import Gate
from blastyard.admission.outcome import Refused
from blastyard.domain.errors import BlastyardError, Failure, Unavailable
from blastyard.domain.job import Phase, State
from blastyard.domain.search import Event, Search
from blastyard.engine.port import Engine, Exited, Lost, Running
from blastyard.service.attempt import Attempts, NotNow, Started
from blastyard.service.ending import BY_PEER, ON_REQUEST, Endings
from blastyard.service.outcome import NOW, Done, Wait
from blastyard.service.step import FLOOR, Step
from blastyard.service.task import Tasks
from blastyard.service.window import Window
from blastyard.store.port import SearchStore


@dataclass(frozen=True, slots=True)
class Stages:
    """What a step works with."""

    store: SearchStore
    gate: Gate
    engine: Engine
    tasks: Tasks
    attempts: Attempts
    window: Window
    endings: Endings


class Advance(Step):
    """See :class:`Step`."""

    def __init__(self, stages: Stages) -> None:
        super().__init__(stages.store, stages.gate, stages.window, stages.endings)
        self._engine = stages.engine
        self._tasks = stages.tasks
        self._attempts = stages.attempts

    def _attempt(self, search: Search) -> Done | Wait:
        try:
            outcome = self._attempts.make(search)
        except Unavailable:
            raise
        except BlastyardError as error:
            failure = Failure(error.code, error.message, error.next_step)
            return self._failed(self._store.get(search.id), failure)
        match outcome:
            case Started():
                return Wait(FLOOR, State.RUNNING)
            case NotNow(search=again) if again.cancel_requested:
                return Wait(NOW, again.state)
            case NotNow(search=again, waiting=waiting):
                return self._wait(again, waiting)
            case Refused():
                return self._refused(search)

    def _unfinished(self, search: Search) -> Done | Wait:
        return self.retry(search, "an attempt did not get far enough")

    # -- running and ending ----------------------------------------------------------------------

    def _running(self, search: Search) -> Done | Wait:
        if search.run is None:
            return self.retry(search, "the attempt left no trace")
        if self._gate.is_cancelled(search.id):
            return self._cancelled(search, BY_PEER)
        match self._engine.poll(self._tasks.remains(search), search.run):
            case Running():
                return Wait(FLOOR, State.RUNNING)
            case Lost():
                return self.retry(search, "the process that ran it ended")
            case Exited(failure=failure):
                return self._exited(search, failure)

    def _exited(self, search: Search, failure: Failure | None) -> Done | Wait:
        if failure is None:
            after = replace(search, state=State.COLLECTING)
            return self._collect(self._store.update(after, Event(State.COLLECTING)))
        return self._badly(search, failure)

    def _badly(self, search: Search, failure: Failure) -> Done | Wait:
        if failure.code == "interrupted":
            return self.retry(search, failure.message)
        return self._failed(search, failure)

    def _collect(self, search: Search) -> Done | Wait:
        if search.run is None:
            return self.retry(search, "the attempt left no trace")
        try:
            output = self._engine.collect(self._tasks.remains(search), search.run)
        except Unavailable:
            raise
        except BlastyardError as error:
            return self._badly(search, Failure(error.code, error.message, error.next_step))
        self._endings.complete(search, output)
        return self._ended(search)

    def retry(self, search: Search, why: str) -> Done | Wait:
        """The attempt certainly does nothing any more: back to the queue, to its old place."""
        if search.run is not None:
            self._engine.cancel(search.run)
        failure = self._endings.why_given_up(search, why)
        if failure is not None:
            return self._failed(search, failure)
        self._gate.give_back(search.id)
        self._store.update(
            replace(search, state=State.QUEUED, phase=None, run=None, runner=self._gate.me.name),
            Event(State.QUEUED, reason=why),
        )
        return Wait(NOW, Phase.WAITING_FOR_CAPACITY)

    def _cancelled(self, search: Search, why: str = ON_REQUEST) -> Done | Wait:
        if search.run is not None:
            self._engine.cancel(search.run)
        self._endings.cancel(search, why)
        return self._ended(search)

    def _ended(self, search: Search) -> Done:
        self._gate.end(search.id)
        self._window.refill()
        self._engine.discard(self._tasks.remains(search))
        return Done()
