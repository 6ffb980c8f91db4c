"""Admission on this machine, and who this process is in it."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from threading import Event
from typing import Final

import msgspec

from blastyard.admission.census import NothingForeign
from blastyard.admission.gate import Gate
from blastyard.admission.ledger import UNBOUNDED, Policy, Submitter
from blastyard.admission.outlook import GateSettings, Surroundings
from blastyard.admission.port import DocumentStore
from blastyard.admission.restoration import Claim
from blastyard.admission.sql import SqliteDocumentStore
from blastyard.admission.timing import Timings
from blastyard.admission.wakeup import Wakeup
from blastyard.bootstrap.backend import (
    installation_of,
    is_shared_by_machines,
    open_shared_documents,
)
from blastyard.bootstrap.instrument import SILENT, Followed, Instruments, instruments_of
from blastyard.bootstrap.seam import PLAIN, Seam
from blastyard.domain.clock import Clock, SystemClock
from blastyard.domain.errors import Misconfigured, Unavailable
from blastyard.engine.process import Process, boot_id
from blastyard.results.folder import share
from blastyard.settings import Settings, account_name

LOG = logging.getLogger(__name__)

LONGEST_START: Final = 90.0
"""Seconds that a store which is not ready yet is waited for."""
NAP: Final = 2.0


@dataclass(frozen=True, slots=True)
class Home:
    """The folders of a data directory."""

    root: Path

    @property
    def database(self) -> Path:
        """The SQLite file with searches and admission documents."""
        return self.root / "blastyard.db"

    @property
    def searches(self) -> Path:
        """One folder for each search."""
        return self.root / "searches"

    @property
    def databases(self) -> Path:
        """The BLAST databases that blastyard built."""
        return self.root / "databases"

    @property
    def run(self) -> Path:
        """The sockets by which processes wake each other."""
        return self.root / "run"

    def make(self) -> Home:
        """Create what is missing; shared with the group where the directory above is.

        Raises ``Misconfigured('settings_invalid')`` when that cannot be done.
        """
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for path in (self.searches, self.databases, self.run):
                if not path.is_dir():
                    path.mkdir(mode=0o700, exist_ok=True)
                    share(path)
        except OSError as error:
            raise Misconfigured(
                "settings_invalid",
                f"the data directory {self.root} cannot be made: {error.strerror or error}",
                "set BLASTYARD_HOME to a directory that this account may write",
            ) from error
        return self


def timings(settings: Settings) -> Timings:
    """The protocol's constants, with what the environment says."""
    return Timings(
        takeover=timedelta(seconds=settings.lease_seconds),
        wire=timedelta(seconds=settings.submit_lease_ttl_seconds),
        skew=timedelta(seconds=settings.lease_clock_skew_seconds),
        command=timedelta(seconds=settings.submit_exec_timeout_seconds),
    )


def ceiling(settings: Settings) -> int:
    """What a new ledger begins with. Redis alone, without the older switch, has no ceiling."""
    if settings.on_redis and not settings.gate_is_enabled:
        return UNBOUNDED
    return settings.max_run_concurrency


def this_process(kind: str, address: str = "") -> Submitter:
    """This process as a submitter: pid, start time and boot name it for ever."""
    pid = os.getpid()
    process = Process.find(pid)
    started = process.started if process else 0
    return Submitter(
        name=f"{kind}-{pid}-{started}",
        kind=kind,
        account=os.getuid(),
        label=f"{kind} of {account_name()} on {socket.gethostname()} (pid {pid})",
        boot_id=boot_id(),
        pid=pid,
        pid_started=started,
        address=address,
    )


def is_gone(submitter: Submitter) -> bool:
    """Whether a process of this machine has certainly ended."""
    if submitter.boot_id != boot_id():
        return True
    return not Process(submitter.pid, submitter.pid_started).is_alive()


def is_gone_elsewhere(submitter: Submitter) -> bool:
    """The same where other machines may take part: of their processes only silence tells."""
    alive = Process(submitter.pid, submitter.pid_started).is_alive
    return is_of_this_machine(submitter) and not alive()


def is_of_this_machine(submitter: Submitter) -> bool:
    """Whether its process number means something here."""
    return submitter.boot_id == boot_id() and submitter.pid_space == pid_space()


@cache
def pid_space() -> int:
    """Within which process numbers mean something."""
    return Path("/proc/self/ns/pid").stat().st_ino


def told_apart(me: Submitter, settings: Settings) -> Submitter:
    """The same submitter under a name that no process of another machine can have."""
    of_machines = settings.on_redis or is_shared_by_machines(settings)
    if not (of_machines or settings.on_cluster):
        return me
    installation = installation_of(settings, me.kind)
    # a folder has one machine, whose process numbers are different; containers all begin with 1
    token = f"-{secrets.token_hex(3)}" if of_machines else ""
    return msgspec.structs.replace(
        me,
        name=f"{me.name}{token}-{installation}",
        installation=installation,
        pid_space=pid_space(),
    )


def sign_on(gate: Gate) -> None:
    """Give the first sign of life. A store that says when it will be ready is waited for."""
    waited = 0.0
    while True:
        try:
            gate.beat()
        except Unavailable as error:
            if error.retry_after is None or waited > LONGEST_START:
                raise
            if not waited:
                LOG.warning("%s", error)
            pause = min(max(error.retry_after, 0.2), NAP)
        else:
            return
        Event().wait(pause)
        waited += pause


def _documents(settings: Settings, home: Home) -> DocumentStore:
    shared = open_shared_documents(settings)
    if shared is not None:
        return shared
    wakeup = Wakeup(home.run)
    return SqliteDocumentStore(home.database, wakeup=wakeup, upgrade=_upgrade)


@dataclass(frozen=True, slots=True)
class OpenGate:
    """Admission alone."""

    gate: Gate
    documents: DocumentStore
    clock: Clock
    tend: Callable[[], None] = lambda: None
    """Keeps what is shared with others in order; called every few seconds."""
    instruments: Instruments = SILENT
    """What counts and logs here; to be closed after everything else."""
    sign: Callable[[str], object] = lambda _: None
    """Something that differs when the Jobs with this id have changed; ``None`` = not followed."""


@contextmanager
def leaving(opened: OpenGate) -> Iterator[OpenGate]:
    """For a command that passes once: signs off and lets go of everything in the end."""
    try:
        yield opened
    finally:
        with suppress(Unavailable):  # others see that this process is gone
            opened.gate.retire()
        opened.documents.close()
        opened.instruments.close()


def _upgrade(path: Path) -> None:
    from blastyard.store.migrations import upgrade  # noqa: PLC0415  (only a new home needs it)

    upgrade(path)


def open_gate(
    settings: Settings,
    me: Submitter,
    claims: Callable[[], Sequence[Claim]] = tuple,
    *,
    signed_on: bool = True,
    seam: Seam = PLAIN,
) -> OpenGate:
    """The gate of the data directory. ``claims`` is what this process has running.

    Whoever only looks, or changes a row, need not be ``signed_on``; whoever runs searches must.
    """
    if settings.on_cluster:
        from blastyard.bootstrap.cluster import open_cluster_gate  # noqa: PLC0415  (brings HTTP)

        return open_cluster_gate(settings, me, claims, signed_on=signed_on, seam=seam)
    home = Home(settings.directory).make()
    documents = seam.documents(_documents(settings, home))
    me = told_apart(me, settings)
    clock = SystemClock()
    instruments = instruments_of(settings, me) if signed_on else SILENT
    around = Surroundings(
        clock.monotonic,
        is_gone_elsewhere if me.installation else is_gone,
        NothingForeign(),
        lambda: uuid.uuid4().hex,
        claims,
        observer=instruments.observer,
    )
    seed = Policy(ceiling=ceiling(settings))
    gate = Gate(documents, me, GateSettings(seed, seam.timings or timings(settings)), around)
    if signed_on:
        sign_on(gate)
    instruments.follow(Followed(gate, seed))
    return OpenGate(gate, documents, clock, instruments=instruments)
