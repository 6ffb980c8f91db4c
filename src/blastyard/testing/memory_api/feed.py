"""What a watch hears: a stream of lines that somebody else puts in.

A feed blocks in its :class:`Signal` only, and holds no lock while it does, so that the same code
runs on threads and in virtual time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from blastyard.domain.errors import Unavailable


class Signal(Protocol):
    """What a feed waits for; ``threading.Event`` is one."""

    def set(self) -> object:
        """Wake whoever waits, now or later."""
        ...

    def clear(self) -> object:
        """Make later waits wait again."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, for so many seconds at most."""
        ...


class _Condition(Enum):
    OPEN = auto()
    SILENT = auto()
    """The connection is half open: nothing comes any more, not even its end."""
    ENDED = auto()
    BROKEN = auto()
    CLOSED = auto()


@dataclass(slots=True)
class Schedule:
    """When a feed does what by itself, in monotonic seconds."""

    monotonic: Callable[[], float]
    ends_at: float
    bookmark_at: float
    """Infinite where no bookmarks are wanted."""
    bookmark_every: float


class Feed:
    """One open watch; a ``blastyard.kube.wire.Stream``."""

    def __init__(
        self,
        schedule: Schedule,
        signal: Signal,
        bookmark: Callable[[Feed], None],
        detach: Callable[[Feed], None],
    ) -> None:
        self.status = 200
        self.body = b""
        self.retry_after: float | None = None
        self.wants_bookmarks = schedule.bookmark_at != float("inf")
        self._schedule = schedule
        self._signal = signal
        self._bookmark = bookmark
        self._detach = detach
        self._condition = _Condition.OPEN
        self._ready: deque[bytes] = deque()

    # -- the reader's side ---------------------------------------------------------------------

    def lines(self, quiet: float) -> Iterator[bytes]:
        """See ``Stream``."""
        try:
            while True:
                line = self._next(self._schedule.monotonic() + quiet)
                if line is None:
                    return
                yield line
        finally:
            self._detach(self)

    def close(self) -> None:
        """See ``Stream``."""
        self._detach(self)
        self._become(_Condition.CLOSED)

    def _next(self, latest: float) -> bytes | None:
        while True:
            self._signal.clear()
            now = self._schedule.monotonic()
            match self._condition:
                case _Condition.CLOSED:
                    return None
                case _Condition.BROKEN:
                    raise _broken("the connection was reset")
                case _Condition.OPEN | _Condition.ENDED:
                    self._speak(now)
                    if self._ready:
                        return self._ready.popleft()
                    if self._condition is _Condition.ENDED or now >= self._schedule.ends_at:
                        return None
            if now >= latest:
                raise _broken("nothing came for too long")
            self._signal.wait(max(0.0, min(latest, self._due()) - now))

    def _speak(self, now: float) -> None:
        """Say by itself what is due."""
        if self._condition is _Condition.OPEN and now >= self._schedule.bookmark_at:
            self._schedule.bookmark_at = now + self._schedule.bookmark_every
            self._bookmark(self)

    def _due(self) -> float:
        if self._condition is _Condition.SILENT:
            return float("inf")
        return min(self._schedule.ends_at, self._schedule.bookmark_at)

    # -- the server's side ---------------------------------------------------------------------

    def offer(self, line: bytes) -> None:
        """One more line to hear."""
        if self._condition is _Condition.OPEN:
            self._ready.append(line)
            self._signal.set()

    def end(self) -> None:
        """The server closes it, once everything is heard."""
        self._become(_Condition.ENDED)

    def cut(self) -> None:
        """The connection breaks: what was not heard yet is lost."""
        self._become(_Condition.BROKEN)

    def silence(self) -> None:
        """The connection becomes half open: what was not heard yet is lost, and nobody knows."""
        self._become(_Condition.SILENT)

    def _become(self, condition: _Condition) -> None:
        if self._condition is not _Condition.CLOSED:
            self._condition = condition
        self._signal.set()


@dataclass(slots=True)
class Refused:
    """A ``Stream`` that was not opened."""

    status: int
    body: bytes
    retry_after: float | None = None

    def lines(self, quiet: float) -> Iterator[bytes]:  # noqa: ARG002
        """There are none."""
        return iter(())

    def close(self) -> None:
        """Nothing is open."""


def _broken(why: str) -> Unavailable:
    return Unavailable("cluster_unavailable", f"The watch broke: {why}.", "Read again, then watch.")
