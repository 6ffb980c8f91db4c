"""Ctrl-C, a closed terminal and SIGTERM: noted at once, acted on where it is safe.

A signal must not tear a store's write or a step of a search apart. So the handlers only note it and
wake whoever waits; only inside :meth:`Interrupt.breakable`, where the program waits for somebody
else's bytes, do they raise. A second signal changes nothing: what the first began goes on.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN_SECONDS: Final = 0.2
"""A signal that comes in the instant before a read begins to wait would only be noticed after it;
so a read is interrupted every so often, and what came is then acted upon."""


class Interrupt:
    """A context in which the process does not die of :data:`SIGNALS`; for the main thread."""

    def __init__(self) -> None:
        self.requested = False
        self.on_request: Callable[[], None] = lambda: None
        self._breakable = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupt:
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
                self._before[number] = signal.signal(number, self._note)
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, _nothing)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        self.on_request()
        if self._breakable:
            self._breakable = False
            raise KeyboardInterrupt

    @contextmanager
    def breakable(self) -> Iterator[None]:
        """Inside, an interruption raises ``KeyboardInterrupt``, one noted before as well."""
        self._breakable = True
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS, AGAIN_SECONDS)
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self._breakable = False
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def through(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks; waiting for the next one can be interrupted."""
        source = iter(chunks)
        while True:
            with self.breakable():
                chunk = next(source, None)
            if chunk is None:
                return
            yield chunk


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Only the read that it interrupts matters."""
