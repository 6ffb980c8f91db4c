"""Tells the pages that are being watched that something changed, as soon as it did."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Final

from blastyard.domain.errors import BlastyardError
from blastyard.http.installation import Watch

LOG: Final = logging.getLogger(__name__)
LISTEN_SECONDS: Final = 60.0


class Bell:
    """One thread follows the store for all pages; it starts when the first page is watched."""

    def __init__(self, watch: Callable[[], Watch]) -> None:
        self._open = watch
        self._watch: Watch | None = None
        self._lock = Lock()
        self._ears: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self.closed = False

    @contextmanager
    def heard(self) -> Iterator[asyncio.Event]:
        """An event of the running loop that is set at each change, and when the bell closes.

        Wake-ups can be lost: keep a floor under every wait.
        """
        ear = asyncio.Event()
        with self._lock:
            self._ears[ear] = asyncio.get_running_loop()
            if self.closed:
                ear.set()
            elif self._watch is None:
                self._start()
        try:
            yield ear
        finally:
            with self._lock:
                del self._ears[ear]

    def close(self) -> None:
        """Wake everybody for the last time. Called from any thread, or a signal handler's."""
        self.closed = True
        watch = self._watch
        if watch is not None:
            watch.wake()
        else:
            self._ring()

    def _start(self) -> None:
        try:
            self._watch = self._open()
        except BlastyardError as error:
            LOG.warning("pages follow changes slowly: %s", error)
            return
        Thread(target=self._listen, args=(self._watch,), name="bell", daemon=True).start()

    def _listen(self, watch: Watch) -> None:
        try:
            while not self.closed:
                if watch.wait(LISTEN_SECONDS):
                    self._ring()
        except BlastyardError as error:
            LOG.warning("pages follow changes slowly: %s", error)
        finally:
            self._watch = None
            watch.close()
            self._ring()

    def _ring(self) -> None:
        for ear, loop in list(self._ears.items()):
            try:
                loop.call_soon_threadsafe(ear.set)
            except RuntimeError:  # that loop has ended, and its pages with it
                continue
