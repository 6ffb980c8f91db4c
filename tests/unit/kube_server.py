"""A server on loopback that says exactly what it is told, byte by byte."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from threading import Event, Thread

from blastyard.domain.clock import SystemClock
from blastyard.kube.http import Endpoint, HttpWire

Conversation = Callable[["Server", socket.socket], None]
"""What the server does on one connection; the connection is closed when it returns."""

PATIENCE = 10.0
"""Seconds after which a server that nobody speaks to gives up."""


class Server:
    """Holds the conversations, one for each connection, in their order."""

    def __init__(self, *conversations: Conversation) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.requests: list[bytes] = []
        self.done = Event()
        """Set by a test to let go of conversations that wait for it."""
        self._thread = Thread(target=self._serve, args=(conversations,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def wire(self) -> HttpWire:
        """A wire to it."""
        tls = ssl.create_default_context()
        return HttpWire(Endpoint(f"http://127.0.0.1:{self.port}", tls), SystemClock().monotonic)

    def close(self) -> None:
        """End it."""
        self.done.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # ends an accept that waits
        self._listener.close()
        self._thread.join(PATIENCE)

    def hear(self, connection: socket.socket) -> bytes:
        """Read one request, and remember it."""
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return data
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            (
                int(line[15:])
                for line in head.split(b"\r\n")
                if line.lower()[:15] == b"content-length:"
            ),
            0,
        )
        while len(body) < length:
            body += connection.recv(65536)
        self.requests.append(head + b"\r\n\r\n" + body)
        return data

    def _serve(self, conversations: tuple[Conversation, ...]) -> None:
        for converse in conversations:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(PATIENCE)
                try:
                    converse(self, connection)
                except OSError:
                    continue


def answering(*answers: bytes) -> Conversation:
    """A conversation of requests and these answers."""

    def converse(server: Server, connection: socket.socket) -> None:
        for answer in answers:
            if not server.hear(connection):
                return
            connection.sendall(answer)
        server.hear(connection)

    return converse


def response(body: bytes = b"{}", status: str = "200 OK", headers: str = "") -> bytes:
    """A complete answer."""
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def chunk(data: bytes) -> bytes:
    """A piece of a stream."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAM_END = b"0\r\n\r\n"
