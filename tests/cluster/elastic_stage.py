"""A namespace, a stand-in for ``elastic-blast`` on the PATH, and the engine's parts before it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
from waiting_stage import until

from blastyard.domain.clock import SystemClock
from blastyard.engine.elastic_blast.command import DEFAULT, SubmitCommand
from blastyard.engine.elastic_blast.configuration import Order, Template, results_of
from blastyard.engine.elastic_blast.name import ClusterName, cluster_name
from blastyard.engine.elastic_blast.objects import SearchObjects
from blastyard.engine.elastic_blast.probe import Probe
from blastyard.engine.elastic_blast.runner import Prepared, Setup, Submission, SubmitRunner
from blastyard.engine.elastic_blast.sight import judge
from blastyard.engine.remote import Outcome, Sighted
from blastyard.kube import rbac
from blastyard.kube.client import Client
from blastyard.kube.config import Target, Wanted, find
from blastyard.kube.http import HttpWire
from blastyard.settings import caller_environment
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.elastic_blast.cluster import SearchCluster
from blastyard.testing.elastic_blast.install import install
from blastyard.testing.elastic_blast.plan import VARIABLE, Plan, Run, runs_of
from blastyard.testing.foreign.api import Api
from blastyard.testing.plain_wire import Access, PlainWire

CLOCK = SystemClock()
SOON = 60.0
QUERY = ">q1 first\nACGT\n>q2 second\nACGT\n>q3 third\nACGT\n"


@dataclass
class Elastic:
    """See the module."""

    plane: ControlPlane
    namespace: str
    folder: Path
    _closers: list[Callable[[], None]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.kubeconfig = self._kubeconfig(self.plane.admin_token)
        self.bin = self.folder / "bin"
        install(self.bin)
        self.probe = Probe(CLOCK.monotonic)
        self.notes = self.folder / "notes"
        self.notes.mkdir()
        self.results = self.folder / "results"
        self.results.mkdir()
        self.plan_file = self.folder / "plan.json"
        self.plan(Run())
        wire = PlainWire(Access.read(self.kubeconfig), "elastic-stage")
        self._closers.append(wire.close)
        self.cluster = SearchCluster(Api(wire, self.namespace))
        self.objects = self.objects_of(self.plane.admin_token)

    def close(self) -> None:
        for close in self._closers:
            close()

    # -- what the command does --------------------------------------------------------------------

    def plan(self, each: Run, **searches: Any) -> None:
        """What the stand-in does from now on; the keys of searches have ``_`` for ``-``."""
        told = {name.replace("_", "-"): tuple(runs) for name, runs in searches.items()}
        Plan(each, told, str(self.notes)).write(self.plan_file)

    def plan_for(self, name: ClusterName, *runs: Run) -> None:
        """What the runs for one id do, one after another."""
        Plan(Run(), {name.id: runs}, str(self.notes)).write(self.plan_file)

    def lines(self, name: ClusterName) -> list[list[str]]:
        """What each run for an id has done."""
        return runs_of(self.notes, name.id)

    # -- ours -------------------------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        """Of a process that submits."""
        own = caller_environment()
        return {
            **own,
            "PATH": f"{self.bin}:{own['PATH']}",
            "KUBECONFIG": str(self.kubeconfig),
            VARIABLE: str(self.plan_file),
        }

    def target(self, path: Path | None = None) -> Target:
        return find(Wanted({}, self.folder, str(path or self.kubeconfig)), CLOCK.now)

    def runner(self, command: str = DEFAULT, target: Target | None = None) -> SubmitRunner:
        setup = Setup(
            SubmitCommand.parse(command), Template(), target or self.target(), self.environment
        )
        return SubmitRunner(setup, self.probe, CLOCK.now)

    def order(self, name: ClusterName, query: str = QUERY) -> Order:
        path = self.folder / f"{name.tail}.fa"
        path.write_text(query)
        results = results_of(str(self.results), name)
        return Order(name, "blastn", "core_nt", ("-evalue", "1e-5"), "6", path, results)

    def prepared(self, name: ClusterName, runner: SubmitRunner | None = None) -> Prepared:
        attempt = self.folder / f"attempt-{next(self._numbers)}"
        return (runner or self.runner()).prepare(self.order(name), attempt)

    def submit(self, name: ClusterName) -> Outcome:
        """Run the command to its end."""
        runner = self.runner()
        return self.outcome(runner, self.prepared(name, runner))

    def outcome(self, runner: SubmitRunner, prepared: Prepared) -> Outcome:
        with self.started(runner, prepared) as submission:
            assert submission.wait(SOON) is not None
            found = submission.outcome()
            assert found is not None
            return found

    @contextmanager
    def started(self, runner: SubmitRunner, prepared: Prepared) -> Iterator[Submission]:
        with runner.start(prepared, CLOCK.monotonic() + SOON) as submission:
            yield submission

    def judged(self, name: ClusterName, *, was_complete: bool = False) -> Sighted:
        return judge(self.objects.look(name.id), was_complete=was_complete)

    def objects_of(self, token: str) -> SearchObjects:
        """Objects as whoever holds the token may ask for and delete them."""
        wire = HttpWire(self.target(self._kubeconfig(token)).endpoint, CLOCK.monotonic)
        self._closers.append(wire.close)
        client = Client(wire, self.namespace, CLOCK.monotonic)
        return SearchObjects(client, CLOCK.monotonic, lambda _: None)

    def account(self, permissions: Iterable[rbac.Permission]) -> str:
        """The token of an account that may do this, and no more."""
        rules = [rbac.rule(each) for each in permissions]
        self.plane.create_account(self.namespace, "least", rules)
        token = self.plane.token_for(self.namespace, "least")
        until(lambda: self.plane.requests(token).finds(self._jobs))  # the Role is known by then
        return token

    # -- by hand ----------------------------------------------------------------------------------

    def uids(self, name: ClusterName) -> dict[str, str]:
        """Names and uids of the Jobs that carry an id."""
        jobs = self.cluster.jobs(name.id)
        return {job["metadata"]["name"]: job["metadata"]["uid"] for job in jobs}

    def config_maps(self) -> set[str]:
        found = self.plane.admin.send("GET", self._config_maps).expect(200)["items"]
        names = {each["metadata"]["name"] for each in found}
        return names - {"kube-root-ca.crt"}

    def make_config_map(self, name: str, **labels: str) -> None:
        document = {"metadata": {"name": name, "labels": labels}}
        self.plane.admin.send("POST", self._config_maps, document).expect(201)

    @property
    def _jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    @property
    def _config_maps(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    def _kubeconfig(self, token: str) -> Path:
        path = self.folder / f"kubeconfig-{next(self._numbers)}"
        return self.plane.write_kubeconfig(path, token, self.namespace)


def named(search: str, key: str = "1") -> ClusterName:
    return cluster_name(search, key)


def alike(name: ClusterName) -> ClusterName:
    """Another id with the same last eight characters."""
    return replace(name, id=f"another-{name.tail}")


def elsewhere(path: Path, into: Path) -> Path:
    """The same kubeconfig with a server that is not there."""
    document = msgspec.json.decode(path.read_bytes())
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    into.write_bytes(msgspec.json.encode(document))
    return into
