"""Clients of a real Redis, what lies between them and it, and waiting for what must come."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from threading import Event, Lock, Thread
from typing import Final, TypeVar

import pytest

from blastyard.admission.port import SUBMITTER, Version
from blastyard.admission.redis.address import Address
from blastyard.admission.redis.documents import Pace, RedisDocumentStore
from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable
from blastyard.testing.redis_server import ADDRESS, RedisServer

SOON: Final = 20.0
NAMESPACE: Final = "lab"
KEY: Final = f"blastyard:{{{NAMESPACE}}}:admission"
AT_ONCE: Final = Pace(timeout=timedelta(seconds=1), grace=timedelta(0))
"""For what is not about the grace."""
SHORT: Final = replace(AT_ONCE, grace=timedelta(seconds=0.5))
LONG: Final = replace(AT_ONCE, grace=timedelta(hours=1))

ME: Final = SUBMITTER + "serve-1"
OTHER: Final = SUBMITTER + "serve-2"

T = TypeVar("T")

Open = Callable[..., RedisDocumentStore]


def until(condition: Callable[[], T | None], seconds: float = SOON) -> T:
    """Ask again and again until it is so."""
    clock, pause = SystemClock(), Event()
    latest = clock.monotonic() + seconds
    while not (found := condition()):
        assert clock.monotonic() < latest, "it did not come"
        pause.wait(0.01)
    return found


def possible(attempt: Callable[[], T]) -> T:
    """Try again and again until it can be told."""

    def tried() -> tuple[T] | None:
        with suppress(Unavailable):
            return (attempt(),)
        return None

    return until(tried)[0]


def refused(attempt: Callable[[], object]) -> Unavailable:
    """Why it cannot be told."""
    with pytest.raises(Unavailable) as caught:
        attempt()
    return caught.value


def written(store: RedisDocumentStore, *names: str) -> dict[str, Version]:
    """The versions of these documents, once each is written."""
    done = {name: store.swap(name, store.read(name).version, name.encode()) for name in names}
    return {name: each.version for name, each in done.items() if each is not None}


Loss = Callable[[RedisServer], None]


def restarted_empty(server: RedisServer) -> None:
    server.restart(empty=True)


def restarted(server: RedisServer) -> None:
    server.restart()


def flushed(server: RedisServer) -> None:
    server.command("FLUSHALL")


def key_deleted(server: RedisServer) -> None:
    server.command("DEL", KEY)


LOSSES: Final = (restarted_empty, restarted, flushed, key_deleted)


@contextmanager
def stores() -> Iterator[Open]:
    """``open_store(server, pace)``: clients, closed in the end."""
    opened: list[RedisDocumentStore] = []

    def open_store(where: RedisServer | str, pace: Pace = AT_ONCE) -> RedisDocumentStore:
        url = where if isinstance(where, str) else where.url
        opened.append(RedisDocumentStore(Address.parse(url), NAMESPACE, pace))
        return opened[-1]

    try:
        yield open_store
    finally:
        for store in opened:
            store.close()


@pytest.fixture
def open_redis() -> Iterator[Open]:
    """See :func:`stores`."""
    with stores() as opener:
        yield opener


class Wire:
    """A line to a port of this machine that can be cut, or go dead, or swallow answers."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._lock = Lock()
        self._sockets: list[socket.socket] = []
        self._abandoned: list[socket.socket] = []
        self._losing = 0
        self._flowing = Event()
        self._flowing.set()
        self._is_cut = False
        self._listener = socket.create_server((ADDRESS, 0))
        self._threads = [Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        self.asked = 0
        """How many pieces went to the server."""

    @property
    def url(self) -> str:
        return f"redis://{ADDRESS}:{self._listener.getsockname()[1]}/0"

    def lose_answers(self, number: int = 1) -> None:
        """The next answers are swallowed, and the connection they should go over ends."""
        with self._lock:
            self._losing = number

    def go_dead(self) -> None:
        """Nothing passes any more, and nobody is told."""
        self._flowing.clear()

    def abandon(self) -> None:
        """Nothing passes over the connections there are, and nobody is told; new ones work."""
        with self._lock:
            self._abandoned += self._sockets

    def cut(self) -> None:
        """End every connection, and every new one."""
        self._is_cut = True
        self._end_all()

    def heal(self) -> None:
        self._is_cut = False
        self._flowing.set()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._flowing.set()
        self._end_all()
        for thread in self._threads:
            thread.join(SOON)

    def _end_all(self) -> None:
        with self._lock:
            ending, self._sockets, self._abandoned = self._sockets, [], []
        for each in ending:
            _end(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = None if self._is_cut else self._connected()
            if server is None:
                client.close()
                continue
            with self._lock:
                self._sockets += [client, server]
            for source, target, answers in ((client, server, False), (server, client, True)):
                pump = Thread(target=self._pump, args=(source, target, answers), daemon=True)
                self._threads.append(pump)
                pump.start()

    def _connected(self) -> socket.socket | None:
        try:
            return socket.create_connection((ADDRESS, self._port))
        except OSError:
            return None

    def _pump(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._flowing.wait()
                if source in self._abandoned:
                    continue
                if answers and self._loses():
                    break
                self.asked += not answers
                target.sendall(data)
        _end(source)
        _end(target)

    def _loses(self) -> bool:
        with self._lock:
            losing = self._losing > 0
            self._losing -= losing
        return losing


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@pytest.fixture
def redis_wire(own_redis: RedisServer) -> Iterator[Wire]:
    """A line to the test's own server."""
    made = Wire(own_redis.port)
    yield made
    made.close()
