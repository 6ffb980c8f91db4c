"""An installation whose searches run in a namespace, submitted by a stand-in for ElasticBLAST."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

from elastic_stage import CLOCK, QUERY, Elastic

from blastyard.domain.job import State
from blastyard.domain.search import Search
from blastyard.engine.elastic_blast.name import cluster_name
from blastyard.service.draft import Draft
from blastyard.testing.elastic_blast.plan import Plan, Run, runs_of
from blastyard.testing.installation import Installation, Nursery, YardProcess
from blastyard.testing.nursery import Request

UUID: Final = 36
"""Letters of a search's id, with which all its ids in the cluster begin."""
PACE: Final[Mapping[str, float]] = {
    "request_timeout": 1.0,
    "margin": 1.5,
    "beat": 0.5,
    "takeover": 4.0,
    "lapse": 4.0,
    "skew": 0.5,
    "command": 20.0,
    "ending": 0.5,
    "turn": 0.3,
    "patient_turn": 2.0,
    "settle": 2.0,
    "courtesy": 3.0,
    "unbroken_use": 20.0,
    "forgotten": 8.0,
}
"""The protocol's constants, scaled down as far as stamps of whole seconds allow."""
DRAFT: Final[dict[str, Any]] = {"program": "blastn", "database": "genes", "user": "ada"}
ANSWER: Final = "".join(f"q{number}\tstand-in\t100.000\n" for number in (1, 2, 3))


@dataclass
class Remote:
    """See the module. What the stand-in made is ended by the test, or by :meth:`ending`."""

    elastic: Elastic
    installation: Installation
    query: Path
    most: dict[str, int] = field(default_factory=dict)
    """How many submissions of each search were live at once, as far as was seen."""
    _pipes: int = 0

    # -- asking ------------------------------------------------------------------------------------

    def start(self, **words: Any) -> YardProcess:
        """A service in a process of its own."""
        return self.installation.start("serve", **words).ready()

    def submit(self) -> str:
        """A search that nobody looks after yet."""
        yard = self.installation.yard
        with self.query.open("rb") as file:
            return yard.searches.submit(Draft(**DRAFT), file, runner="").search.id

    def submit_to(self, service: YardProcess) -> str:
        """A search that a service looks after."""
        return service.submit(Request(str(self.query), DRAFT))

    def full_name(self, process: YardProcess) -> str:
        """The name of a process in the namespace."""
        return f"{process.name}-{self.installation.yard.gate.me.installation}"

    # -- looking -----------------------------------------------------------------------------------

    def search(self, search_id: str) -> Search:
        return self.installation.yard.store.get(search_id)

    def reaches(self, search_id: str, state: State) -> Search:
        """Wait until it is there."""

        def reached() -> Search | None:
            search = self.search(search_id)
            return search if search.state is state else None

        return self.installation.until(reached, f"{state} of {search_id}")

    def ended(self, search_id: str) -> Search:
        """Wait until it has ended and its slot is free."""
        return self.installation.ended(search_id)

    def live(self, search_id: str) -> set[str]:
        """The ids under which anything of a search lives in the cluster."""
        return {name for name in self.elastic.cluster.searches() if name.startswith(search_id)}

    def runs(self, search_id: str, attempts: int = 40) -> list[list[str]]:
        """What each run of the submit command for a search has done."""
        names = (cluster_name(search_id, str(number)).id for number in range(1, attempts))
        return [lines for name in names for lines in runs_of(self.elastic.notes, name)]

    def completions(self, search_id: str) -> int:
        """How often a submission of it was complete."""
        return sum("finalizer made" in lines for lines in self.runs(search_id))

    def result(self, search_id: str) -> str:
        return self.installation.yard.searches.result(search_id).read_text()

    def states(self, search_id: str) -> list[State]:
        return [event.state for event in self.installation.yard.store.events(search_id)]

    def codes(self, search_id: str) -> list[str]:
        events = self.installation.yard.store.events(search_id)
        return [event.code for event in events if event.code is not None]

    # -- what the cluster does ---------------------------------------------------------------------

    def plan(self, run: Run) -> None:
        """What the stand-in does from now on, for whatever id."""
        Plan(run, {}, str(self.elastic.notes)).write(self.elastic.plan_file)

    def plan_well(self) -> None:
        """All goes well from now on."""
        self.plan(Run(results=True))

    def delete(self, name: str, *apps: str) -> None:
        """Delete the Jobs of these parts, those of blastyard too, as a peer does."""
        for job in self.elastic.cluster.jobs(name):
            if job["metadata"]["labels"]["app"] in apps:
                path = f"/apis/batch/v1/namespaces/{self.elastic.namespace}/jobs"
                query = "propagationPolicy=Background"
                where = f"{path}/{job['metadata']['name']}?{query}"
                self.elastic.plane.admin.send("DELETE", where).expect(200)

    def finish(self, search_id: str) -> None:
        """All its Jobs complete."""
        for name in self.live(search_id):
            self.elastic.cluster.finish(name)

    @contextmanager
    def ending(self) -> Iterator[None]:
        """All complete submissions come to their end at once, as long as the block lasts."""
        over = Event()

        def end() -> None:
            while not over.is_set():
                names = self.elastic.cluster.searches()
                for search_id, number in Counter(name[:UUID] for name in names).items():
                    self.most[search_id] = max(number, self.most.get(search_id, 0))
                for name in names:
                    search = self.elastic.objects.look(name)
                    if search.of("finalizer") and search.of("submit", "blast"):
                        self.elastic.cluster.finish(name)
                over.wait(0.2)

        thread = Thread(target=end, name="cluster")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def held_at(self, line: str, **words: Any) -> Callable[[], None]:
        """Have the next run wait at a line; the answer lets it go on."""
        self._pipes += 1
        pipe = self.elastic.folder / f"pipe-{self._pipes}"
        os.mkfifo(pipe)
        self.plan(Run(results=True, wait_at=line, pipe=str(pipe), **words))

        def go() -> None:
            with suppress(OSError):  # nobody waits any more
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))

        return go

    def is_over_for(self, seconds: float) -> Callable[[], bool]:
        """Whether so much time has passed."""
        ends_at = CLOCK.monotonic() + seconds
        return lambda: CLOCK.monotonic() >= ends_at

    def begun(self, search_id: str, line: str) -> None:
        """Wait until a run has come to a line."""
        self.installation.until(
            lambda: any(line in lines for lines in self.runs(search_id)), f"the line {line!r}"
        )


@contextmanager
def remote_in(
    elastic: Elastic, home: Path, nursery: Nursery, blast: Path, database: Path
) -> Iterator[Remote]:
    """An installation in a namespace, with a database that is called ``genes``."""
    template = elastic.folder / "template.ini"
    template.write_text(f"[stand-in]\nplan = {elastic.plan_file}\n")
    environment = {
        **elastic.environment,
        "PATH": f"{elastic.bin}:{blast}:{elastic.environment['PATH']}",
        "HOME": str(elastic.folder),
        "BLAST_COORD_BACKEND": "k8s",
        "BLASTYARD_ENGINE": "elastic-blast",
        "BLASTYARD_SUBMIT_TEMPLATE": str(template),
        "BLASTYARD_RESULTS_URL": str(elastic.results),
        "BLAST_MAX_RUN_CONCURRENCY": "1",
    }
    with ExitStack() as stack:
        installation = Installation(home, nursery, environment, PACE)
        stack.callback(installation.close)
        installation.yard.databases.add_path("genes", database)
        query = elastic.folder / "query.fa"
        query.write_text(QUERY.replace("ACGT", "ACGTTGCAACGTTGCAACGTTGCAAGGC"))
        made = Remote(elastic, installation, query)
        made.plan_well()
        yield made
