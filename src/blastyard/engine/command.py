"""A command to guard, how it ended, and the words in which its guardian is told and tells.

Arguments of the guardian: ``key=value`` pairs, then ``--``, then the command. Keys: ``control``,
``status`` (file descriptors), ``owner`` (pid), ``mark`` (name of a variable), ``deadline``
(monotonic seconds or ``never``), ``cwd``, ``nice``, ``memory`` and ``output`` (bytes), ``cpu``
(seconds), ``tail`` (bytes of standard error to keep), ``record`` (a file for the last line of
status), ``private`` (``1``: the command inherits no descriptor but 0, 1 and 2).

Control pipe, lines: ``deadline <seconds>|never`` and ``end``. Status pipe, lines: ``started <pid>
<start ticks>`` or ``failed <stage> <errno>``, and at the end one JSON object: the fields of
:class:`Ending`, and ``guardian`` and ``started``, the process that wrote it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blastyard.engine.process import MARK


@dataclass(frozen=True, slots=True)
class Command:
    """What to run. ``argv[0]`` is looked up on the environment's ``PATH`` unless it has a slash.

    ``stdin``, ``stdout`` and ``stderr`` are file descriptors; ``None`` passes on the caller's own.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    cwd: str = "."
    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None
    nice: int = 0
    """Added to the caller's."""
    memory_bytes: int | None = None
    """Of private memory; a mapped database does not count."""
    cpu_seconds: int | None = None
    output_bytes: int | None = None
    """Of any one file the command writes."""
    tail_bytes: int = 0
    """Keep this much of the end of its standard error for :attr:`Ending.stderr` (``stderr`` is
    then not used)."""
    record: str | None = None
    """A file to which the guardian writes the ending too, for processes that come later."""
    private: bool = False
    """Close every inherited descriptor but the three standard ones."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended; no descendant of it is left. Exactly one of code and signal is set."""

    exit_code: int | None
    signal: int | None
    ended_by: str
    """``itself``, or by the guardian: ``end``, ``deadline``, ``owner_gone``; ``guardian_gone``
    when the guardian was killed and the command with it."""
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    """Largest resident memory, mapped files included."""
    data_bytes: int = 0
    """Largest private memory seen, sampled; 0 when the command had no memory limit."""
    stderr: str = ""

    @property
    def by_itself(self) -> bool:
        """Whether the command's own end is what ended it, a signal from elsewhere included."""
        return self.ended_by == "itself"

    @property
    def shell_code(self) -> int:
        """The exit code as a shell would give it: 128 + the signal's number for a signal."""
        return self.exit_code if self.exit_code is not None else 128 + (self.signal or 0)


def read_ending(data: Mapping[str, Any]) -> Ending:
    """The ending in a guardian's last line; raises KeyError when it is something else."""
    return Ending(
        exit_code=data["exit_code"],
        signal=data["signal"],
        ended_by=data["ended_by"],
        cpu_seconds=data["cpu_seconds"],
        peak_memory_bytes=data["peak_memory_bytes"],
        data_bytes=data["data_bytes"],
        stderr=data["stderr"],
    )


def guardian_arguments(
    command: Command, deadline: float | None, pipes: tuple[int, int]
) -> list[str]:
    """The guardian's arguments; ``pipes`` are its ends of the control and the status pipe."""
    options = {
        "control": pipes[0],
        "status": pipes[1],
        "owner": os.getpid(),
        "mark": MARK,
        "deadline": "never" if deadline is None else repr(deadline),
        "cwd": command.cwd,
        "nice": command.nice,
        "memory": command.memory_bytes,
        "cpu": command.cpu_seconds,
        "output": command.output_bytes,
        "tail": command.tail_bytes or None,
        "record": command.record,
        "private": "1" if command.private else None,
    }
    pairs = [f"{key}={value}" for key, value in options.items() if value is not None]
    return [*pairs, "--", *command.argv]
