"""The wire to an API server: one request, one answer, nothing sent twice.

Obligations of an implementer:

* ``send`` makes exactly one request. Any HTTP status is an answer; what never was one (no
  connection, a reset, a time-out, a body shorter than announced) raises ``Unavailable`` with the
  code ``cluster_unavailable``, and then the request may have been applied all the same.
* A request is never re-sent behind the caller's back: a PUT that was applied and is sent again
  comes back as a conflict that never was. (A 401, after which a fresh token is read, is no
  exception: it says that nothing was applied.)
* ``stream`` opens a response that has no end of its own. Its lines come as they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``path`` is absolute and not yet quoted; ``timeout`` is in seconds."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    timeout: float = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One response. ``date`` is the server's clock at it, in whole seconds; ``None`` = not told."""

    status: int
    body: bytes
    date: datetime | None
    retry_after: float | None
    """Seconds; ``None`` = the server did not say."""
    sent_at: float
    """Monotonic seconds just before the request was sent."""
    received_at: float
    """Monotonic seconds just after the response had come."""


class Stream(Protocol):
    """An open response. ``status`` other than 200 comes with ``body``, and without lines."""

    status: int
    body: bytes
    retry_after: float | None
    """Seconds; ``None`` = the server did not say."""

    def lines(self, quiet: float) -> Iterator[bytes]:
        """The lines, each without its end; ends when the server closes the stream.

        Raises ``Unavailable`` when it breaks, or when nothing came for ``quiet`` seconds.
        """
        ...

    def close(self) -> None:
        """Let go of the connection, from any thread; ends a ``lines`` that is waiting."""
        ...


class Wire(Protocol):
    """A connection pool to one API server, with one credential. Thread-safe."""

    def send(self, call: Call) -> Answer:
        """Make one request. Raises ``Unavailable('cluster_unavailable')`` when none came back."""
        ...

    def stream(self, call: Call) -> Stream:
        """Open a response that goes on. Raises ``Unavailable('cluster_unavailable')``."""
        ...

    def close(self) -> None:
        """Let go of all connections."""
        ...
