"""The whole installation on one machine: stores, gate, engine, services and a worker."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from blastyard.admission.gate import Gate
from blastyard.admission.ledger import Submitter
from blastyard.admission.port import DocumentStore
from blastyard.bootstrap.backend import open_search_store
from blastyard.bootstrap.engine import Parts, open_machinery
from blastyard.bootstrap.gate import Home, open_gate
from blastyard.bootstrap.instrument import Instruments
from blastyard.bootstrap.seam import PLAIN, Seam
from blastyard.domain.clock import Clock
from blastyard.domain.fasta import FastaLimits
from blastyard.domain.search import Database, Search
from blastyard.engine.database import DatabaseFiles
from blastyard.engine.port import Limits
from blastyard.engine.toolchain import Toolchain
from blastyard.results.files import SearchFiles
from blastyard.service.databases import Databases
from blastyard.service.ending import Endings
from blastyard.service.handover import Handover
from blastyard.service.intake import Intake, Room
from blastyard.service.retention import Retention, Rule
from blastyard.service.searches import Desk, Person, Searches, Waits
from blastyard.service.sweep import WEB, Sweep, claims
from blastyard.service.task import Tasks
from blastyard.service.tidy import Tidy
from blastyard.service.upkeep import Arrivals, Upkeep
from blastyard.service.window import Window
from blastyard.settings import Settings, account_name
from blastyard.store.port import SearchStore
from blastyard.worker.driver import Work
from blastyard.worker.inprocess import Worker

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Yard:
    """An open installation. ``close`` signs off; what waits here is left to others."""

    settings: Settings
    home: Home
    clock: Clock
    store: SearchStore
    documents: DocumentStore
    gate: Gate
    toolchain: Toolchain
    files: SearchFiles
    searches: Searches
    databases: Databases
    retention: Retention
    sweep: Sweep
    handover: Handover
    make_worker: Callable[[Callable[[Search], bool]], Worker]
    """A worker of this process; the argument says whether to adopt one more orphaned search."""
    instruments: Instruments
    let_go: Callable[[], None] = lambda: None
    """Of what runs searches."""

    @property
    def runner(self) -> str:
        """Who looks after what is submitted here; empty: whoever is told of it."""
        return "" if self.gate.me.kind == WEB else self.gate.me.name

    def close(self) -> None:
        """Hand over what this process looks after, sign off, let go of files and sockets."""
        try:
            self.handover()
            self.gate.retire()
        finally:
            self.let_go()
            self.documents.close()
            self.store.close()
            self.instruments.close()


@dataclass(frozen=True, slots=True)
class _Catalogue:
    """The databases, as intake asks for them."""

    databases: Databases
    files: DatabaseFiles

    def ready(self, name: str) -> Database:
        return self.databases.ready(name)

    def has_taxid(self, database: Database, taxid: int) -> bool:
        return self.files.has_taxid(database, taxid)


def search_memory(settings: Settings) -> int:
    """Bytes of memory one search may use: as set, else this machine's divided by the ceiling."""
    if settings.search_memory_mb:
        return settings.search_memory_mb * MIB
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(total * 0.9) // max(1, settings.max_run_concurrency)


def search_threads(settings: Settings) -> int:
    """Threads of one search: as set, else cores divided by the ceiling, at least 1."""
    cores = len(os.sched_getaffinity(0))
    return settings.threads or max(1, cores // max(1, settings.max_run_concurrency))


def limits(settings: Settings) -> Limits:
    """What one search may use."""
    return Limits(
        memory_bytes=search_memory(settings),
        cpu_seconds=settings.search_cpu_seconds or None,
        output_bytes=settings.search_output_mb * MIB or None,
    )


def open_yard(
    settings: Settings,
    me: Submitter,
    *,
    signed_on: bool = True,
    seam: Seam = PLAIN,
    announce: Callable[[str], None] = lambda _: None,
) -> Yard:
    """Open the data directory as ``me``; whoever runs searches must be ``signed_on``.

    ``announce(id)`` tells others of a search that nobody looks after yet; it never raises.
    """
    home = Home(settings.directory).make()
    store = seam.store(open_search_store(settings, home.database))
    opened = open_gate(settings, me, lambda: claims(store), signed_on=signed_on, seam=seam)
    gate, clock = opened.gate, opened.clock
    gate.reach = store.now
    toolchain = Toolchain(settings.path)
    files = SearchFiles(home.searches, clock)
    database_files = DatabaseFiles(toolchain)
    databases = Databases(store, database_files, home.databases, store.now)
    tasks = Tasks(
        toolchain, store, files, threads=search_threads(settings), limits=limits(settings)
    )
    endings = Endings(store, (lambda: "") if settings.is_remote else toolchain.version)
    window = Window(store, gate, clock.monotonic)
    parts = Parts(store, tasks, window, endings)
    machinery = open_machinery(settings, opened, parts, seam)
    room = Room(None if settings.is_remote else search_memory(settings))
    intake = Intake(
        _Catalogue(databases, database_files),
        room,
        FastaLimits(max_bytes=settings.query_max_mb * MIB),
    )
    desk = Desk(
        store,
        gate,
        files,
        intake,
        window,
        endings,
        _person(settings),
        _new_id,
        Waits(*settings.waits),
        announce,
    )
    retention = Retention(store, files, Rule(settings.retention_days, settings.retention_gb))
    upkeep = Upkeep(
        window,
        Arrivals(store, gate, databases),
        retention,
        Tidy(store, files, machinery.leavings, tasks, clock.monotonic),
        opened.tend,
    )

    def make_worker(wants: Callable[[Search], bool]) -> Worker:
        workers: list[Worker] = []

        def woken(search_id: str) -> None:
            workers[0].wake(search_id)

        work = Work(
            machinery.steps(woken),
            machinery.sweep,
            gate,
            opened.documents.watch(),
            wants,
            upkeep,
        )
        workers.append(Worker(work, clock))
        return workers[0]

    return Yard(
        settings,
        home,
        clock,
        store,
        opened.documents,
        gate,
        toolchain,
        files,
        Searches(desk),
        databases,
        retention,
        machinery.sweep,
        machinery.handover,
        make_worker,
        opened.instruments,
        machinery.close,
    )


def _person(settings: Settings) -> Person:
    return Person(os.getuid(), settings.user or account_name())


def _new_id() -> str:
    return str(uuid.uuid4())
