"""The port through which a search is executed on this machine.

What goes on without the process that started it has a port of its own
(:mod:`blastyard.engine.remote`).

Obligations of an implementer:

* ``start`` runs the command under a guardian, so that no descendant outlives the process that
  started it, nor the deadline; it returns only when the command really runs, and the returned
  :class:`Run` is enough for *another* process to find it again.
* ``poll`` never blocks and may be called by a process that did not start the run. ``Lost`` means:
  certainly not running any more, and its end was not seen.
* ``cancel`` returns only when no descendant of the run is left.
* ``collect`` publishes the output atomically: under its final name it is complete, or absent.
* Nothing an engine writes for one attempt is visible to another attempt or another search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from blastyard.domain.errors import Failure
from blastyard.domain.search import Run


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use. ``None`` = no limit of ours."""

    memory_bytes: int | None = None
    cpu_seconds: int | None = None
    output_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One BLAST+ command to run.

    ``argv[0]`` is the absolute path of the program; the engine adds ``-query``, ``-out`` and
    ``-num_threads``. ``directory`` is the search's own folder; the engine makes what it needs
    below it (``attempt-<n>``), and runs the command in an empty one.
    """

    search_id: str
    attempt: int
    argv: tuple[str, ...]
    query: Path
    directory: Path
    extension: str
    threads: int = 1
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Running:
    """Still at work. ``output_bytes`` is what the command has written so far."""

    output_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Exited:
    """The command ended by itself and no descendant of it is left."""

    exit_code: int
    failure: Failure | None
    """``None`` when the output may be collected; otherwise the named cause, with numbers."""
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Lost:
    """Not running any more, and nobody saw it end (its blastyard died)."""


RunState = Running | Exited | Lost


@dataclass(frozen=True, slots=True)
class Output:
    """A published result file."""

    path: Path
    size: int
    """Bytes."""
    sha256: str


class Leavings(Protocol):
    """Knows what the attempts of a search leave behind."""

    def discard(self, task: Task) -> None:
        """Remove what the attempts of a search left behind, published results apart."""
        ...


class Engine(Leavings, Protocol):
    """Runs commands. See the module docstring for what an implementer owes."""

    def start(self, task: Task, deadline: float | None, on_exit: Callable[[], None]) -> Run:
        """Start ``task``; end it at ``deadline`` (monotonic seconds) unless extended.

        ``on_exit`` is called once, from any thread, soon after the command ended.
        Raises ``Unavailable`` or ``Misconfigured`` when it certainly did not start.
        """
        ...

    def extend(self, ref: Run, deadline: float | None) -> None:
        """Move the deadline; ``None`` lets it run as long as its starter lives."""
        ...

    def poll(self, task: Task, ref: Run) -> RunState:
        """Say whether it still runs, has exited, or is lost."""
        ...

    def cancel(self, ref: Run) -> None:
        """End the command and all its descendants; no error when already gone."""
        ...

    def collect(self, task: Task, ref: Run) -> Output:
        """Publish the output of an exited run; the same answer when asked again."""
        ...
