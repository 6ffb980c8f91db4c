"""The fake engine to which searches are handed over keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.register_assert_rewrite("blastyard.testing.contract_remote")

from blastyard.engine.port import Task  # noqa: E402
from blastyard.engine.remote import Errand, RemoteEngine, Retryable, Submitted  # noqa: E402
from blastyard.testing.contract_remote import RemoteContract, RemoteRig  # noqa: E402
from blastyard.testing.remote_engine import FakeCluster, FakeRemoteEngine, Makes, Plan  # noqa: E402


class FakeRig:
    def __init__(self, directory: Path) -> None:
        self.cluster = FakeCluster()
        self.engine: RemoteEngine = FakeRemoteEngine(self.cluster)
        self.other: RemoteEngine = FakeRemoteEngine(self.cluster)
        self._directory = directory

    def errand(self, search_id: str, attempt: int = 1) -> Errand:
        folder = self._directory / search_id
        task = Task(search_id, attempt, (), folder.with_suffix(".fa"), folder, "tsv")
        name = self.engine.name(search_id, attempt)
        return Errand(task, name, "blastn", "nt", (), "6")

    def makes(self, what: Makes, *, waits: bool = False) -> None:
        outcome = Submitted() if what is Makes.ALL else Retryable("transient", "not now")
        self.cluster.plan = Plan(what, outcome, waits)

    def made(self, errand: Errand) -> None:
        pass

    def finish(self, name: str) -> None:
        self.cluster.finish(name)

    def fail(self, name: str) -> None:
        self.cluster.fail(name)


class TestFake(RemoteContract):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> RemoteRig:
        return FakeRig(tmp_path)
