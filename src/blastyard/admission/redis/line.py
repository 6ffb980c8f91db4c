"""Asking a Redis server: each question once, and each answer or none.

redis-py asks again by itself where an answer was lost; a write that was done is then done twice, or
told as lost to another. So its connections are used here without its client: a question that was
sent is never sent again. The one exception is a script that the server does not know, which it says
before it does anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from redis.exceptions import NoScriptError, RedisError, ResponseError

from blastyard.admission.redis.address import Address
from blastyard.admission.redis.failure import failure, is_broken
from blastyard.admission.redis.script import Script
from blastyard.domain.errors import Unavailable

Answer = list[Any]
Word = str | bytes | int

Connection = Any
"""One of redis-py's, which are not typed well enough to say more."""


class Line:
    """A way to one server. Thread-safe; a forked child makes connections of its own.

    To connect, to sign in and to ask may each take as long as ``timeout``.
    """

    def __init__(self, address: Address, timeout: timedelta) -> None:
        self.address = address
        seconds = timeout.total_seconds()
        self._options = {
            **address.options,
            "socket_timeout": seconds,
            "socket_connect_timeout": seconds,
            "protocol": 2,
            "driver_info": None,
        }
        self._idle: list[Connection] = []
        self._process = os.getpid()
        self._closed = False

    def run(self, script: Script, key: str, arguments: Sequence[Word]) -> Answer:
        """What a script answers. Raises ``Unavailable`` and ``Misconfigured``."""
        rest = (1, key, *arguments)
        with self._connected(may_be_done=script.writes) as connection:
            try:
                answer = _exchange(connection, "EVALSHA", script.digest, *rest)
            except NoScriptError:
                answer = _exchange(connection, "EVAL", script.text, *rest)
        if not isinstance(answer, list):
            raise Unavailable("store_unavailable", f"{self.address} answered nonsense.")
        return answer

    def ask(self, *words: Word) -> Any:
        """What a command that writes nothing answers. Raises as :meth:`run` does."""
        with self._connected() as connection:
            return _exchange(connection, *words)

    def connection(self) -> Connection:
        """One more connection, not yet open, for somebody who keeps and closes it."""
        return self.address.kind(**self._options)

    def close(self) -> None:
        """Close the connections that nobody uses at the moment, and refuse further questions."""
        self._closed = True
        _disconnect_all(self._idle)

    @contextmanager
    def _connected(self, *, may_be_done: bool = False) -> Iterator[Connection]:
        """A connection for one question; its errors are told as ours.

        It is used again only when all that was asked over it was answered: whoever is interrupted
        between, by a signal, must not leave the answer to the next one.
        """
        idle = self._own()
        asked = answered = False
        connection = _taken(idle) or self.connection()
        try:
            connection.connect()
            asked = True
            yield connection
            answered = True
        except RedisError as error:
            answered = asked and isinstance(error, ResponseError)
            if is_broken(error):  # the idle ones as well: each would cost somebody a question
                _disconnect_all(idle)
            raise failure(error, self.address, asked=asked, may_be_done=may_be_done) from None
        finally:
            if answered and not self._closed:
                idle.append(connection)
            else:
                connection.disconnect()

    def _own(self) -> list[Connection]:
        """The idle connections of this process; those of its parent are left to it."""
        if self._closed:
            raise Unavailable("store_unavailable", f"{self.address} was closed.")
        if self._process != os.getpid():
            self._idle, self._process = [], os.getpid()
        return self._idle


def _exchange(connection: Connection, *words: Word) -> Any:
    connection.send_command(*words, check_health=False)
    return connection.read_response()


def _taken(idle: list[Connection]) -> Connection | None:
    """An idle connection that the server has not ended meanwhile."""
    while connection := _popped(idle):
        try:
            if not connection.can_read():
                return connection
        except RedisError:
            pass
        connection.disconnect()
    return None


def _popped(idle: list[Connection]) -> Connection | None:
    try:
        return idle.pop()
    except IndexError:  # also when another thread was faster
        return None


def _disconnect_all(idle: list[Connection]) -> None:
    while connection := _popped(idle):
        connection.disconnect()
