"""What happens at Gate A, as it looks from outside: who was denied, and who walked past it. Pure.

The lease and the Jobs are followed by two streams that do not keep step, so nothing is concluded
before both have had time to bring what belongs together; then the store's own order decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final, TypeVar

from blastyard.admission.lease import is_blastyard

GRACE: Final = 2.0
"""Seconds after which the other stream has told what happened before."""
_KEPT: Final = 2000


@dataclass(frozen=True, slots=True)
class Passed:
    """A search that appeared while nobody was inside Gate A."""

    search: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reckoning:
    """What has become certain since the last one."""

    denied: tuple[str, ...] = ()
    """Foreign holders that took the lease and cleared it without a new search."""
    passed: tuple[Passed, ...] = ()


@dataclass(frozen=True, slots=True)
class _Appeared:
    order: int
    seen_at: float
    passed: Passed


@dataclass(frozen=True, slots=True)
class _Visit:
    """A foreign holder's time inside, from one order to another."""

    holder: str
    began: int
    ended: int
    seen_at: float


E = TypeVar("E", _Appeared, _Visit)


class Onlooker:
    """Told by the streams, asked by the upkeep. Thread-safe; moments are monotonic seconds.

    ``order`` is the store's number of a write: of two, the larger one came later.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._holders: deque[tuple[int, str]] = deque(maxlen=_KEPT)
        self._appeared: deque[_Appeared] = deque(maxlen=_KEPT)
        self._visits: deque[_Visit] = deque(maxlen=_KEPT)
        self._known: dict[str, int] = {}

    def lease(self, order: int, holder: str, at: float) -> None:
        """The lease was seen with this holder; empty when it is free."""
        with self._lock:
            began, before = self._holders[-1] if self._holders else (0, "")
            if self._holders and order <= began:
                return
            if before == holder and self._holders:
                return
            self._holders.append((order, holder))
            if before and not holder and not is_blastyard(before):
                self._visits.append(_Visit(before, began, order, at))

    def job(self, order: int, search: str, labels: Mapping[str, str], at: float) -> None:
        """A Job of a search was seen that was not there before."""
        with self._lock:
            if search in self._known:
                return
            self._known[search] = order
            while len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]
            self._appeared.append(_Appeared(order, at, Passed(search, dict(labels))))

    def reckon(self, now: float) -> Reckoning:
        """What has become certain by now; each thing is told once."""
        with self._lock:
            denied = [visit.holder for visit in _due(self._visits, now) if not self._brought(visit)]
            passed = [
                each.passed for each in _due(self._appeared, now) if self._was_free(each.order)
            ]
        return Reckoning(tuple(denied), tuple(passed))

    def _brought(self, visit: _Visit) -> bool:
        return any(visit.began < order < visit.ended for order in self._known.values())

    def _was_free(self, order: int) -> bool:
        """Whether nobody was inside at that moment; unknown is no."""
        holder = next((who for at, who in reversed(self._holders) if at < order), None)
        return holder == ""


def _due(waiting: deque[E], now: float) -> list[E]:
    found: list[E] = []
    while waiting and now - waiting[0].seen_at >= GRACE:
        found.append(waiting.popleft())
    return found
