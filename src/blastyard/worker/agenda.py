"""Which searches a worker drives, and when each is to be stepped next. Thread-safe."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

_FAR = 3600.0
_LOOK_AGAIN = 1.0
_REST = 2.0


class Agenda:
    """Search ids with the monotonic time of their next step; never two steps of one at once."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = Lock()
        self._due: dict[str, float] = {}
        self._busy: set[str] = set()
        self._again: set[str] = set()
        self._if_well: set[str] = set()
        self._rests: dict[str, float] = {}
        self._running: set[str] = set()
        self._later: set[str] = set()

    def __len__(self) -> int:
        with self._lock:
            return len(self._due) + len(self._busy)

    def know(self, search_id: str) -> None:
        """Drive this search; step it now only if it is new here."""
        with self._lock:
            if search_id not in self._busy:
                self._due.setdefault(search_id, self._monotonic())

    def wake(self, search_id: str, *, patient: bool = False) -> None:
        """Step this search now, or once more after the step under way; ``patient`` = but not just
        after a step of it has failed."""
        with self._lock:
            self._wake(search_id, patient=patient)

    def wake_running(self) -> None:
        """Step all that run: their cancellation may have been asked for.

        One that is being stepped just now is looked at a little later, and nobody is woken for it:
        looks that bring about each other would never end.
        """
        with self._lock:
            self._later |= self._running & self._busy
            for search_id in self._running - self._busy:
                self._wake(search_id)

    def _wake(self, search_id: str, *, patient: bool = False) -> None:
        now = self._monotonic()
        if search_id in self._busy:
            (self._if_well if patient else self._again).add(search_id)
        elif patient:
            self._due[search_id] = max(now, self._rests.get(search_id, now))
        else:
            self._due[search_id] = now

    def begin(self) -> list[str]:
        """Take the searches whose time has come; each is busy until ``finish``."""
        with self._lock:
            now = self._monotonic()
            ready = [search_id for search_id, at in self._due.items() if at <= now]
            for search_id in ready:
                del self._due[search_id]
                self._busy.add(search_id)
            return ready

    def finish(
        self, search_id: str, delay: float | None, *, running: bool = False, failed: bool = False
    ) -> bool:
        """The step has ended; ``None`` = drive it no longer. Whether to step it again at once."""
        with self._lock:
            self._busy.discard(search_id)
            again = search_id in self._again or (search_id in self._if_well and not failed)
            self._again.discard(search_id)
            self._if_well.discard(search_id)
            self._rests.pop(search_id, None)
            if failed and delay is not None:
                self._rests[search_id] = self._monotonic() + min(delay, _REST)
            if search_id in self._later and delay is not None:
                delay = min(delay, _LOOK_AGAIN)
            self._later.discard(search_id)
            if running:
                self._running.add(search_id)
            else:
                self._running.discard(search_id)
            if again:
                self._due[search_id] = self._monotonic()
            elif delay is not None:
                self._due[search_id] = self._monotonic() + delay
            return again

    def next_in(self) -> float:
        """Seconds until the next step, at most an hour."""
        with self._lock:
            soonest = min(self._due.values(), default=None)
            return _FAR if soonest is None else max(0.0, soonest - self._monotonic())
