"""Processes of this machine, named so that a reused number is not mistaken for the old process.

Source: ``proc(5)``; the start time is field 22 of ``/proc/<pid>/stat``, in clock ticks since boot.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

MARK = "BLASTYARD_GUARDIAN"
"""The variable by which a guardian marks its command's descendants: ``<pid>.<start ticks>``."""

_GONE_STATES = frozenset(b"ZXx")
_POLL_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the present boot."""

    pid: int
    started: int

    @classmethod
    def find(cls, pid: int) -> Process | None:
        """The process that has this number now, a zombie included."""
        fields = _stat(pid)
        return None if fields is None else cls(pid, int(fields[19]))

    def is_alive(self) -> bool:
        """Whether it runs; a zombie does not."""
        fields = _stat(self.pid)
        return (
            fields is not None
            and int(fields[19]) == self.started
            and fields[0][0] not in _GONE_STATES
        )

    def send(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when it is gone. Raises PermissionError."""
        with suppress(ProcessLookupError):
            if self.is_alive():
                os.kill(self.pid, number)

    def wait_gone(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for its end; whether it has ended."""
        handle = -1
        with suppress(OSError):  # gone, or a kernel before 5.3
            handle = os.pidfd_open(self.pid)
        try:
            while (alive := self.is_alive()) and seconds > 0:
                step = seconds if handle >= 0 else min(seconds, _POLL_SECONDS)
                select.select([handle] if handle >= 0 else [], [], [], step)
                seconds -= step
        finally:
            if handle >= 0:
                os.close(handle)
        return not alive


@cache
def boot_id() -> str:
    """Which boot of which machine this is."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
        return file.read().strip()


def left_behind(guardian: Process) -> list[Process]:
    """What runs of a guardian's command, found by its mark: for when the guardian is gone.

    Processes whose environment this account may not read are not found.
    """
    mark = f"{MARK}={guardian.pid}.{guardian.started}".encode()
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit() or int(name) == guardian.pid:
            continue
        with suppress(OSError):
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                marked = mark in file.read().split(b"\0")
            if marked and (process := Process.find(int(name))) and process.is_alive():
                found.append(process)
    return found


def end_left_behind(guardian: Process, command: Process, seconds: float) -> bool:
    """Kill what a killed guardian left; wait up to ``seconds``; whether nothing is left."""
    left = [command, *left_behind(guardian)]
    for process in left:
        with suppress(PermissionError):  # another account's: it is waited for
            process.send(signal.SIGKILL)
    return all(process.wait_gone(seconds) for process in left) and not left_behind(guardian)


def _stat(pid: int) -> list[bytes] | None:
    """The fields of ``/proc/<pid>/stat`` from the third on: state, parent, …"""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
