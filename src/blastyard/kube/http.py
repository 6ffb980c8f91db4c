"""The wire over HTTP: one connection pool, one credential, nothing sent twice.

What never became an answer is raised as ``Unavailable('cluster_unavailable')``, in words that name
the address and the request; a server whose certificate does not prove itself is
``Misconfigured('cluster_misconfigured')``, since no second try will help. Proxies and certificates
in the environment variables of other programs are not looked at.

Not guaranteed: that ``timeout`` ends an answer that comes byte by byte before its head is complete.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Lock
from typing import Final
from urllib.parse import quote, urlencode

import httpx2

from blastyard.kube.error import ServerTrouble
from blastyard.kube.http_failure import CONNECT_SECONDS, Asked, Incomplete, translated
from blastyard.kube.http_stream import HttpStream, Timeouts
from blastyard.kube.wire import Answer, Call

_LIMITS: Final = httpx2.Limits(
    max_connections=64,
    max_keepalive_connections=16,
    keepalive_expiry=30.0,  # a server closes idle ones after 90 s, most balancers after 60
)
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)
_HEADERS: Final = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "user-agent": "blastyard",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an API server is, how it proves itself, and how we do."""

    url: str
    tls: ssl.SSLContext
    auth: httpx2.Auth | None = None
    proxy: str | None = None
    server_name: str | None = None
    """The name in the server's certificate, where it is not that of the address."""


class HttpWire:
    """A :class:`~blastyard.kube.wire.Wire` to an endpoint. Thread-safe; a forked child has its own
    connections. ``monotonic`` is the clock of ``sent_at`` and ``received_at``, in seconds.
    """

    def __init__(self, endpoint: Endpoint, monotonic: Callable[[], float]) -> None:
        self._endpoint = endpoint
        self._base = endpoint.url.rstrip("/")
        self._monotonic = monotonic
        self._lock = Lock()
        self._inherited: list[httpx2.Client] = []
        self._process = os.getpid()
        self._client = self._connect()

    def send(self, call: Call) -> Answer:
        """Make one request. Raises ``ServerTrouble``: it may have been applied all the same."""
        sent_at = self._monotonic()
        with translated(Asked(self._base, call, call.timeout)):
            response = self._open(call, {})
            try:
                body = self._body(response, sent_at + call.timeout)
            finally:
                response.close()
            received_at = self._monotonic()
        return Answer(
            status=response.status_code,
            body=body,
            date=_date(response.headers.get("date")),
            retry_after=_seconds(response.headers.get("retry-after")),
            sent_at=sent_at,
            received_at=received_at,
        )

    def stream(self, call: Call) -> HttpStream:
        """Open a response that goes on; its head must come within ``call.timeout``."""
        opened_at = self._monotonic()
        timeouts: Timeouts = {}
        with translated(Asked(self._base, call, call.timeout)):
            # whoever closes the stream ends its connection, so it must never be anybody else's
            response = self._open(call, timeouts, {"connection": "close"})
            body = b""
            if response.status_code != httpx2.codes.OK:
                try:
                    body = self._body(response, opened_at + call.timeout)
                finally:
                    response.close()
        asked = Asked(self._base, call, call.timeout)
        retry_after = _seconds(response.headers.get("retry-after"))
        return HttpStream(response, body, retry_after, timeouts, asked)

    def close(self) -> None:
        """Let go of all connections; a request that is under way fails."""
        self._client.close()

    def _connect(self) -> httpx2.Client:
        transport = httpx2.HTTPTransport(
            verify=self._endpoint.tls,
            trust_env=False,
            limits=_LIMITS,
            proxy=self._endpoint.proxy,
            retries=0,
            socket_options=_KEEPALIVE,
        )
        return httpx2.Client(
            transport=transport,
            auth=self._endpoint.auth,
            headers=_HEADERS,
            trust_env=False,
            follow_redirects=False,
        )

    def _own_client(self) -> httpx2.Client:
        with self._lock:
            if self._process != os.getpid():
                self._inherited.append(self._client)  # closing it would end the parent's sessions
                self._client, self._process = self._connect(), os.getpid()
            return self._client

    def _open(
        self, call: Call, timeouts: Timeouts, headers: dict[str, str] | None = None
    ) -> httpx2.Response:
        timeouts |= {
            "connect": min(CONNECT_SECONDS, call.timeout),
            "pool": call.timeout,
            "read": call.timeout,
            "write": call.timeout,
        }
        extensions: dict[str, object] = {"timeout": timeouts}
        if self._endpoint.server_name:
            extensions["sni_hostname"] = self._endpoint.server_name
        if call.body is not None:
            headers = {"content-type": call.content_type, **(headers or {})}
        client = self._own_client()
        if client.is_closed:
            raise ServerTrouble(f"the connection to {self._base} was closed here", "")
        request = client.build_request(
            call.method, self._url(call), content=call.body, headers=headers, extensions=extensions
        )
        return client.send(request, stream=True)

    def _url(self, call: Call) -> str:
        query = f"?{urlencode(call.query)}" if call.query else ""
        return f"{self._base}{quote(call.path)}{query}"

    def _body(self, response: httpx2.Response, deadline: float) -> bytes:
        pieces: list[bytes] = []
        for piece in response.iter_raw():
            pieces.append(piece)
            if self._monotonic() > deadline:
                raise Incomplete("the answer trickles")
        return b"".join(pieces)


def _date(text: str | None) -> datetime | None:
    """The ``Date`` of an answer (RFC 9110, section 5.6.7); ``None`` for what is none."""
    try:
        date = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)


def _seconds(text: str | None) -> float | None:
    """A ``Retry-After`` in seconds; an API server sends no dates there."""
    return float(text) if text and text.isdecimal() and text.isascii() else None
