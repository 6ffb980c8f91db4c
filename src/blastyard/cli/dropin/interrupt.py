"""Signals that end a command, and ending by one as the caller's shell expects to see it."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from threading import Thread
from typing import Final

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """From its making on, a signal that would end this process calls ``stop`` instead, once.

    The signals are blocked and read by a thread: nothing is ever interrupted half-way. A signal
    that the caller has set to be ignored (``nohup``) stays ignored.
    """

    def __init__(self) -> None:
        self.caught: signal.Signals | None = None
        self._stop: Callable[[], None] = lambda: None
        wanted = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
        signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
        if wanted:
            Thread(target=self._listen, args=(wanted,), name="signals", daemon=True).start()

    def call(self, stop: Callable[[], None]) -> None:
        """Call ``stop`` when a signal comes; at once when one has come already."""
        self._stop = stop
        if self.caught is not None:
            stop()

    def _listen(self, wanted: list[signal.Signals]) -> None:
        self.caught = signal.Signals(signal.sigwait(wanted))
        self._stop()


def die_of(number: int) -> int:
    """End this process by a signal, without a core file of Python's.

    Returns the exit code a shell would show, should the signal not end it.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    return 128 + number
