"""A service of a lab: data directory, worker and fake engine, admitted by the cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

from fault_stage import until
from gate_stage import Lab
from waiting_stage import TENTH

from blastyard.bootstrap.gate import this_process
from blastyard.bootstrap.seam import Seam
from blastyard.bootstrap.yard import Yard, open_yard
from blastyard.domain.job import State
from blastyard.domain.search import Search
from blastyard.service.draft import Draft
from blastyard.settings import read_settings
from blastyard.testing.engine import FakeEngine, FakeMachine
from blastyard.worker.inprocess import Worker


@dataclass
class Service:
    """A service that runs its searches itself, on a machine that does what the test says."""

    yard: Yard
    worker: Worker
    machine: FakeMachine
    query: Path

    def submit(self, **draft: Any) -> str:
        """A search for it; the id."""
        words = Draft(**{"program": "blastn", "database": "genes", "user": "ada", **draft})
        runner = self.yard.gate.me.name
        with self.query.open("rb") as file:
            search = self.yard.searches.submit(words, file, runner=runner).search
        self.worker.take([search.id])
        return search.id

    def search(self, search_id: str) -> Search:
        return self.yard.store.get(search_id)

    def running(self, search_id: str) -> None:
        """Wait until it runs."""
        self.until(lambda: self.search(search_id).state is State.RUNNING)

    def until(self, true: Callable[[], bool]) -> None:
        """Ask again whenever something in the namespace has changed, and now and then."""
        until(true, bell=self.yard.documents.watch())


class Samples(Protocol):
    """The fixtures of sample FASTA files, and of databases made of them."""

    nucl: Path
    nucl_query: Path


NewService = Callable[..., Service]


@contextmanager
def services_in(lab: Lab, blast: Path, database: Path, query: Path) -> Iterator[NewService]:
    """Makes services; their workers end with the block."""
    with ExitStack() as stack:

        def new(kubeconfig: Path | None = None, ceiling: int = 1, **environment: str) -> Service:
            home = stack.enter_context(tempfile.TemporaryDirectory(prefix="by-", dir="/tmp"))
            words = {
                **lab.environment,
                "PATH": f"{blast}:/usr/bin:/bin",
                "BLASTYARD_HOME": home,
                "BLAST_MAX_RUN_CONCURRENCY": str(ceiling),
                **environment,
            }
            if kubeconfig is not None:
                words["KUBECONFIG"] = str(kubeconfig)
            machine = FakeMachine()
            seam = Seam(TENTH, engine=lambda _: FakeEngine(machine, files=True))
            yard = open_yard(read_settings(words), this_process("serve"), seam=seam)
            stack.callback(yard.close)
            yard.databases.add_path("genes", database)
            worker = yard.make_worker(lambda _: True)
            thread = Thread(target=worker.run, name="worker")
            thread.start()
            stack.callback(thread.join)
            stack.callback(worker.stop)
            return Service(yard, worker, machine, query)

        yield new
