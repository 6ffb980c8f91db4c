"""What carries the ids of searches that run, asked for again only when something has changed.

Many may run, and each is looked at whenever anything in the namespace changes. What is followed
anyway tells whether anything of *this* search has; when that cannot be told, and now and then all
the same, all that were looked at lately are asked for at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from blastyard.engine.elastic_blast.sight import Sight

FRESH_SECONDS: Final = 25.0
"""How long an answer counts while nothing is seen to change."""
UNFOLLOWED_SECONDS: Final = 2.0
"""The same while nothing is followed."""
_LATELY_SECONDS: Final = 120.0


@dataclass(slots=True)
class _Known:
    sight: Sight
    sign: object
    asked_at: float
    wanted_at: float


class Followed:
    """Looks at searches that run. Thread-safe.

    ``look_at`` asks for several at once. ``sign(name)`` is something that differs when the Jobs of
    a search have changed; ``None`` when they are not followed. ``monotonic`` is the clock of the
    answers' age.
    """

    def __init__(
        self,
        look_at: Callable[[Iterable[str]], dict[str, Sight]],
        sign: Callable[[str], object],
        monotonic: Callable[[], float],
    ) -> None:
        self._look_at = look_at
        self._sign = sign
        self._monotonic = monotonic
        self._lock = Lock()
        self._known: dict[str, _Known] = {}

    def look(self, name: str) -> Sight:
        """What carries the id, as it was not long ago. Raises ``Unavailable``."""
        sign, now = self._sign(name), self._monotonic()
        with self._lock:
            known = self._known.get(name)
            if known is not None:
                known.wanted_at = now
                fresh = FRESH_SECONDS if sign is not None else UNFOLLOWED_SECONDS
                if known.sign == sign and now - known.asked_at < fresh:
                    return known.sight
        return self._ask(name, now)[name]

    def forget(self, name: str) -> None:
        """It will not be looked at again."""
        with self._lock:
            self._known.pop(name, None)

    def _ask(self, name: str, now: float) -> dict[str, Sight]:
        with self._lock:
            self._known = {
                each: known
                for each, known in self._known.items()
                if now - known.wanted_at < _LATELY_SECONDS
            }
            old = {n for n, k in self._known.items() if now - k.asked_at >= FRESH_SECONDS / 2}
        # read before the Jobs are: what changes in between differs, and is asked for again
        signs = {each: self._sign(each) for each in old | {name}}
        sights = self._look_at(signs)
        with self._lock:
            for each, sight in sights.items():
                before = self._known.get(each)
                wanted_at = now if each == name or before is None else before.wanted_at
                self._known[each] = _Known(sight, signs[each], now, wanted_at)
        return sights
