"""What a user asked for, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from blastyard.domain.errors import Failure
from blastyard.domain.job import State
from blastyard.domain.program import Program

USER_LENGTH: Final = 200
"""So many characters a user's name may have."""


class Priority(StrEnum):
    """How urgent a search is. Waiting raises a low one until it is served (ageing)."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"

    @property
    def level(self) -> int:
        """0, 1 or 2; higher goes first."""
        return _LEVELS[self]


_LEVELS = {Priority.LOW: 0, Priority.NORMAL: 1, Priority.HIGH: 2}


@dataclass(frozen=True, slots=True)
class Request:
    """One search as its submitter words it, the query itself apart.

    ``options`` are BLAST+ arguments in their canonical order; ``output_format`` is the exact value
    of ``-outfmt``. ``key`` is the submitter's idempotency key.
    """

    program: Program
    database: str
    options: tuple[str, ...]
    output_format: str
    user: str
    priority: Priority = Priority.NORMAL
    title: str = ""
    tags: tuple[str, ...] = ()
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """The stored query of a search: counts, not letters."""

    records: int
    residues: int
    longest: int
    size: int
    """Bytes, as BLAST+ reads them."""
    sha256: str
    notices: tuple[str, ...] = ()
    """Repairs made and oddities kept, each a sentence."""


@dataclass(frozen=True, slots=True)
class Result:
    """The published output of a completed search."""

    size: int
    sha256: str
    extension: str


@dataclass(frozen=True, slots=True)
class Run:
    """A started attempt, findable after a crash: guardian and command with their start times.

    Start times are the kernel's, in clock ticks since boot (field 22 of ``/proc/<pid>/stat``);
    ``boot_id`` is ``/proc/sys/kernel/random/boot_id``. Together they name a process for ever.
    """

    boot_id: str
    guardian_pid: int
    guardian_started: int
    command_pid: int
    command_started: int
    attempt: int


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """An attempt that was handed to a cluster, where its work goes on by itself.

    Stored before anything of it is made; it names all that may be left of the attempt.
    """

    id: str
    """What all its objects there carry."""
    attempt: int


@dataclass(frozen=True, slots=True)
class Search:
    """A row of the store: request, state and outcome; changed by optimistic writes.

    ``version`` is the row's, raised by each write. ``runner`` is the submitter that looks after the
    search (empty: nobody does), ``account`` the operating-system user id that submitted it.
    ``attempt`` counts claims of the submit slot. ``alive_at`` is the last sign of life of an
    attempt, by the store's clock. Deadlines are absolute, set once, by the store's clock.
    """

    id: str
    request: Request
    query: Query
    account: int
    created_at: datetime
    sequence: int = 0
    """Order of arrival in the store: grows, not always by 1; 0 before it is stored."""
    state: State = State.QUEUED
    phase: str | None = None
    runner: str = ""
    attempt: int = 0
    run: Run | None = None
    remote: RemoteRun | None = None
    not_before_at: datetime | None = None
    """It is not submitted again sooner, by the store's clock."""
    alive_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    progress_done: int = 0
    error: Failure | None = None
    result: Result | None = None
    result_deleted_at: datetime | None = None
    exactness: str = "exact"
    command: tuple[str, ...] = ()
    blast_version: str = ""
    cancel_requested: bool = False
    submit_deadline_at: datetime | None = None
    capacity_deadline_at: datetime | None = None
    rerun_of: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """One change in a search's life; ``at`` is stamped by the store."""

    state: State
    phase: str | None = None
    reason: str = ""
    code: str | None = None
    at: datetime | None = None
    details: dict[str, str] = field(default_factory=dict)


class DatabaseState(StrEnum):
    """Whether searches may use a database now."""

    READY = "ready"
    COPYING = "copying"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Database:
    """A registered BLAST database: a name, and the absolute prefix of its files.

    ``files`` maps file names beside the prefix to sizes in bytes, as registered: what makes a
    truncated or missing volume visible before BLAST+ meets it.
    """

    name: str
    type: str
    """``nucl`` or ``prot``."""
    path: str
    title: str
    sequences: int
    letters: int
    built: bool
    """Whether blastyard built the files and removes them with the database."""
    created_at: datetime
    files: dict[str, int] = field(default_factory=dict)
    state: DatabaseState = DatabaseState.READY
    blast_version: str = ""
