"""The connections of one process, few and used again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from threading import BoundedSemaphore
from typing import Any
from weakref import WeakSet

import psycopg

from blastyard.domain.errors import Unavailable
from blastyard.postgres.address import Address
from blastyard.postgres.failure import is_read_only, translated
from blastyard.postgres.session import Session, connect, is_silent

Row = tuple[Any, ...]
Words = Sequence[object] | Mapping[str, object]

_inherited: list[Session] = []
"""Sessions of a parent process: to close one would end it for the parent."""


class Pool:
    """Up to ``most`` connections to a server. Thread-safe; a forked child has none of them."""

    def __init__(self, address: Address, patience: timedelta, most: int) -> None:
        self._address = address
        self._patience = patience
        self._most = most
        self._room = BoundedSemaphore(most)
        self._idle: list[Session] = []
        self._closed = False
        _pools.add(self)

    def ask(self, statement: str, words: Words = (), *, twice: bool = False) -> list[Row]:
        """Run one statement, which is a transaction of its own; the rows it gives.

        ``twice``: it may be run again where the connection was lost. Raises ``Unavailable`` and
        ``Misconfigured``.
        """
        with translated(self._address):
            lost = None
            try:
                with self.session() as session:
                    lost = session
                    return _rows(session, statement, words)
            except psycopg.OperationalError:
                if not twice or lost is None or not lost.closed or lost.stalled:
                    raise
            with self.session() as session:
                return _rows(session, statement, words)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A connection for one call; it is closed, not reused, after any error."""
        room = self._room
        if self._closed:
            raise Unavailable("store_unavailable", f"{self._address} was closed.")
        if not room.acquire(timeout=self._patience.total_seconds()):
            raise Unavailable(
                "store_unavailable",
                f"All connections to {self._address.place} were in use for {self._patience}.",
                "Send fewer requests at once.",
            )
        try:
            session = self._take()
            try:
                yield session
            except BaseException as error:
                self._drop(session, error)
                raise
            self._give_back(session)
        finally:
            room.release()

    def close(self) -> None:
        """Close the connections that nobody uses at the moment, and refuse further calls."""
        self._closed = True
        self._close_idle()

    def _take(self) -> Session:
        while self._idle:
            try:
                session = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if is_silent(session):
                return session
            session.close()
        # no document is so large that writing it takes as long as waiting for it may
        return connect(self._address, self._patience, longest=self._patience)

    def _give_back(self, session: Session) -> None:
        self._idle.append(session)
        if self._closed:
            self._close_idle()

    def _drop(self, session: Session, error: BaseException) -> None:
        lost = session.closed
        session.close()
        if lost or (isinstance(error, psycopg.Error) and is_read_only(error)):
            self._close_idle()  # so are the others, or they lead to a server that was replaced

    def _close_idle(self) -> None:
        while self._idle:
            try:
                session = self._idle.pop()
            except IndexError:
                return
            session.close()

    def _forget_parent(self) -> None:
        _inherited.extend(self._idle)
        self._idle = []
        self._room = BoundedSemaphore(self._most)


def _rows(session: Session, statement: str, words: Words) -> list[Row]:
    cursor = session.execute(statement, words, binary=True)
    return cursor.fetchall() if cursor.description else []


_pools: WeakSet[Pool] = WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool._forget_parent()


os.register_at_fork(after_in_child=_after_fork)
