"""Stores on a PostgreSQL server, and a line to it that can be cut at a chosen word."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Event, Thread
from typing import Any, Final

import psycopg

from blastyard.admission.postgres.documents import PostgresDocumentStore
from blastyard.admission.postgres.listener import Pace
from blastyard.store.migrations import server
from blastyard.store.postgres_engine import PostgresEngine
from blastyard.store.sql import SqlSearchStore

MOMENT: Final = timedelta(milliseconds=200)
SOON: Final = 20.0
QUICK: Final = Pace(first=0.01, longest=0.05)
_LOOK_SECONDS: Final = 0.01


def documents(url: str, **options: Any) -> PostgresDocumentStore:
    """A document store as bootstrap makes it; it looks often whether the server is back."""
    return PostgresDocumentStore(url, upgrade=server.upgrade, **{"pace": QUICK, **options})


def impatient(url: str) -> tuple[SqlSearchStore, PostgresDocumentStore]:
    """Both stores, without patience for locks, slow answers and busy connections."""
    engine = PostgresEngine(url, patience=MOMENT, longest=MOMENT, connections=1)
    return SqlSearchStore(engine), documents(url, patience=MOMENT, connections=1)


def until(condition: Callable[[], bool]) -> None:
    """Wait for what must become true soon."""
    for _ in range(int(SOON / _LOOK_SECONDS)):
        if condition():
            return
        Event().wait(_LOOK_SECONDS)
    raise AssertionError("it did not become true")


def until_one_waits_for_a_lock(url: str) -> None:
    """Until the server has a session of this database that is waiting for another one."""
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with psycopg.connect(url, autocommit=True) as watcher:
        until(lambda: watcher.execute(waiting).fetchone() != (0,))


class Line:
    """A TCP line to a server. Once armed with a word, it is cut when the client says that word.

    ``heard``: the server still gets it, and only its answer is lost; else it never hears it.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._word: bytes | None = None
        self._heard = False
        self.cuts = 0
        self._ended, self._end = socket.socketpair()
        self._thread = Thread(target=self._accept, name="line")
        self._sides: list[Thread] = []
        self._thread.start()

    def cut_at(self, word: bytes, *, heard: bool) -> None:
        """Cut once, as soon as a client says ``word``."""
        self._word, self._heard = word, heard

    def close(self) -> None:
        """End everything."""
        self._end.close()
        for thread in (self._thread, *self._sides):
            thread.join()
        self._listener.close()
        self._ended.close()

    def _accept(self) -> None:
        while True:
            ready, _, _ = select.select([self._listener, self._ended], [], [])
            if self._ended in ready:
                return
            client, _ = self._listener.accept()
            side = Thread(target=self._carry, args=(client,), name="line side")
            self._sides.append(side)
            side.start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            while True:
                ready, _, _ = select.select([client, server, self._ended], [], [])
                if self._ended in ready:
                    return
                with suppress(OSError):
                    if client in ready and not self._say(client.recv(1 << 16), server):
                        return
                    if server in ready:
                        data = server.recv(1 << 16)
                        if not data:
                            return
                        client.sendall(data)

    def _say(self, data: bytes, server: socket.socket) -> bool:
        """Pass on what the client says; False when the line is to be cut, or the client left."""
        word = self._word
        if not data or word is None or word not in data:
            server.sendall(data)
            return bool(data)
        self._word = None
        if self._heard:
            server.sendall(data)
            server.recv(1)  # it has answered, so it has done it
        self.cuts += 1
        return False


@contextmanager
def line_to(url: str) -> Iterator[tuple[Line, str]]:
    """A line to the server of ``url``, and the URL to use instead."""
    before, _, rest = url.partition("@127.0.0.1:")
    port, _, name = rest.partition("/")
    line = Line(int(port))
    try:
        yield line, f"{before}@127.0.0.1:{line.port}/{name}"
    finally:
        line.close()
