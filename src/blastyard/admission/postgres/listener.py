"""Hearing that a document was changed: ``LISTEN`` on one connection for all watches of a store.

A thread follows the connection and makes it anew when it is lost, at growing and jittered
intervals; that it is there again wakes everybody, as what happened meanwhile was not heard. Where
it cannot be made, watches hear ``wake`` and their timeouts only: callers keep a floor under them.
"""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from threading import Condition, Event, Lock, Thread
from typing import Final
from weakref import WeakSet

from blastyard.domain.errors import BlastyardError
from blastyard.postgres.address import Address
from blastyard.postgres.failure import translated
from blastyard.postgres.session import PATIENCE, Session, connect

CHANNEL: Final = "blastyard_documents"

LOG: Final = logging.getLogger(__name__)

_JOIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two attempts to connect: the first pause, doubled up to the longest."""

    first: float = 0.1
    longest: float = 10.0

    def pause(self, attempt: int, random: Random) -> float:
        """After that many attempts in a row, from 1; half of it is chance."""
        whole: float = min(self.longest, self.first * 2.0 ** min(attempt - 1, 30))
        return whole * random.uniform(0.5, 1.0)


class ListenerWatch:
    """Wakes when its listener heard something. After a fork the first wait returns at once."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._condition = Condition()
        self._changed = False
        self._closed = False

    def wait(self, timeout_seconds: float) -> bool:
        """Block up to the timeout; whether something may have changed. False once closed."""
        if not self._closed:
            self._listener.start()  # in a forked child nobody listens yet
        with self._condition:
            self._condition.wait_for(lambda: self._changed or self._closed, max(0, timeout_seconds))
            changed, self._changed = self._changed, False
            return changed and not self._closed

    def wake(self) -> None:
        """End the ``wait`` that is going on, or else the next one. From any thread."""
        with self._condition:
            self._changed = True
            self._condition.notify_all()

    def close(self) -> None:
        """End a ``wait`` that is going on, and stop watching."""
        self._closed = True
        self.wake()

    def _forget_parent(self) -> None:
        self._condition = Condition()
        self._changed = True


class Listener:
    """Wakes the watches of one store. ``is_ours`` says which notices are of this process."""

    def __init__(
        self,
        address: Address,
        is_ours: Callable[[str], bool],
        *,
        pace: Pace | None = None,
        patience: timedelta = PATIENCE,
    ) -> None:
        self._address = address
        self._is_ours = is_ours
        self._pace = pace or Pace()
        self._patience = patience
        self._lock = Lock()
        self._watches: WeakSet[ListenerWatch] = WeakSet()
        self._follower: _Follower | None = None
        self._closed = False
        _listeners.add(self)

    def watch(self) -> ListenerWatch:
        """A new watch, which hears everything from now on; forgotten when its owner drops it."""
        self.start()
        watch = ListenerWatch(self)
        with self._lock:
            self._watches.add(watch)
        return watch

    def ring(self) -> None:
        """Wake them all."""
        with self._lock:
            watches = list(self._watches)
        for watch in watches:
            watch.wake()

    def start(self) -> None:
        """Have somebody listen in this process; returns when he does, or does not succeed soon."""
        with self._lock:
            if self._closed or (self._follower and self._follower.thread.is_alive()):
                return
            self._follower = _Follower(self._address, self._heard, self._pace)
            tried = self._follower.tried
        tried.wait(self._patience.total_seconds())

    def close(self) -> None:
        """End the listening, and every wait."""
        with self._lock:
            self._closed = True
            follower, self._follower = self._follower, None
        if follower is not None:
            follower.close()
        for watch in list(self._watches):
            watch.close()

    def _heard(self, notices: list[str]) -> None:
        if not notices or not all(self._is_ours(notice) for notice in notices):
            self.ring()

    def _forget_parent(self) -> None:
        self._lock = Lock()
        if self._follower is not None:
            _inherited.append(self._follower)
            self._follower = None
        for watch in list(self._watches):
            watch._forget_parent()


class _Follower:
    """A thread that listens. ``heard`` gets notices, or none when some may have been missed."""

    def __init__(self, address: Address, heard: Callable[[list[str]], None], pace: Pace) -> None:
        self.tried = Event()
        """It listens, or has failed to for the first time."""
        self._address = address
        self._heard = heard
        self._pace = pace
        self._session: Session | None = None
        self._ended = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.thread = Thread(target=self._run, name="blastyard-listen", daemon=True)
        self.thread.start()

    def close(self) -> None:
        """End the thread."""
        os.eventfd_write(self._ended, 1)
        self.thread.join(_JOIN_SECONDS)
        if not self.thread.is_alive():
            os.close(self._ended)

    def _run(self) -> None:
        random = Random()  # noqa: S311  (it spreads load, and guards nothing)
        failures = 0
        pause = 0.0
        while not self._is_over(pause):
            try:
                with translated(self._address), closing(connect(self._address)) as session:
                    self._session = session
                    session.execute(f"LISTEN {CHANNEL}", prepare=False)
                    failures = self._tell_success(failures)
                    self._follow(session)
            except BlastyardError as error:
                failures += 1
                if failures == 1:
                    LOG.warning("changes of others are seen late: %s", error.message)
            self.tried.set()
            pause = self._pace.pause(max(1, failures), random)

    def _tell_success(self, failures: int) -> int:
        if failures:
            LOG.info("changes of others are seen at once again")
        self._heard([])
        self.tried.set()
        return 0

    def _follow(self, session: Session) -> None:
        """Until it is over, or the connection is. Raises ``psycopg.OperationalError``."""
        poll = select.poll()
        poll.register(session.pgconn.socket, select.POLLIN)
        poll.register(self._ended, select.POLLIN)
        while True:
            poll.poll()
            if self._is_over(0):
                return
            session.pgconn.consume_input()
            notices = []
            while (notice := session.pgconn.notifies()) is not None:
                notices.append(notice.extra.decode(errors="replace"))
            if notices:
                self._heard(notices)

    def _is_over(self, seconds: float) -> bool:
        """Whether to end, within so many seconds; the mark stays set."""
        poll = select.poll()
        poll.register(self._ended, select.POLLIN)
        return bool(poll.poll(seconds * 1000))


_inherited: list[_Follower] = []
"""Of a parent process, with the session that must not be closed here."""

_listeners: WeakSet[Listener] = WeakSet()


def _after_fork() -> None:
    for listener in list(_listeners):
        listener._forget_parent()


os.register_at_fork(after_in_child=_after_fork)
