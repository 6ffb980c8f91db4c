"""What time the storage account has, told from its answers.

There is no call that asks for the time. But each answer has a ``Date`` (whole seconds), and each
row an ETag that is the time of its last write, to a ten-millionth of a second. Neither is ever
later than the server's clock when the answer came. So their lead over the monotonic clock of that
moment is a lower bound of the server's lead, and the greatest lead is the best bound: after the
first write it is behind by no more than that answer's way here.

Not guaranteed: that the estimate is not behind. It is never ahead, unless the server's clock was
put back and nothing was heard from it since.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from threading import Lock
from typing import Final
from urllib.parse import unquote

from blastyard.domain.errors import Unavailable

DRIFT: Final = 0.0005
"""Seconds a second by which two clocks may run apart: what NTP may slew a clock by."""

_RESOLUTION: Final = 1.0
"""Seconds between two values of ``Date``."""
_STEP_BACK: Final = timedelta(seconds=2)
"""A correction of the estimate that is larger than this shows; a smaller one only holds it."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ETAG: Final = re.compile(r"datetime'(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6})\d*)?Z'")


class StoreClock:
    """A lower bound of the server's clock. Thread-safe; ``monotonic`` is this machine's."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = Lock()
        self._ahead = float("-inf")
        self._learned_at = 0.0
        self._told = _EPOCH
        self._last_sequence = 0

    def observe_date(self, header: str | None, sent_at: float) -> None:
        """Learn from the ``Date`` of an answer that has just come; no date teaches nothing."""
        try:
            date = parsedate_to_datetime(header or "")
            stamp = (date - _EPOCH).total_seconds()
        except (ValueError, TypeError):
            return
        with self._lock:
            now = self._monotonic()
            most = stamp + _RESOLUTION - sent_at
            if stamp - now > self._bound(now) or most < self._bound(now):
                self._ahead, self._learned_at = stamp - now, now

    def observe_etag(self, etag: str | None) -> None:
        """Learn from the ETag of a row in an answer that has just come."""
        stamp = _written_at(etag or "")
        if stamp is None:
            return
        with self._lock:
            now = self._monotonic()
            if stamp - now > self._bound(now):
                self._ahead, self._learned_at = stamp - now, now

    def now(self) -> datetime:
        """The server's time, or somewhat less; aware, in UTC.

        Raises ``Unavailable('store_unavailable')`` while no answer has told the time.
        """
        with self._lock:
            return self._now()

    def take_sequence(self) -> tuple[int, datetime]:
        """A sequence that this clock has not given before, larger than all it gave, and its time.

        It is the time in microseconds, so it is larger than that of any search whose row this
        process has seen.
        """
        with self._lock:
            at = self._now()
            number = (at - _EPOCH) // timedelta(microseconds=1)
            self._last_sequence = max(number, self._last_sequence + 1)
            return self._last_sequence, at

    def _now(self) -> datetime:
        monotonic = self._monotonic()
        bound = self._bound(monotonic)
        if bound == float("-inf"):
            raise Unavailable(
                "store_unavailable",
                "The storage account has not said what time it is.",
                "Look for a proxy before it that takes the Date header out of its answers.",
            )
        now = _EPOCH + timedelta(seconds=monotonic + bound)
        if now > self._told or self._told - now > _STEP_BACK:
            self._told = now
        return self._told

    def _bound(self, monotonic: float) -> float:
        """The lead as far as it is still certain: an old bound counts a little less each second."""
        return self._ahead - DRIFT * max(0.0, monotonic - self._learned_at)


def _written_at(etag: str) -> float | None:
    """Seconds since 1970; ``None`` for an ETag of another make."""
    found = _ETAG.search(unquote(etag))
    if found is None:
        return None
    whole = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    return (whole - _EPOCH).total_seconds() + float(f"0.{found[2] or 0}")
