"""The services of searches that are handed to a cluster, on a clock that the test moves."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from blastyard.admission.census import NothingForeign
from blastyard.admission.gate import Gate
from blastyard.admission.ledger import Policy, Submitter
from blastyard.admission.memory import MemoryDocumentStore
from blastyard.admission.outlook import GateSettings, Surroundings
from blastyard.admission.tending import Tending
from blastyard.domain.job import State
from blastyard.domain.program import Program
from blastyard.domain.search import Database, Event, Query, Request, Search
from blastyard.engine.port import Limits
from blastyard.results.files import SearchFiles
from blastyard.service.ending import Endings
from blastyard.service.outcome import Done, Wait
from blastyard.service.remote.advance import RemoteAdvance, RemoteStages
from blastyard.service.remote.attempt import RemoteAttempts
from blastyard.service.remote.errand import Errands
from blastyard.service.remote.handover import RemoteHandover
from blastyard.service.remote.submission import Submissions
from blastyard.service.remote.sweep import RemoteSweep
from blastyard.service.remote.trouble import Troubles
from blastyard.service.sweep import Sweep
from blastyard.service.task import Tasks
from blastyard.service.window import Window
from blastyard.store.memory import MemorySearchStore
from blastyard.testing.engine import FakeEngine
from blastyard.testing.remote_engine import FakeCluster, FakeRemoteEngine

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
CHANCE: Final = 0.5


class World:
    """What processes share: time, a store, the documents, a cluster."""

    def __init__(self, folder: Path) -> None:
        self.seconds = 0.0
        self.folder = folder
        self.dead: set[str] = set()
        self.cluster = FakeCluster()
        self.documents = MemoryDocumentStore(self.now)
        self.store = MemorySearchStore(self.now)
        self.store.add_database(Database("nt", "nucl", "/db/nt", "nt", 1, 1, False, BEGIN))

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.seconds)

    def search(self, search_id: str) -> Search:
        return self.store.get(search_id)

    def codes(self, search_id: str) -> list[str]:
        return [event.code for event in self.store.events(search_id) if event.code]

    def states(self, search_id: str) -> list[State]:
        return [event.state for event in self.store.events(search_id)]


class Process:
    """A process that looks after searches."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        me = Submitter(name, "serve", 0, label=name)
        around = Surroundings(
            lambda: world.seconds,
            lambda submitter: submitter.name in world.dead,
            NothingForeign(),
            lambda: "uid",
            tuple,
        )
        self.gate = Gate(world.documents, me, GateSettings(Policy(ceiling=1)), around)
        self.gate.beat()
        store, engine = world.store, FakeRemoteEngine(world.cluster)
        files = SearchFiles(world.folder)
        tasks = Tasks(_NoPrograms(), store, files, threads=1, limits=Limits())
        errands = Errands(tasks)
        endings = Endings(store, lambda: "")
        self.window = Window(store, self.gate, lambda: world.seconds)
        settle = self.gate.timings.settle
        submissions = Submissions(store, self.gate, engine, self.gate.timings.command)
        troubles = Troubles(store, endings, settle, lambda: CHANCE)
        self.attempts = RemoteAttempts(store, self.gate, engine, errands, submissions, troubles)
        self.tend = Tending(self.gate, lambda: "token", patience=0.0)
        self.step = RemoteAdvance(
            RemoteStages(store, self.gate, engine, errands, self.attempts, self.window, endings)
        )
        self.sweep = RemoteSweep(store, self.gate)
        self.handover = RemoteHandover(store, self.gate)

    def submit(self, search_id: str = "one") -> str:
        request = Request(Program.BLASTN, "nt", (), "6", "ada")
        query = Query(1, 100, 100, 100, "ab" * 32)
        row = Search(search_id, request, query, 0, BEGIN, runner=self.name)
        self.window.offer(self.world.store.add(row, Event(State.QUEUED, reason="accepted")))
        return search_id

    def live(self, search_id: str, seconds: float = 600.0) -> Search:
        """Step a search whenever it wants to be stepped, until it waits for a cluster or ends."""
        until = self.world.seconds + seconds
        while self.world.seconds < until:
            outcome = self.step(search_id)
            self.tend()
            search = self.world.search(search_id)
            if isinstance(outcome, Done) or search.state is State.RUNNING:
                return search
            self.pass_time(max(0.5, outcome.delay.total_seconds()))
        return self.world.search(search_id)

    def local_sweep(self) -> Sweep:
        """The sweep of a process that runs searches itself, under the same name."""
        tasks = Tasks(
            _NoPrograms(),
            self.world.store,
            SearchFiles(self.world.folder),
            threads=1,
            limits=Limits(),
        )
        return Sweep(
            self.world.store, self.gate, FakeEngine(), tasks, Endings(self.world.store, str)
        )

    def once(self, search_id: str) -> Done | Wait:
        return self.step(search_id)

    def pass_time(self, seconds: float) -> None:
        self.world.seconds += seconds
        self.gate.beat()

    def write(self, search: Search, **changes: object) -> Search:
        """Write a row as some other process would have."""
        return self.world.store.update(replace(search, **changes))  # type: ignore[arg-type]


class _NoPrograms:
    def program(self, name: str) -> object:
        raise AssertionError(f"{name} is not run here")
