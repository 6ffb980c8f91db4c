"""A stream goes on until it ends, breaks, falls silent, or is closed by anybody."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from kube_server import (
    PATIENCE,
    STREAM_END,
    STREAM_HEAD,
    Conversation,
    Server,
    answering,
    chunk,
    response,
)

from blastyard.kube.error import ServerTrouble
from blastyard.kube.wire import Call

GET = Call("GET", "/api/v1/x", timeout=1.0)


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


# -- streams -----------------------------------------------------------------------------------


def test_lines_come_as_they_are_sent_however_they_are_cut(hold) -> None:
    seen = Event()

    def converse(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(STREAM_HEAD + chunk(b'{"a":1}\n{"b"'))
        seen.wait(PATIENCE)
        connection.sendall(chunk(b":2}\n") + chunk(b'{"c":') + chunk(b"3}\n") + STREAM_END)

    server = hold(converse)
    wire = server.wire()
    stream = wire.stream(GET)
    lines = stream.lines(5.0)

    assert stream.status == 200
    assert b"connection: close" in server.requests[0].lower()  # whoever ends it harms nobody
    assert next(lines) == b'{"a":1}'
    seen.set()
    assert list(lines) == [b'{"b":2}', b'{"c":3}']
    stream.close()
    wire.close()


def test_a_stream_may_take_longer_than_the_time_out_of_its_beginning(hold) -> None:
    def converse(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(STREAM_HEAD)
        server.done.wait(0.5)
        connection.sendall(chunk(b"late\n") + STREAM_END)

    server = hold(converse)
    wire = server.wire()

    assert list(wire.stream(Call("GET", "/x", timeout=0.2)).lines(5.0)) == [b"late"]
    wire.close()


def test_a_half_open_stream_is_given_up_after_the_quiet_limit(hold) -> None:
    def converse(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(STREAM_HEAD + chunk(b"one\n"))
        server.done.wait(PATIENCE)

    server = hold(converse)
    wire = server.wire()
    lines = wire.stream(GET).lines(0.3)

    assert next(lines) == b"one"
    with pytest.raises(ServerTrouble, match=r"nothing came for 0\.3 s"):
        next(lines)
    wire.close()


def test_a_stream_that_breaks_is_no_end(hold) -> None:
    def converse(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(STREAM_HEAD + chunk(b"one\n"))

    server = hold(converse)
    wire = server.wire()
    lines = wire.stream(GET).lines(5.0)

    assert next(lines) == b"one"
    with pytest.raises(ServerTrouble):
        next(lines)
    wire.close()


def test_a_refused_stream_has_a_body_and_no_lines(serve) -> None:
    wire = serve(response(b'{"kind":"Status"}', "410 Gone")).wire()

    stream = wire.stream(GET)

    assert (stream.status, stream.body) == (410, b'{"kind":"Status"}')
    assert list(stream.lines(1.0)) == []
    stream.close()
    wire.close()


def test_closing_a_stream_ends_the_wait_of_the_thread_that_reads_it(hold) -> None:
    waits = Event()

    def converse(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(STREAM_HEAD + chunk(b"one\n"))
        server.done.wait(PATIENCE)

    server = hold(converse)
    wire = server.wire()
    stream = wire.stream(GET)

    def read() -> list[bytes]:
        got = []
        for line in stream.lines(PATIENCE):
            got.append(line)
            waits.set()
        return got

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        assert waits.wait(PATIENCE)
        stream.close()
        assert reading.result(2.0) == [b"one"]
    stream.close()
    wire.close()


def test_a_stream_that_nobody_reads_may_be_closed(hold) -> None:
    gone = Event()

    def converse(server: Server, connection: socket.socket) -> None:
        server.hear(connection)
        connection.sendall(STREAM_HEAD)
        if connection.recv(1) == b"":
            gone.set()

    server = hold(converse)
    wire = server.wire()
    stream = wire.stream(GET)

    stream.close()

    assert gone.wait(PATIENCE)
    assert list(stream.lines(1.0)) == []
    wire.close()
