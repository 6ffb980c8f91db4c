"""What time an API server has, told from the ``Date`` of its answers.

An answer that says ``Date`` D was made at D or less than a second later, after the request was
sent and before the answer had come. So D minus the moment it came is never more than what the
server's clock is ahead of ours, and the greatest such difference is the best of them: some answers
are made just after the second has turned, and the more there are, the closer it gets.

Not guaranteed: that the estimate is not behind. After one answer it may be behind by a second and
the time the answer took; it is never ahead, unless the server's clock was put back and nothing was
heard from it since.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Lock
from typing import Final

from blastyard.domain.errors import Unavailable
from blastyard.kube.wire import Answer

DRIFT: Final = 0.0005
"""Seconds a second by which two clocks may run apart: what NTP may slew a clock by."""

_RESOLUTION: Final = 1.0
"""Seconds between two values of ``Date``."""


class ServerClock:
    """A lower bound of the server's clock, at any monotonic moment. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._origin: datetime | None = None
        self._ahead = 0.0
        """How far the server's clock, counted from the origin, is ahead of the monotonic one."""
        self._learned_at = 0.0

    @property
    def is_set(self) -> bool:
        """Whether an answer has told the time yet."""
        return self._origin is not None

    def observe(self, answer: Answer) -> None:
        """Learn from an answer; one without a ``Date`` teaches nothing."""
        if answer.date is None:
            return
        with self._lock:
            if self._origin is None:
                self._origin = answer.date
                self._learn(-answer.received_at, answer.received_at)
                return
            date = (answer.date - self._origin).total_seconds()
            least = date - answer.received_at
            # DRIFT on both sides: the older bound may have become untrue by that much by itself
            most = date + _RESOLUTION - answer.sent_at
            if least > self._bound(answer.received_at) or most < self._bound(answer.received_at):
                self._learn(least, answer.received_at)

    def now(self, monotonic: float) -> datetime:
        """The server's time at that moment, or somewhat less; aware, in UTC.

        Raises ``Unavailable('cluster_unavailable')`` while no answer has told the time.
        """
        with self._lock:
            if self._origin is None:
                raise Unavailable(
                    "cluster_unavailable",
                    "the API server has not said what time it is",
                    "look for a proxy before it that takes the Date header out of its answers",
                )
            return self._origin + timedelta(seconds=monotonic + self._bound(monotonic))

    def _bound(self, monotonic: float) -> float:
        """The lead as far as it is still certain: an old bound counts a little less each second."""
        return self._ahead - DRIFT * max(0.0, monotonic - self._learned_at)

    def _learn(self, ahead: float, at: float) -> None:
        self._ahead, self._learned_at = ahead, at
