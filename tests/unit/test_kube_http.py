"""The wire over HTTP: one request is one request, and what was no answer is said in words."""

from __future__ import annotations

import os
import socket
import ssl
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Event

import httpx2
import pytest
from kube_server import (
    PATIENCE,
    Conversation,
    Server,
    answering,
    response,
)
from lightkube.config.client_adapter import BearerTokenFileAuth

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Misconfigured
from blastyard.kube.error import ServerTrouble
from blastyard.kube.http import Endpoint, HttpWire
from blastyard.kube.http_failure import Asked, translated
from blastyard.kube.wire import Call

GET = Call("GET", "/api/v1/x", timeout=1.0)
PUT = Call("PUT", "/api/v1/x", body=b'{"a":1}', timeout=1.0)


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    opened: list[Server] = []
    yield opened
    for server in opened:
        server.close()


@pytest.fixture
def serve(servers: list[Server]):
    def start(*answers: bytes) -> Server:
        server = Server(answering(*answers))
        servers.append(server)
        return server

    return start


@pytest.fixture
def hold(servers: list[Server]):
    """A server with one conversation of the test's own."""

    def start(*conversations: Conversation) -> Server:
        server = Server(*conversations)
        servers.append(server)
        return server

    return start


def reset(connection: socket.socket) -> None:
    """Close with a reset instead of an end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_an_answer_has_status_body_date_and_what_to_wait(serve) -> None:
    headers = "Date: Mon, 30 Nov 2026 17:46:13 GMT\r\nRetry-After: 7\r\n"
    wire = serve(response(b'{"a":2}', "429 Too Many Requests", headers)).wire()

    answer = wire.send(GET)

    assert (answer.status, answer.body, answer.retry_after) == (429, b'{"a":2}', 7.0)
    assert answer.date == datetime(2026, 11, 30, 17, 46, 13, tzinfo=UTC)
    assert answer.sent_at <= answer.received_at
    wire.close()


@pytest.mark.parametrize("headers", ["", "Date: yesterday\r\nRetry-After: soon\r\n"])
def test_headers_that_say_nothing_are_none(serve, headers: str) -> None:
    wire = serve(response(b"", "200 OK", headers)).wire()

    answer = wire.send(GET)

    assert (answer.date, answer.retry_after) == (None, None)
    wire.close()


def test_a_request_is_quoted_and_carries_its_body_and_type(serve) -> None:
    server = serve(response())
    wire = server.wire()

    wire.send(Call("PATCH", "/api/v1/a b", {"labelSelector": "app in (x,y)"}, b"{}", "text/x"))

    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"PATCH /api/v1/a%20b?labelSelector=app+in+%28x%2Cy%29 HTTP/1.1\r\n")
    assert b"content-type: text/x" in head.lower()
    assert body == b"{}"
    wire.close()


def test_one_connection_serves_many_requests(serve) -> None:
    server = serve(*[response()] * 5)  # on its only connection
    wire = server.wire()

    for _ in range(5):
        assert wire.send(PUT).status == 200

    assert len(server.requests) == 5
    wire.close()


def test_a_redirect_and_a_failure_are_answers_and_are_not_followed(serve) -> None:
    wire = serve(
        response(b"", "302 Found", "Location: http://127.0.0.1:1/\r\n"),
        response(b"<html>", "502 Bad Gateway"),
    ).wire()

    assert [wire.send(GET).status, wire.send(GET).status] == [302, 502]
    wire.close()


def _no_answer(_: Server, connection: socket.socket) -> None:
    connection.recv(65536)


def _reset(_: Server, connection: socket.socket) -> None:
    connection.recv(65536)
    reset(connection)


def _short(_: Server, connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")


def _no_http(_: Server, connection: socket.socket) -> None:
    connection.recv(65536)
    connection.sendall(b"SSH-2.0-OpenSSH_9\r\n\r\n")


@pytest.mark.parametrize("conversation", [_no_answer, _reset, _short, _no_http])
def test_a_lost_answer_is_unavailable_and_the_request_is_not_sent_again(
    hold, conversation: Conversation
) -> None:
    again = Event()
    server = hold(conversation, lambda *_: again.set())
    wire = server.wire()

    with pytest.raises(ServerTrouble) as caught:
        wire.send(PUT)

    assert caught.value.code == "cluster_unavailable"
    assert caught.value.status == 0
    assert f"127.0.0.1:{server.port}" in caught.value.message
    assert "PUT /api/v1/x" in caught.value.message
    assert not again.wait(0.2)  # nobody came for a second conversation
    wire.close()


def test_a_refused_connection_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    endpoint = Endpoint(f"http://127.0.0.1:{port}", ssl.create_default_context())
    wire = HttpWire(endpoint, SystemClock().monotonic)

    with pytest.raises(ServerTrouble, match="refused"):
        wire.send(GET)
    wire.close()


def test_a_server_that_stalls_is_given_up_after_the_time_out(hold) -> None:
    server = hold(lambda it, connection: (it.hear(connection), it.done.wait(PATIENCE)))
    wire = server.wire()
    clock = SystemClock()
    began = clock.monotonic()

    with pytest.raises(ServerTrouble, match=r"nothing came for 0\.3 s"):
        wire.send(Call("GET", "/x", timeout=0.3))

    assert clock.monotonic() - began < 2
    wire.close()


def test_a_body_that_trickles_is_given_up_after_the_time_out(hold) -> None:
    def trickle(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not server.done.wait(0.05):
            connection.sendall(b" ")

    server = hold(trickle)
    wire = server.wire()

    with pytest.raises(ServerTrouble, match=r"not complete within 0\.4 s"):
        wire.send(Call("GET", "/x", timeout=0.4))
    wire.close()


def test_secrets_are_not_in_what_is_said(hold) -> None:
    class Token(httpx2.Auth):
        def auth_flow(self, request):
            request.headers["Authorization"] = "Bearer s3cret"
            yield request

    server = hold(_reset)
    endpoint = Endpoint(f"http://127.0.0.1:{server.port}", ssl.create_default_context(), Token())
    wire = HttpWire(endpoint, SystemClock().monotonic)

    with pytest.raises(ServerTrouble) as caught:
        wire.send(PUT)

    assert "s3cret" not in f"{caught.value.message} {caught.value.next_step}"
    wire.close()


def test_a_token_file_is_read_again_when_the_token_is_not_accepted(serve, tmp_path) -> None:
    server = serve(response(b"{}", "401 Unauthorized"), response())
    token = tmp_path / "token"
    token.write_text("old")

    class Rotating(BearerTokenFileAuth):
        def _read_token(self) -> str:
            read = super()._read_token()
            token.write_text("new")
            return read

    auth = Rotating(str(token))
    endpoint = Endpoint(f"http://127.0.0.1:{server.port}", ssl.create_default_context(), auth)
    wire = HttpWire(endpoint, SystemClock().monotonic)

    assert wire.send(PUT).status == 200

    assert [b"Bearer old" in server.requests[0], b"Bearer new" in server.requests[1]] == [True] * 2
    assert server.requests[1].endswith(b'{"a":1}')
    wire.close()


def test_a_token_file_that_is_gone_is_a_matter_of_the_installation(serve, tmp_path) -> None:
    server = serve()
    auth = BearerTokenFileAuth(str(tmp_path / "none"))
    endpoint = Endpoint(f"http://127.0.0.1:{server.port}", ssl.create_default_context(), auth)
    wire = HttpWire(endpoint, SystemClock().monotonic)

    with pytest.raises(Misconfigured, match="none not found") as caught:
        wire.send(GET)

    assert caught.value.code == "cluster_misconfigured"
    wire.close()


def test_a_wire_that_was_closed_says_so(serve) -> None:
    wire = serve().wire()
    wire.close()

    with pytest.raises(ServerTrouble, match="was closed here"):
        wire.send(GET)


def test_a_forked_child_speaks_on_connections_of_its_own(hold) -> None:
    server = hold(answering(response(b"parent"), response(b"again")))
    wire = server.wire()
    assert wire.send(GET).body == b"parent"

    child = os.fork()
    if child == 0:  # it must not return into pytest
        try:
            wire.send(Call("GET", "/x", timeout=0.2))  # the server has but the one connection
        except ServerTrouble:
            os._exit(0)
        os._exit(1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert wire.send(GET).body == b"again"
    wire.close()


@pytest.mark.parametrize(
    ("code", "words"),
    [(10, "certificate of the API server has expired"), (20, "not of the cluster that")],
)
def test_a_server_that_does_not_prove_itself_is_a_matter_of_the_installation(
    code: int, words: str
) -> None:
    unproven = ssl.SSLCertVerificationError("verify failed")
    unproven.verify_code, unproven.verify_message = code, "said"

    error = httpx2.ConnectError("handshake")
    error.__cause__ = unproven

    with (
        pytest.raises(Misconfigured, match=words) as caught,
        translated(Asked("https://h", GET, 1)),
    ):
        raise error

    assert caught.value.code == "cluster_misconfigured"
    assert "https://h" in caught.value.message
