"""One attempt at handing a search over: Gate A, a run slot, the submit command, and out again.

Each move is written before the next is made. Before anything is made in the cluster, the row says
under which id (*submitting*); so whoever finds it after a crash looks for that id, inside Gate A,
where no command of it can be alive: what is complete goes on, and what is not is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt
from blastyard.admission.inside import LeaseLost
from blastyard.admission.outcome import Granted, Reason, Refused, Waiting
from blastyard.admission.stay import Stay
from blastyard.domain.errors import PASSING, BlastyardError, Failure, Misconfigured, Unavailable
from blastyard.domain.job import State
from blastyard.domain.search import Event, RemoteRun, Search
from blastyard.engine.remote import (
    Absent,
    AtWork,
    Broken,
    Failed,
    NoAnswer,
    Over,
    Ready,
    RemoteEngine,
    Retryable,
    Submitted,
)
from blastyard.service.attempt import NotNow, Started
from blastyard.service.remote.errand import Errands
from blastyard.service.remote.submission import Place, Submissions
from blastyard.service.remote.trouble import Trouble, Troubles, trouble_of
from blastyard.store.port import SearchStore, Stale

_LOST = Waiting(Reason.SUBMIT_SLOT, "its turn was lost to another submission")


@dataclass(frozen=True, slots=True)
class Ended:
    """The search has ended: failed, or cancelled before anything of it was complete."""

    search: Search


@dataclass(frozen=True, slots=True)
class Setback:
    """The search is back in the queue, and not before its time again."""

    search: Search


Result = Started | NotNow | Refused | Ended | Setback


class RemoteAttempts:
    """Makes attempts, and finishes those that others began."""

    def __init__(
        self,
        store: SearchStore,
        gate: Gate,
        engine: RemoteEngine,
        errands: Errands,
        submissions: Submissions,
        troubles: Troubles,
    ) -> None:
        self._store = store
        self._gate = gate
        self._engine = engine
        self._errands = errands
        self._submissions = submissions
        self._troubles = troubles
        self._over: dict[str, int] = {}

    def is_over(self, search: Search) -> bool:
        """Whether this process made the attempt that the row names, and has come to its end."""
        return self._over.get(search.id) == search.attempt

    def forget(self, search_id: str) -> None:
        """No further attempt of this search will be made."""
        self._over.pop(search_id, None)

    def make(self, search: Search) -> Result:
        """Try once. Raises ``Stale`` and ``Unavailable``; the row then tells how far it came."""
        claimed = self._claimed(search, State.ADMITTING, "its turn has come")
        try:
            return self._made(claimed)
        finally:
            self._over[search.id] = claimed.attempt

    def _made(self, claimed: Search) -> Result:
        run = RemoteRun(self._engine.name(claimed.id, claimed.attempt), claimed.attempt)
        try:
            ready = self._engine.prepare(self._errands.of(claimed, run))
        except Unavailable as error:
            if error.code in PASSING:
                raise
            return self._met(claimed, Trouble(_failure(error), left_nothing=True))
        stay = self._gate.enter(claimed.id, claimed.attempt)
        if isinstance(stay, Waiting):
            return self._back(claimed, stay)
        try:
            return self._inside(claimed, stay, run, ready)
        except LeaseLost:
            return self._left(claimed)
        finally:
            self._gate.leave(stay)

    def resume(self, search: Search) -> Result:
        """Finish an attempt that got as far as its command: adopt, or undo, what it made."""
        if search.remote is None:
            raise AssertionError("a search is handed over under an id")
        # the claim is of this attempt, not of the one whose remains are looked at
        claimed = self._claimed(search, State.SUBMITTING, "")
        try:
            return self._resumed(claimed, search.remote)
        finally:
            self._over[search.id] = claimed.attempt

    def _resumed(self, claimed: Search, run: RemoteRun) -> Result:
        stay = self._gate.enter(claimed.id, claimed.attempt)
        if isinstance(stay, Waiting):
            return NotNow(claimed, stay)
        try:
            return self._settled(claimed, run, stay)
        except LeaseLost:
            return NotNow(self._store.get(claimed.id), _LOST)
        finally:
            self._gate.leave(stay)

    def _claimed(self, search: Search, state: State, reason: str) -> Search:
        now = self._store.now()
        claimed = replace(
            search,
            state=state,
            attempt=search.attempt + 1,
            phase=None,
            not_before_at=None,
            alive_at=now,
        )
        return self._store.update(claimed, Event(state, reason=reason) if reason else None)

    # -- inside Gate A ---------------------------------------------------------------------------

    def _inside(self, search: Search, stay: Stay, run: RemoteRun, ready: Ready) -> Result:
        for earlier in filter(None, (search.remote, run)):
            if not isinstance(self._found(search, earlier), Absent):
                return self._settled(search, earlier, stay)
        attempt = Attempt(search.id, search.attempt, self._gate.me.name, alias=run.id)
        match stay.reserve(attempt):
            case Waiting() as waiting:
                return self._back(search, waiting)
            case Refused() as refused:
                self._back(search, _LOST)
                return refused
            case Granted() as granted:
                return self._submit(search, ready, Place(stay, granted.fence, run))

    def _found(self, search: Search, run: RemoteRun) -> object:
        return self._engine.left(self._errands.of(search, run))

    def _settled(self, search: Search, run: RemoteRun, stay: Stay) -> Result:
        """What an earlier attempt left is adopted when it is complete, and else deleted."""
        stay.assert_markers()
        search = self._submitting(search, run, "looks for what an earlier attempt left")
        found = self._submissions.while_trusted(stay, lambda: self._found(search, run))
        if search.cancel_requested or not isinstance(found, AtWork | Over | Broken):
            # nobody has said that it could not be submitted: again as soon as it is safe
            return self._undone(search, stay, _unfinished(retry_after=0.0))
        self._submissions.adopt(search, run, stay)
        return self._running(search, "its submission was found complete")

    def _submitting(self, search: Search, run: RemoteRun, reason: str) -> Search:
        if (search.state, search.remote) == (State.SUBMITTING, run):
            return search
        after = replace(search, state=State.SUBMITTING, remote=run, alive_at=self._store.now())
        event = Event(State.SUBMITTING, reason=reason, details={"cluster_id": run.id})
        return self._store.update(after, event)

    def _submit(self, search: Search, ready: Ready, place: Place) -> Result:
        granted = f"run slot granted, fence {place.fence.number}"
        search = self._submitting(search, place.run, granted)
        try:
            outcome = self._submissions.make(search, ready, place)
        except Unavailable as error:
            if error.code in PASSING:
                raise
            outcome = NoAnswer(_failure(error))
        except Misconfigured as error:
            outcome = Failed(_failure(error))
        search = self._current(search)
        match outcome:
            case Submitted() as said:
                return self._completed(search, said, place)
            case Failed(failure=failure):
                self._submissions.undo(search, place.run, place.stay)
                return Ended(self._troubles.fail(self._current(search), failure))
            case Retryable() | NoAnswer():
                return self._undone(search, place.stay, trouble_of(outcome))

    def _completed(self, search: Search, said: Submitted, place: Place) -> Result:
        if search.cancel_requested or not self._submissions.is_complete(said, place):
            return self._undone(search, place.stay, _unfinished())
        if not self._submissions.confirm(search, place):
            return NotNow(search, _LOST)
        return self._running(search, f"attempt {place.run.attempt}")

    def _current(self, search: Search) -> Search:
        """The row as it is by now, while it still is this attempt's."""
        row = self._store.get(search.id)
        if row.attempt != search.attempt or row.state is not State.SUBMITTING:
            raise Stale(search.id)
        return row

    # -- what becomes of the row -----------------------------------------------------------------

    def _running(self, search: Search, reason: str) -> Started:
        def running(row: Search) -> Search:
            return replace(row, state=State.RUNNING, started_at=self._store.now(), alive_at=None)

        while True:
            try:
                after = running(search)
                return Started(self._store.update(after, Event(State.RUNNING, reason=reason)))
            except Stale:
                search = self._current(search)  # somebody has asked for its cancellation

    def _undone(self, search: Search, stay: Stay, trouble: Trouble) -> Result:
        if search.remote is not None:
            self._submissions.undo(search, search.remote, stay)
        return self._met(self._current(search), trouble)

    def _met(self, search: Search, trouble: Trouble) -> Result:
        after = self._troubles.meet(search, trouble)
        return Ended(after) if after.state.is_terminal else Setback(after)

    def _left(self, search: Search) -> Result:
        """The lease is lost: nothing is touched. What may have been made is looked at later."""
        row = self._store.get(search.id)
        if row.state is State.SUBMITTING:
            return NotNow(row, _LOST)
        return self._back(search, _LOST)

    def _back(self, search: Search, waiting: Waiting) -> NotNow:
        current = self._store.get(search.id)
        if current.state is State.ADMITTING and current.attempt == search.attempt:
            after = replace(current, state=State.QUEUED, phase=waiting.phase, alive_at=None)
            event = Event(State.QUEUED, waiting.phase, waiting.detail)
            current = self._store.update(after, event)
        return NotNow(current, waiting)


def _failure(error: BlastyardError) -> Failure:
    return Failure(error.code, error.message, error.next_step)


def _unfinished(retry_after: float | None = None) -> Trouble:
    return Trouble(
        Failure(
            "terminal_exec_unavailable",
            "The submission was not finished; what it had made was deleted.",
            "look what ends the submit command, or the process that runs it",
        ),
        retry_after,
    )
