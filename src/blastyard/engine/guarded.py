"""The owner's side of a guarded command: start it, move its deadline, end it, see it end.

Imports little, because the drop-in commands wait for it. What the guardian does stands in
:mod:`blastyard.guardian`.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
from contextlib import suppress
from threading import Lock

from blastyard.engine.command import Command, Ending, guardian_arguments, read_ending
from blastyard.engine.process import Process, end_left_behind

__all__ = ["Command", "Ending", "GuardedCommand", "NotStarted"]

_GUARDIAN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "guardian.py")  # noqa: PTH100, PTH118, PTH120
_FIRST_DESCRIPTOR = 100
"""Above what shells hand down (``<(…)`` is 63), so that these stay the caller's."""
_START_SECONDS = 60.0
_KILL_SECONDS = 0.05
_NOBODY = Process(0, 0)


class NotStarted(Exception):
    """The command certainly did not run. ``stage`` says what failed, ``number`` is its errno."""

    def __init__(self, stage: str, number: int) -> None:
        super().__init__(f"{stage}: {os.strerror(number) if number else 'failed'}")
        self.stage = stage
        self.number = number


_GUARDIAN_GONE = Ending(None, int(signal.SIGKILL), "guardian_gone")


class GuardedCommand:
    """A running command. All methods may be called from any thread.

    When this object's process ends, in whatever way, the command ends.
    """

    def __init__(self, guardian: Process, control: int, status: int) -> None:
        self.guardian = guardian
        self.command = _NOBODY
        self._control = control
        self._status = status
        self._text = b""
        self._ending: Ending | None = None
        self._lock = Lock()

    @classmethod
    def start(cls, command: Command, deadline: float | None = None) -> GuardedCommand:
        """Run ``command``; returns when it runs.

        ``deadline`` is in monotonic seconds. Raises :class:`NotStarted`, and OSError when no
        process or pipe can be had.
        """
        control_read, control = os.pipe()
        status, status_write = os.pipe()
        try:
            pid = _spawn(command, deadline, control_read, status_write)
        except BaseException:
            os.close(control)
            os.close(status)
            raise
        finally:
            os.close(control_read)
            os.close(status_write)
        os.set_blocking(control, False)
        os.set_blocking(status, False)
        # not reaped yet, so it is there, dead or alive
        guarded = cls(Process.find(pid) or _NOBODY, control, status)
        try:
            guarded._wait_for_start()
        except BaseException:
            guarded._abandon()
            raise
        return guarded

    def fileno(self) -> int:
        """A descriptor that turns readable when the command has ended."""
        return self._status

    def extend(self, deadline: float | None) -> None:
        """Move the deadline, earlier or later; ``None`` = none. Too late is too late."""
        self._tell(f"deadline {'never' if deadline is None else repr(deadline)}\n")

    def end(self) -> None:
        """Have the command and all its descendants killed; :meth:`wait` says when they are."""
        self._tell("end\n")

    def poll(self) -> Ending | None:
        """How it ended, or ``None`` while anything of it runs.

        Does not wait, apart from the moment a killed process takes to vanish.
        """
        with self._lock:
            if self._ending is None and self._status >= 0 and not self._read():
                with suppress(ChildProcessError):
                    os.waitpid(self.guardian.pid, 0)
                self._ending = self._last_words()
            return self._ending

    def wait(self, timeout: float | None = None) -> Ending | None:
        """As :meth:`poll`, after waiting up to ``timeout`` seconds (``None``: for ever)."""
        while (ending := self.poll()) is None:
            waiter = select.poll()
            waiter.register(self._status, select.POLLIN)
            if not waiter.poll(None if timeout is None else int(timeout * 1000)):
                return self.poll()
        return ending

    def close(self) -> None:
        """Let go of the pipes; what still runs is killed."""
        with self._lock:
            for descriptor in {self._control, self._status} - {-1}:
                os.close(descriptor)
            self._control = self._status = -1

    def __enter__(self) -> GuardedCommand:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _tell(self, line: str) -> None:
        # a closed pipe means it has ended; a full one, that the guardian is stopped: the earlier
        # deadline stands
        with self._lock, suppress(BrokenPipeError, BlockingIOError):
            if self._control >= 0:
                os.write(self._control, line.encode())

    def _read(self) -> bool:
        """Take in what the status pipe holds; False at its end."""
        with suppress(BlockingIOError):
            while data := os.read(self._status, 65536):
                self._text += data
            return False
        return True

    def _last_words(self) -> Ending | None:
        try:
            return read_ending(json.loads(self._text.partition(b"\n")[2]))
        except (ValueError, KeyError, TypeError):
            gone = end_left_behind(self.guardian, self.command, _KILL_SECONDS)
            return _GUARDIAN_GONE if gone else None

    def _wait_for_start(self) -> None:
        waiter = select.poll()
        waiter.register(self._status, select.POLLIN)
        while b"\n" not in self._text:
            if not waiter.poll(int(_START_SECONDS * 1000)):
                raise NotStarted("guardian did not answer", 0)
            if not self._read() and b"\n" not in self._text:
                raise NotStarted("guardian ended", 0)
        word, *values = self._text.partition(b"\n")[0].decode().split()
        if word != "started":
            raise NotStarted(values[0], int(values[1]))
        self.command = Process(int(values[0]), int(values[1]))

    def _abandon(self) -> None:
        self.close()
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.guardian.pid, signal.SIGKILL)
            os.waitpid(self.guardian.pid, 0)


def _spawn(command: Command, deadline: float | None, control: int, status: int) -> int:
    """Start the guardian; its pid.

    Each descriptor is first copied to two free numbers: the source of a ``dup2`` in the child and
    its target, so that no target overwrites a source, and numbers the caller handed down to the
    command (``/dev/fd/3``) stay what they are.
    """
    copies: list[int] = []

    def copy(descriptor: int) -> int:
        copies.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR))
        return copies[-1]

    try:
        targets = (copy(control), copy(status))
        actions = [
            (os.POSIX_SPAWN_DUP2, copy(source), target)
            for source, target in (
                (control, targets[0]),
                (status, targets[1]),
                (command.stdin, 0),
                (command.stdout, 1),
                (command.stderr, 2),
            )
            if source is not None
        ]
        arguments = guardian_arguments(command, deadline, targets)
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", _GUARDIAN, *arguments],
            command.environment,
            file_actions=actions,
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD],
        )
    finally:
        for descriptor in copies:
            os.close(descriptor)
