"""What a run of the stand-in does, as a test wants it.

A plan is a JSON file: ``{"each": {…}, "searches": {"<key>": [{…}, {…}]}, "notes": "<folder>"}``.
The n-th run for a key does what the n-th entry for it says, and the last one for all further runs;
a key without entries does what ``each`` says. The fields are those of :class:`Run`.

In the folder of notes each run leaves a file ``<key>.<n>``, with a line for each thing it has done:
tests read from it how often a command ran, and which lines there are to die at.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Final, Literal

import msgspec

VARIABLE: Final = "ELB_STAND_IN_PLAN"

Order = Literal["finalizer-last", "finalizer-first", "no-finalizer"]
Death = Literal["kill", "term", "int", "hang", "error"]
Answer = Literal["last", "crlf", "twice", "followed", "truncated", "none"]
Layout = Literal["id", "flat"]


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run. What is not said is as in a run where all goes well."""

    able: bool = True
    """Whether it has ``--json`` and ``--idempotency-key``; the command of PyPI has neither."""
    cold: bool = False
    """Whether the cluster must be set up first, by a Job ``app=setup``."""
    submit_job: bool = True
    """Whether a Job ``app=submit`` comes before the BLAST Jobs."""
    blast_jobs: int = 2
    order: Order = "finalizer-last"
    finalizer_delay: float = 0.0
    """Seconds between the other Jobs and the finalizer."""
    finalizer_refused: bool = False
    """The finalizer cannot be made; the Jobs before it stay."""
    die_at: str = ""
    """The line after which it dies: see the notes of a run."""
    death: Death = "kill"
    wait_at: str = ""
    """The line after which it waits until somebody opens the named pipe ``pipe`` to write."""
    pipe: str = ""
    exit_code: int = 0
    """Its exit code: at once after the configuration is read, or where it dies of an error."""
    category: str = ""
    decision: str = "accepted"
    message: str = ""
    retry_after: float | str | None = None
    answer: Answer = "last"
    progress: int = 5
    """Lines of progress before the answer."""
    results: bool = False
    """Whether the results are there when it ends, as if all Jobs had run."""
    layout: Layout = "id"
    lost: tuple[int, ...] = ()
    """Batches without a result."""
    damaged: tuple[int, ...] = ()
    """Batches with half a result."""


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All runs. See the module."""

    each: Run = Run()
    searches: dict[str, tuple[Run, ...]] = {}
    notes: str = ""

    @classmethod
    def read(cls, path: str) -> Plan:
        """The plan in a file; the empty one for no path. Raises ``msgspec.ValidationError``."""
        return msgspec.json.decode(Path(path).read_bytes(), type=cls) if path else cls()

    def write(self, path: Path) -> Path:
        """Put it where a run finds it."""
        path.write_bytes(msgspec.json.encode(self))
        return path

    def run(self, key: str) -> tuple[Run, Notes]:
        """What the next run for a key does, and where it says what it has done."""
        notes = Notes.next(self.notes, key)
        told = self.searches.get(key, ())
        return (told[min(notes.number, len(told) - 1)] if told else self.each), notes


class Notes:
    """The lines of one run, the first of a key being number 0."""

    def __init__(self, number: int, path: Path | None) -> None:
        self.number = number
        self._path = path

    @classmethod
    def next(cls, folder: str, key: str) -> Notes:
        """Those of a new run. Two runs at once get different ones."""
        number = 0
        while folder:
            path = Path(folder, f"{_file_name(key)}.{number}")
            try:
                path.touch(exist_ok=False)
            except FileExistsError:
                number += 1
                continue
            return cls(number, path)
        return cls(0, None)

    def add(self, line: str) -> None:
        """A thing was done."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")


def runs_of(notes: Path, key: str) -> list[list[str]]:
    """The lines of all runs for a key, in their order."""
    found: list[list[str]] = []
    while (path := notes / f"{_file_name(key)}.{len(found)}").exists():
        found.append(path.read_text(encoding="utf-8").splitlines())
    return found


class Script:
    """A run on its way: each line it passes is noted, and may be the one at which it dies."""

    def __init__(self, run: Run, notes: Notes) -> None:
        self.run = run
        self._notes = notes

    def line(self, name: str) -> None:
        """It has come so far. Raises :class:`Died`, or does not return."""
        self._notes.add(name)
        if self.run.wait_at == name:
            Path(self.run.pipe).read_bytes()
        if self.run.die_at == name:
            self._die()

    def _die(self) -> None:
        match self.run.death:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "term":
                os.kill(os.getpid(), signal.SIGTERM)
            case "int":
                os.kill(os.getpid(), signal.SIGINT)
            case "error":
                raise Died
        while True:
            signal.pause()


class Died(Exception):
    """The run has come to the line where it ends with an error."""


def _file_name(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "_", key) or "none"
