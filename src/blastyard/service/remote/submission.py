"""What happens inside Gate A: the submit command, and what becomes of what it made.

* complete: peers are shown its companion, the ledger is told, the stand-in goes down;
* otherwise: what carries its id is deleted, and its slot is kept for a while, since a request of it
  that timed out may still arrive;
* the submit lease was lost meanwhile: nothing is touched, somebody else may be inside.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from threading import Event as Signal
from typing import Final, TypeVar

from blastyard.admission.gate import Gate
from blastyard.admission.hold import Submission as Made
from blastyard.admission.inside import LeaseLost
from blastyard.admission.ledger import Fence
from blastyard.admission.stay import Stay
from blastyard.domain.errors import PASSING, Unavailable
from blastyard.domain.search import RemoteRun, Search
from blastyard.engine.remote import (
    AtWork,
    Broken,
    Outcome,
    Over,
    Ready,
    RemoteEngine,
    Submission,
    Submitted,
)
from blastyard.store.port import SearchStore, Stale

LOOK: Final = 0.5
"""Seconds between two looks at the lease while the command runs."""
UNSEEN: Final = 10.0
"""Seconds that a submission which is said to be complete may take to be seen so."""
_PAUSE: Final = 0.2

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a submission is: its stay in Gate A, and what it was granted there."""

    stay: Stay
    fence: Fence
    run: RemoteRun


class Submissions:
    """Makes submissions inside Gate A. ``limit`` is how long a command may take."""

    def __init__(
        self, store: SearchStore, gate: Gate, engine: RemoteEngine, limit: timedelta
    ) -> None:
        self._store = store
        self._gate = gate
        self._engine = engine
        self._limit = limit.total_seconds()
        self._never = Signal()

    def make(self, search: Search, ready: Ready, place: Place) -> Outcome:
        """Run the command to its end. Raises :class:`LeaseLost` when that came too late."""
        stay = place.stay
        _require_trust(stay)
        until = self._gate.monotonic() + self._limit
        with closing(ready.start(min(stay.deadline, until))) as submission:
            try:
                self._guard(search, submission, stay, until)
            except BaseException:
                submission.end()
                submission.wait()
                raise
            _require_trust(stay)
            outcome = submission.outcome()
        if outcome is None:
            raise AssertionError("a command that has ended has an outcome")
        return outcome

    def _guard(self, search: Search, submission: Submission, stay: Stay, until: float) -> None:
        """Wait for its end. Its deadline follows the lease, which the heartbeat renews; the row
        tells others meanwhile that somebody is at work on it."""
        beat = self._gate.timings.beat.total_seconds()
        beaten_at = self._gate.monotonic()
        while submission.wait(LOOK) is None:
            submission.extend(min(stay.deadline, until))
            if self._gate.monotonic() - beaten_at < beat:
                continue
            beaten_at = self._gate.monotonic()
            if not self._is_wanted(search):
                submission.end()

    def _is_wanted(self, search: Search) -> bool:
        """Give a sign of life; whether the search is still this attempt's, and nobody cancelled
        it. A store that does not answer changes nothing."""
        with suppress(Unavailable):
            row = self._store.get(search.id)
            if row.attempt != search.attempt or row.cancel_requested or row.state.is_terminal:
                return False
            with suppress(Stale):
                self._store.update(replace(row, alive_at=self._store.now()))
        return True

    # -- what became of it -----------------------------------------------------------------------

    def is_complete(self, said: Submitted, place: Place) -> bool:
        """Whether what a command says to have submitted is there. It may take a moment."""
        until = self._gate.monotonic() + UNSEEN
        while True:
            seen = self.while_trusted(place.stay, lambda: self._engine.look(place.run.id))
            if isinstance(seen, AtWork | Over | Broken) or said.terminal:
                return True
            if self._gate.monotonic() >= until:
                return False
            self._never.wait(_PAUSE)

    def confirm(self, search: Search, place: Place) -> bool:
        """Have peers see it, tell the ledger, and take down what stood in for it; in that order.

        ``False`` when another grant has replaced this one.
        """
        return self.while_trusted(place.stay, lambda: self._confirm(search, place))

    def _confirm(self, search: Search, place: Place) -> bool:
        self._show(search, place.run)
        made = Made(place.run.id, marked=True)  # from now on its absence is somebody's deed
        if not place.stay.confirm(search.id, place.fence, made):
            return False
        self._gate.marking.drop_stand_in(search.id)
        return True

    def adopt(self, search: Search, run: RemoteRun, stay: Stay) -> None:
        """The same for a submission that was found, whoever made it."""

        def take() -> None:
            self._show(search, run)
            self._gate.take_up(search.id)
            self._gate.marking.drop_stand_in(search.id)

        self.while_trusted(stay, take)

    def _show(self, search: Search, run: RemoteRun) -> None:
        hold = self._gate.ledger().holds.get(search.id)
        if hold is not None:
            self._gate.marking.companions(search.id, hold, Made(run.id))

    def undo(self, search: Search, run: RemoteRun, stay: Stay) -> None:
        """Delete what carries its id. Its slot is kept until nothing of it can arrive any more."""

        def delete() -> None:
            self._engine.cancel(run.id)
            ledger = self._gate.ledger()
            hold = ledger.holds.get(search.id)
            if hold is not None:
                stay.fail(search.id, Fence(ledger.uid, hold.fence))

        self.while_trusted(stay, delete)

    def while_trusted(self, stay: Stay, call: Callable[[], T]) -> T:
        """``call()``, again while the cluster does not answer and nobody else can be inside.

        Raises :class:`LeaseLost` when it never came about.
        """
        while stay.is_trusted:
            try:
                return call()
            except Unavailable as error:
                if error.code not in PASSING:
                    raise
            self._never.wait(_PAUSE)
        raise LeaseLost(stay.holder)


def _require_trust(stay: Stay) -> None:
    if not stay.is_trusted:
        raise LeaseLost(stay.holder)
