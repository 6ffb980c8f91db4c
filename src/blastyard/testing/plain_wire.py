"""A wire to an API server by the standard library alone, for instruments that judge our own.

It shares no code with the product's wire, so that a mistake there cannot hide itself here.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from select import select
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable
from blastyard.kube.wire import Answer, Call

_BROKEN = (OSError, http.client.HTTPException)


@dataclass(frozen=True, slots=True)
class Access:
    """What a kubeconfig says: which server, proved by what, as whom, in which namespace."""

    url: str
    authority: bytes
    token: str
    namespace: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """The current context of a kubeconfig in JSON, as the test control plane writes it.

        Raises ``ValueError`` where it is no JSON, or has no token.
        """
        document = json.loads(path.read_bytes())
        context = _named(document["contexts"], document["current-context"])["context"]
        cluster = _named(document["clusters"], context["cluster"])["cluster"]
        user = _named(document["users"], context["user"])["user"]
        if "token" not in user or "certificate-authority-data" not in cluster:
            raise ValueError(f"{path} must have a token and certificate-authority-data")
        authority = base64.b64decode(cluster["certificate-authority-data"])
        namespace = context.get("namespace", "default")
        return cls(cluster["server"], authority, user["token"], namespace)


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


class PlainWire:
    """One kept connection for requests, under a lock, and one of its own for each stream."""

    def __init__(self, access: Access, client: str) -> None:
        self.access = access
        self._client = client
        self._trust = ssl.create_default_context(cadata=access.authority.decode())
        self._clock = SystemClock()
        self._kept: http.client.HTTPSConnection | None = None
        self._lock = threading.Lock()

    def send(self, call: Call) -> Answer:
        """See the wire."""
        with self._lock:
            connection = self._connection(call.timeout)
            sent_at = self._clock.monotonic()
            try:
                with closing(self._ask(connection, call)) as response:
                    body = response.read()
            except _BROKEN as error:
                self._drop()
                raise _unavailable(call, error) from error
        return Answer(
            response.status,
            body,
            _date(response),
            _seconds(response.getheader("Retry-After")),
            sent_at,
            self._clock.monotonic(),
        )

    def stream(self, call: Call) -> PlainStream:
        """See the wire."""
        connection = self._new(call.timeout)
        try:
            connection.connect()
            held = connection.sock  # an answer that ends its connection takes it away
            response = self._ask(connection, call)
            body = b"" if response.status == 200 else response.read()
        except _BROKEN as error:
            connection.close()
            raise _unavailable(call, error) from error
        return PlainStream(held, response, body)

    def close(self) -> None:
        """See the wire."""
        with self._lock:
            self._drop()

    def _connection(self, timeout: float) -> http.client.HTTPSConnection:
        kept = self._kept
        if kept is not None and kept.sock is not None and not select([kept.sock], [], [], 0)[0]:
            kept.sock.settimeout(timeout)
            return kept
        self._drop()  # the server has closed it: known before anything is sent on it
        self._kept = self._new(timeout)
        return self._kept

    def _new(self, timeout: float) -> http.client.HTTPSConnection:
        address = urlsplit(self.access.url)
        return http.client.HTTPSConnection(
            address.hostname or "", address.port, timeout=timeout, context=self._trust
        )

    def _drop(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _ask(self, connection: http.client.HTTPSConnection, call: Call) -> http.client.HTTPResponse:
        target = quote(call.path) + (f"?{urlencode(call.query)}" if call.query else "")
        headers = {
            "Authorization": f"Bearer {self.access.token}",
            "Accept": "application/json",
            "User-Agent": self._client,
        }
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        connection.request(call.method, target, call.body, headers)
        return connection.getresponse()


class PlainStream:
    """See the stream of a wire."""

    def __init__(
        self,
        held: socket.socket,
        response: http.client.HTTPResponse,
        body: bytes,
    ) -> None:
        self._socket = held
        self._response = response
        self.status = response.status
        self.body = body
        self.retry_after = _seconds(response.getheader("Retry-After"))
        self._closed = False

    def lines(self, quiet: float) -> Iterator[bytes]:
        """See the stream of a wire."""
        with suppress(OSError):
            self._socket.settimeout(quiet)
        while not self._closed:
            try:
                line = self._response.readline()
            except (*_BROKEN, ValueError, AttributeError) as error:
                if self._closed:
                    return
                raise Unavailable("cluster_unavailable", f"a watch broke: {error!r}") from error
            if not line:
                return
            yield line.rstrip(b"\n")

    def close(self) -> None:
        """See the stream of a wire."""
        self._closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # a reader in another thread wakes from it
        with suppress(*_BROKEN, ValueError):
            self._response.close()
        self._socket.close()


def _date(response: http.client.HTTPResponse) -> datetime | None:
    text = response.getheader("Date")
    return parsedate_to_datetime(text) if text else None


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isdigit() else None


def _unavailable(call: Call, error: Exception) -> Unavailable:
    return Unavailable("cluster_unavailable", f"{call.method} {call.path}: {error!r}", "try again")
