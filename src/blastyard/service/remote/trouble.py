"""What keeps a search from being submitted now, or for good.

A wait is no trouble, however long. Trouble is counted, and ends the search when it comes again and
again: with the code that it had in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from blastyard.domain.errors import Failure
from blastyard.domain.job import Phase, State
from blastyard.domain.search import Event, Search
from blastyard.engine.remote import NoAnswer, Retryable
from blastyard.service.ending import Endings
from blastyard.store.port import SearchStore

MOST: Final = 12
"""So often a search is submitted again after trouble."""
DELAY: Final = timedelta(seconds=30)
JITTER: Final = timedelta(seconds=10)
"""Added by chance to the delay, so that those who were sent away together do not come together."""

_FULL: Final = frozenset({"capacity", "queued"})


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why an attempt came to nothing, and when the next may be made."""

    failure: Failure
    retry_after: float | None = None
    """Seconds; ``None`` = nobody said."""
    detail: str = ""
    """For the search's history."""
    left_nothing: bool = False
    """Nothing was sent to the cluster, so nothing can arrive late."""

    @property
    def phase(self) -> Phase:
        """What the search waits for meanwhile."""
        if self.failure.code == "capacity_timeout":
            return Phase.WAITING_FOR_CAPACITY
        return Phase.WAITING_FOR_SUBMIT_SLOT


def trouble_of(outcome: Retryable | NoAnswer) -> Trouble:
    """What a submit command has said, as trouble."""
    match outcome:
        case NoAnswer(failure=failure, detail=detail):
            return Trouble(failure, None, detail)
        case Retryable(reason=reason, message=message, retry_after=retry_after):
            code = "capacity_timeout" if reason in _FULL else "submit_failed"
            step = "look into the cluster for what keeps it; then run the search again"
            return Trouble(Failure(code, message, step), retry_after, reason)


class Troubles:
    """Sends searches back to the queue. ``chance()`` is a random number from 0 to 1."""

    def __init__(
        self, store: SearchStore, endings: Endings, settle: timedelta, chance: Callable[[], float]
    ) -> None:
        self._store = store
        self._endings = endings
        self._settle = settle
        self._chance = chance

    def meet(self, search: Search, trouble: Trouble) -> Search:
        """Back to the queue for a while; or failed, when that was tried often enough."""
        if search.cancel_requested:
            return self._endings.cancel(search)
        before = sum(_is_trouble(event) for event in self._store.events(search.id))
        if before >= MOST:
            message = f"{trouble.failure.message} That was trouble {before + 1} in a row."
            return self._endings.fail(search, replace(trouble.failure, message=message))
        delay = self._delay(trouble)
        if not trouble.left_nothing:
            delay = max(delay, self._settle)
        after = replace(
            search,
            state=State.QUEUED,
            phase=trouble.phase,
            not_before_at=self._store.now() + delay,
            alive_at=None,
        )
        details = {"retry_after_seconds": f"{delay.total_seconds():.3f}"}
        if trouble.detail:
            details["detail"] = trouble.detail
        said = trouble.failure
        event = Event(State.QUEUED, trouble.phase, said.message, said.code, details=details)
        return self._store.update(after, event)

    def fail(self, search: Search, failure: Failure) -> Search:
        """Trying again would not help."""
        return self._endings.fail(search, failure)

    def _delay(self, trouble: Trouble) -> timedelta:
        if trouble.retry_after is not None:
            return timedelta(seconds=trouble.retry_after)
        return DELAY + self._chance() * JITTER


def _is_trouble(event: Event) -> bool:
    return event.state is State.QUEUED and event.code is not None
