"""Tells, in one thread for all, when guarded commands have ended."""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread

from blastyard.engine.guarded import GuardedCommand

_log = logging.getLogger(__name__)


class Watcher:
    """Calls back once for each watched command, from its own thread, within milliseconds."""

    def __init__(self) -> None:
        self._watched: dict[int, tuple[GuardedCommand, Callable[[], None]]] = {}
        self._lock = Lock()
        self._epoll = select.epoll()
        self._stop = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(self._stop, select.EPOLLIN)
        self._thread: Thread | None = None

    def watch(self, guarded: GuardedCommand, on_exit: Callable[[], None]) -> None:
        """Call ``on_exit`` when ``guarded`` has ended; its pipes are closed first."""
        with self._lock:
            self._watched[guarded.fileno()] = (guarded, on_exit)
            self._epoll.register(guarded.fileno(), select.EPOLLIN)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="blast-watcher", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Stop watching; callbacks that are due are made first."""
        os.eventfd_write(self._stop, 1)
        if self._thread is not None:
            self._thread.join()
        self._epoll.close()
        os.close(self._stop)

    def _run(self) -> None:
        stopping = False
        while not stopping:
            for descriptor, _ in self._epoll.poll():
                if descriptor == self._stop:
                    stopping = True
                else:
                    self._look_at(descriptor)

    def _look_at(self, descriptor: int) -> None:
        with self._lock:
            guarded, on_exit = self._watched[descriptor]
            if guarded.poll() is None:
                return
            # out of the lists before the number is free for another command's pipe
            del self._watched[descriptor]
            with suppress(OSError):
                self._epoll.unregister(descriptor)
            guarded.close()
        try:
            on_exit()
        except Exception:
            # one caller's fault must not silence the others' ends
            _log.exception("a callback for the end of a command failed")
