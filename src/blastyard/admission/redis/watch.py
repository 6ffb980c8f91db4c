"""Hearing what others change: one connection of a process, shared by its watches.

What is heard means nothing but *look*. Not guaranteed: that everything is heard. After the
connection was lost the watches wake once it stands again; while it cannot be had they hear what
this process changes itself.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from datetime import timedelta
from random import Random
from threading import Condition, Event, Lock, Thread
from typing import Final
from weakref import WeakSet

from redis.exceptions import RedisError

from blastyard.admission.redis.failure import failure
from blastyard.admission.redis.line import Connection, Line
from blastyard.domain.errors import BlastyardError, Unavailable

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 10.0
_JOIN_SECONDS: Final = 5.0


class RedisWatch:
    """Wakes when its listener hears something; several changes are one wake-up."""

    def __init__(self, attend: Callable[[], None]) -> None:
        self._attend = attend
        self._condition = Condition()
        self._changed = False

    def wait(self, timeout_seconds: float) -> bool:
        """Block up to the timeout, in real seconds; whether something may have changed."""
        self._attend()
        with self._condition:
            changed = self._condition.wait_for(lambda: self._changed, max(0.0, timeout_seconds))
            self._changed = False
            return changed

    def wake(self) -> None:
        """End the ``wait`` that is going on, or else the next one. From any thread."""
        with self._condition:
            self._changed = True
            self._condition.notify_all()

    def close(self) -> None:
        """End a ``wait`` that is going on."""
        self.wake()

    def forget_parent(self) -> None:
        """In a forked child: nobody else waits here, and what happened meanwhile was not heard."""
        self._condition = Condition()
        self._changed = True


class Listener:
    """Listens on ``channel`` in a thread of its own, from the first watch on, until it is closed.

    ``quiet`` is how long nothing may be heard before the server is asked for a sign of life.
    """

    def __init__(self, line: Line, channel: str, quiet: timedelta, random: Random) -> None:
        self.sender = ""
        """What this process signs its own changes with: it does not hear them from the server."""
        self._line = line
        self._channel = channel
        self._quiet = quiet.total_seconds()
        self._random = random
        self._trouble: BlastyardError | None = None
        self._renew()
        _listeners.add(self)

    @property
    def trouble(self) -> BlastyardError | None:
        """What keeps it from hearing at the moment."""
        return self._trouble

    def watch(self) -> RedisWatch:
        """A new watch; forgotten when its owner drops it. Hears all that happens from now on."""
        if self._closed.is_set():
            raise Unavailable("store_unavailable", f"{self._line.address} was closed.")
        watch = RedisWatch(self._attend)
        self._attend()
        self._tried.wait(_JOIN_SECONDS)
        with self._lock:
            self._watches.add(watch)
        return watch

    def ring(self) -> None:
        """Wake the watches of this process."""
        with self._lock:
            watches = list(self._watches)
        for watch in watches:
            watch.wake()

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        with self._lock:
            thread, connection = self._thread, self._connection
        if connection is not None:
            connection.disconnect()  # whoever reads from it comes back
        if thread is not None:
            thread.join(_JOIN_SECONDS)
        self.ring()

    def forget_parent(self) -> None:
        """In a forked child: a sender of its own, and another connection when somebody waits."""
        watches, closed = list(self._watches), self._closed.is_set()
        if self._connection is not None:
            self._connection.disconnect()  # the child's copy; the server hears nothing of it
        self._renew()
        if closed:
            self._closed.set()
        for watch in watches:
            watch.forget_parent()
            self._watches.add(watch)

    def _renew(self) -> None:
        self.sender = secrets.token_hex(6)
        self._lock = Lock()
        self._closed = Event()
        self._tried = Event()
        self._watches: WeakSet[RedisWatch] = WeakSet()
        self._thread: Thread | None = None
        self._connection: Connection | None = None
        self._hears = False

    def _attend(self) -> None:
        """Have the thread run."""
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = Thread(target=self._run, name="blastyard-redis", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._closed.is_set():
            try:
                self._listen()
            except RedisError as error:
                self._trouble = failure(error, self._line.address, asked=self._hears)
            except (OSError, ValueError, AttributeError):
                pass  # it was closed while it was being read from
            pause = FIRST_PAUSE if self._hears else pause
            self._hears = False
            self._tried.set()
            pause = min(LONGEST_PAUSE, self._random.uniform(FIRST_PAUSE, 3 * pause))
            self._closed.wait(pause)

    def _listen(self) -> None:
        """Until the connection is lost."""
        connection = self._line.connection()
        with self._lock:
            self._connection = connection
        try:
            connection.connect()
            self._subscribe(connection)
            self._hears, self._trouble = True, None
            self.ring()  # what happened before was not heard
            self._tried.set()
            while connection.is_connected and not self._closed.is_set():
                self._hear(connection)
        finally:
            connection.disconnect()

    def _hear(self, connection: Connection) -> None:
        if not connection.can_read(self._quiet):
            self._subscribe(connection)
            return
        kind, _, sender = connection.read_response()
        if kind == b"message" and sender != self.sender.encode():
            self.ring()

    def _subscribe(self, connection: Connection) -> None:
        """Also a sign of life, which a server gives that cannot write."""
        connection.send_command("SUBSCRIBE", self._channel, check_health=False)
        while connection.read_response()[0] != b"subscribe":
            self.ring()


_listeners: WeakSet[Listener] = WeakSet()


def _after_fork() -> None:
    for listener in list(_listeners):
        listener.forget_parent()


os.register_at_fork(after_in_child=_after_fork)
