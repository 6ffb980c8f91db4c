"""A command under its guardian, and the end of what it says."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from typing import Final

from blastyard.engine.command import Command, Ending
from blastyard.engine.guarded import GuardedCommand

KEPT: Final = 64 * 1024
"""Of each output stream, the last so many bytes are kept: there the answer stands."""
_CHUNK: Final = 64 * 1024
_LAST_WORDS_SECONDS: Final = 5.0
"""After the end of the command, its output ends at once, unless a stranger has a copy of it."""


class Tail:
    """The end of what comes out of a pipe, read in a thread so that its writer never waits."""

    def __init__(self, descriptor: int, kept: int = KEPT) -> None:
        self._descriptor = descriptor
        self._size = kept
        self._kept = bytearray()
        self._thread = Thread(target=self._read, name="submit-output", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with open(self._descriptor, "rb", buffering=0) as pipe:  # noqa: PTH123  (no path)
            while chunk := pipe.read(_CHUNK):
                self._kept += chunk
                del self._kept[: -self._size]

    def bytes(self) -> bytes:
        """What was kept, once the pipe has ended or enough was waited for that."""
        self._thread.join(_LAST_WORDS_SECONDS)
        return bytes(self._kept)


class Execution:
    """A running command. All methods may be called from any thread.

    When this object's process ends, in whatever way, the command and its descendants end.
    """

    def __init__(self, guarded: GuardedCommand, tail: Tail) -> None:
        self.guarded = guarded
        self._tail = tail

    @classmethod
    def start(cls, command: Command, deadline: float | None = None) -> Execution:
        """Run ``command`` without input; what it writes is kept here, whatever it says of that.

        ``deadline`` is in monotonic seconds. Raises as :meth:`GuardedCommand.start`.
        """
        out, write = os.pipe()
        empty = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            guarded = GuardedCommand.start(
                replace(command, stdin=empty, stdout=write, tail_bytes=KEPT, private=True),
                deadline,
            )
        except BaseException:
            os.close(out)
            raise
        finally:
            os.close(write)
            os.close(empty)
        return cls(guarded, Tail(out))

    def fileno(self) -> int:
        """A descriptor that turns readable when the command has ended."""
        return self.guarded.fileno()

    def extend(self, deadline: float | None) -> None:
        """Move the deadline, earlier or later; ``None`` = none."""
        self.guarded.extend(deadline)

    def end(self) -> None:
        """Have the command and all its descendants killed; :meth:`wait` says when they are."""
        self.guarded.end()

    def poll(self) -> Ending | None:
        """How it ended, or ``None`` while anything of it runs."""
        return self.guarded.poll()

    def wait(self, timeout: float | None = None) -> Ending | None:
        """As :meth:`poll`, after waiting up to ``timeout`` seconds (``None``: for ever)."""
        return self.guarded.wait(timeout)

    def out(self) -> bytes:
        """The end of its standard output; to be asked for when it has ended."""
        return self._tail.bytes()

    def close(self) -> None:
        """Let go of the pipes; what still runs is killed."""
        self.guarded.close()

    def __enter__(self) -> Execution:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Start = Callable[[Command, float | None], Execution]
"""Starts a command; :meth:`Execution.start`, or what a test has in its place."""
