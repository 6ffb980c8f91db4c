"""The engine that submits with ElasticBLAST keeps the contract, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("blastyard.testing.contract_remote")

from elastic_stage import CLOCK, Elastic  # noqa: E402
from waiting_stage import until  # noqa: E402

from blastyard.engine.elastic_blast.engine import ElasticBlastEngine  # noqa: E402
from blastyard.engine.elastic_blast.followed import Followed  # noqa: E402
from blastyard.engine.port import Task  # noqa: E402
from blastyard.engine.remote import Errand, RemoteEngine  # noqa: E402
from blastyard.testing.contract_remote import RemoteContract, RemoteRig  # noqa: E402
from blastyard.testing.controlplane import ControlPlane  # noqa: E402
from blastyard.testing.elastic_blast.plan import Run, runs_of  # noqa: E402
from blastyard.testing.remote_engine import Makes  # noqa: E402

LAST = {Makes.ALL: "finalizer made", Makes.PART: "submit made", Makes.NOTHING: "begun"}


class ElasticRig:
    def __init__(self, elastic: Elastic) -> None:
        self._elastic = elastic
        self._line = ""
        elastic.plan(Run(results=True))
        self.engine: RemoteEngine = self._engine()
        self.other: RemoteEngine = self._engine()

    def _engine(self) -> ElasticBlastEngine:
        elastic = self._elastic
        followed = Followed(elastic.objects.look_at, lambda _: None, CLOCK.monotonic)
        return ElasticBlastEngine(elastic.runner(), elastic.objects, followed, str(elastic.results))

    def errand(self, search_id: str, attempt: int = 1) -> Errand:
        folder = self._elastic.folder / "searches" / search_id
        folder.mkdir(parents=True, exist_ok=True)
        query = self._elastic.folder / f"{search_id}.fa"
        query.write_text(f">{search_id} first\nACGT\n>{search_id}-2 second\nACGT\n")
        task = Task(search_id, attempt, (), query, folder, "tsv")
        name = self.engine.name(search_id, attempt)
        return Errand(task, name, "blastn", "core_nt", ("-evalue", "1e-5"), "6")

    def makes(self, what: Makes, *, waits: bool = False) -> None:
        self._line = LAST[what]
        if waits:
            self._elastic.plan(Run(die_at=self._line, death="hang"))
        elif what is Makes.PART:
            self._elastic.plan(Run(finalizer_refused=True))
        elif what is Makes.NOTHING:
            self._elastic.plan(Run(exit_code=8))
        else:
            self._elastic.plan(Run(results=True))

    def made(self, errand: Errand) -> None:
        notes = self._elastic.notes
        until(lambda: any(self._line in lines for lines in runs_of(notes, errand.name)))

    def finish(self, name: str) -> None:
        self._elastic.cluster.finish(name)

    def fail(self, name: str) -> None:
        self._elastic.cluster.fail(name)


class TestElasticBlast(RemoteContract):
    @pytest.fixture
    def rig(
        self, control_plane: ControlPlane, namespace: str, tmp_path: Path
    ) -> Iterator[RemoteRig]:
        elastic = Elastic(control_plane, namespace, tmp_path / "elastic")
        yield ElasticRig(elastic)
        elastic.close()
