"""A response that has no end of its own, read by one thread and closed by any."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from threading import Lock

import httpx2

from blastyard.kube.error import ServerTrouble
from blastyard.kube.http_failure import Asked, translated

Timeouts = dict[str, float]
"""The seconds of a request that the HTTP library looks at: connect, pool, read, write."""


class HttpStream:
    """An open response. Read by one thread, closed by any."""

    def __init__(
        self,
        response: httpx2.Response,
        body: bytes,
        retry_after: float | None,
        timeouts: Timeouts,
        asked: Asked,
    ) -> None:
        self.status = response.status_code
        self.body = body
        self.retry_after = retry_after
        self._response = response
        self._timeouts = timeouts
        self._asked = asked
        self._lock = Lock()
        self._reading = False
        self._closed = False

    def lines(self, quiet: float) -> Iterator[bytes]:
        """The lines as they come; raises ``ServerTrouble`` also after ``quiet`` seconds of none."""
        with self._lock:
            if self._closed or self._response.is_closed:
                return
            self._reading = True
        # read by the connection when it begins with the body
        self._timeouts["read"] = quiet
        self._asked = replace(self._asked, seconds=quiet)
        try:
            yield from self._lines()
        finally:
            with self._lock:
                self._reading = False
                self._closed = True
            self._response.close()

    def close(self) -> None:
        """End it. A thread that waits for a line sees the end of the stream."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._reading:
                self._break()
                return
        self._response.close()

    def _lines(self) -> Iterator[bytes]:
        pending: list[bytes] = []
        for piece in self._pieces():
            *complete, rest = piece.split(b"\n")
            for line in complete:
                yield b"".join([*pending, line])
                pending.clear()
            pending.append(rest)
        if any(pending):
            yield b"".join(pending)

    def _pieces(self) -> Iterator[bytes]:
        pieces = self._response.iter_raw()
        while True:
            try:
                with translated(self._asked):
                    piece = next(pieces, None)
            except ServerTrouble:
                if self._closed:
                    return
                raise
            if piece is None:
                return
            yield piece

    def _break(self) -> None:
        """Wake the reading thread: closing a socket does not, shutting it down does."""
        network = self._response.extensions.get("network_stream")
        connection = network.get_extra_info("socket") if network else None
        if isinstance(connection, socket.socket):
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
