"""A submit command behind both gates: it runs inside Gate A, and what it made goes on after it.

The passage of a command that *is* the search ends with the command. Here the command only submits:
its end is the end of the submission, the search goes on in the cluster, and its run slot with it.

What is left behind in each case (the protocol's outcomes):

* it succeeded: its hold is *submitted* under the id that appeared, with a companion for peers;
* it failed, or was interrupted: what carries its id is deleted, and the slot kept for a while,
  since a request of it that timed out may still arrive;
* the submit lease was lost meanwhile: nothing is touched, somebody else may be inside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from blastyard.admission.census import UNLABELLED
from blastyard.admission.hold import Submission
from blastyard.admission.ledger import Fence
from blastyard.admission.outcome import Waiting
from blastyard.admission.stay import Stay
from blastyard.admission.submission import made
from blastyard.admission.ticket import Wish
from blastyard.domain.errors import PASSING, Unavailable
from blastyard.service.entrance import Entrance, Patience, Running
from blastyard.service.passage import Passage

LOOK: Final = 0.5
"""Seconds between two looks at the lease while the command runs."""
_PAUSE: Final = 0.2


class Submitted(Protocol):
    """How a command ended."""

    @property
    def by_itself(self) -> bool:
        """It was not ended from outside."""
        ...

    @property
    def exit_code(self) -> int | None:
        """``None`` when a signal ended it."""
        ...


class Fate(StrEnum):
    """What became of a submission."""

    COMPLETE = "complete"
    UNSEEN = "unseen"
    """The command succeeded, and nothing it made is seen yet."""
    UNCONFIRMED = "unconfirmed"
    """The command succeeded, and the ledger could not be told before the lease was over."""
    FAILED = "failed"
    LEASE_LOST = "lease_lost"


@dataclass(frozen=True, slots=True)
class Result:
    """The end of the command, and what stays of it."""

    fate: Fate
    made: Submission | None = None


R = TypeVar("R", bound=Running)
T = TypeVar("T")


class Submitting(Passage):
    """See the module. ``limit`` is how long the command may take. Use an instance once.

    ``watched`` tells that a cluster shows when searches end; otherwise the slot is free again when
    the command has ended. Attempts are numbered from ``first``: whoever cannot know which numbers
    an earlier process has used for this id begins where nobody else has.
    """

    def __init__(  # noqa: PLR0913  (a passage, and three words about its command)
        self,
        entrance: Entrance,
        wish: Wish,
        patience: Patience,
        told: Callable[[Waiting, float], None],
        *,
        limit: timedelta,
        watched: bool,
        first: int = 0,
    ) -> None:
        super().__init__(entrance, wish, patience, told)
        self._attempt = first
        self.result: Result | None = None
        self._limit = limit.total_seconds()
        self._watched = watched

    def admit(self, start: Callable[[float], R]) -> R:
        """See :meth:`Passage.admit`. Signs on first: who is not in the roster counts as gone."""
        self._patiently(self._gate.beat)
        return super().admit(start)

    def _submit(self, stay: Stay, fence: Fence, start: Callable[[float], R]) -> R:
        self._require_trust(stay)
        until = self._entrance.monotonic() + self._limit
        running = start(min(stay.deadline, until))
        with self._lock:
            self._running = running
        self.result = Result(Fate.UNCONFIRMED)
        if self._stopped.is_set():
            running.end()
        try:
            ending = self._guarded(stay, running, until)
        except BaseException:
            running.end()
            running.wait()
            raise
        self.result = self._outcome(stay, fence, ending)
        return running

    def _guarded(self, stay: Stay, running: Running, until: float) -> Submitted:
        """Wait for its end. The deadline follows the lease, which the heartbeat renews."""
        while (ending := running.wait(LOOK)) is None:
            running.extend(min(stay.deadline, until))
        return ending  # type: ignore[return-value]

    def _outcome(self, stay: Stay, fence: Fence, ending: Submitted) -> Result:
        if not stay.is_trusted:
            return Result(Fate.LEASE_LOST)
        if not (ending.by_itself and ending.exit_code == 0):
            self._while_trusted(stay, lambda: self._undo(stay, fence))
            return Result(Fate.FAILED)
        if not self._watched:
            return Result(Fate.COMPLETE)
        return self._while_trusted(stay, lambda: self._complete(stay, fence)) or Result(
            Fate.UNCONFIRMED
        )

    def _complete(self, stay: Stay, fence: Fence) -> Result:
        """Have peers see it, tell the ledger, and take down what stood in for it; in that order."""
        search = self._wish.search
        ledger = self._gate.lately()
        _, census = self._gate.outlook.observe()
        seen = made(search, stay.census, census, ledger.holds)
        hold = ledger.holds.get(search)
        if seen is not None and hold is not None and seen.alias != UNLABELLED:
            self._gate.marking.companions(search, hold, seen)
            seen = replace(seen, marked=True)  # from now on its absence is somebody's deed
        if not stay.confirm(search, fence, seen or Submission()):
            return Result(Fate.UNCONFIRMED, seen)
        if seen is None:
            return Result(Fate.UNSEEN)
        if census.has_finalizer(seen.alias or search):
            self._gate.marking.drop_stand_in(search)
        return Result(Fate.COMPLETE, seen)

    def _undo(self, stay: Stay, fence: Fence) -> bool:
        """Delete what carries its id. What it submitted under an id of its own making cannot be
        told from somebody else's with certainty, and goes on if it is complete."""
        search = self._wish.search
        if not self._watched:
            return stay.fail(search, fence)
        ledger = self._gate.lately()
        _, census = self._gate.outlook.observe()
        seen = made(search, stay.census, census, ledger.holds)
        if seen is not None and census.has_finalizer(seen.alias or ""):
            return self._complete(stay, fence).fate is not Fate.UNCONFIRMED
        self._gate.marking.markers.delete_search(search)
        return stay.fail(search, fence)

    def _while_trusted(self, stay: Stay, call: Callable[[], T]) -> T | None:
        """``call()``, again while the cluster does not answer and nobody else can be inside."""
        while stay.is_trusted:
            try:
                return call()
            except Unavailable as error:
                if error.code not in PASSING:
                    raise
            self._never.wait(_PAUSE)
        return None

    def _let_go(self) -> None:
        """A slot that the command has used is not ours to end; see the module."""
        used = self.result is not None and self._watched
        if not used:
            super()._let_go()
        self._patiently(self._gate.flush)
