"""A namespace with the processes of a plan in it, each behind a proxy of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import Any, Final

from blastyard.domain.clock import SystemClock
from blastyard.domain.search import Priority
from blastyard.kube import rbac
from blastyard.settings import caller_environment
from blastyard.testing.cluster_soak import row
from blastyard.testing.cluster_soak.actor import Actor
from blastyard.testing.cluster_soak.plan import SHORT, Order, Plan, Program, Script, Worker
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.proxy import FaultProxy

PEERS_CEILING: Final = 3
FOREIGN_SCALE: Final = 0.1
FOREIGN_LEASE_SECONDS: Final = 20
_SUBMIT: Final = Path(__file__).with_name("submit.py")
_MODULE: Final = "blastyard.testing.cluster_soak."
_READY_SECONDS: Final = 30.0


class Narrator:
    """Tells deeds in the name of processes that cannot, into a file of the recording."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")
        self._clock = SystemClock()
        self._lock = Lock()

    def __call__(self, who: str, what: str, search: str, **more: object) -> None:
        """One deed, now."""
        at = self._clock.now().timestamp()
        with self._lock:
            deed = {"at": at, "who": who, "what": what, "search": search, **more}
            self._file.write(json.dumps(deed) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Nothing more is told."""
        self._file.close()


@dataclass
class Stage:
    """A run's namespace. Closing it ends all of its processes."""

    plane: ControlPlane
    plan: Plan
    folder: Path
    real_timings: bool
    namespace: str
    say: Narrator
    actors: dict[str, Actor] = field(default_factory=dict)
    proxies: dict[str, FaultProxy] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    """Search to the actor whose it is."""
    stack: ExitStack = field(default_factory=ExitStack)
    token: str = ""

    def furnish(self) -> None:
        """Make the account and everybody's way to the API server; start nobody."""
        rules = [rbac.rule(each) for each in rbac.needed(self.namespace)]
        self.plane.create_account(self.namespace, "blastyard", rules)
        self.token = self.plane.token_for(self.namespace, "blastyard")
        for worker in self.plan.workers:
            self._add_worker(worker)
        for order in self.plan.commands:
            self._add_command(order)
        for program in self.plan.programs:
            self._add_program(program)
        self._add_controller()
        self._await_rights()

    # -- processes -------------------------------------------------------------------------------

    def environment(self, kubeconfig: Path, home: str) -> dict[str, str]:
        """What a blastyard process is started with."""
        mine = caller_environment()
        kept = {name: mine[name] for name in ("PATH", "HOME", "LANG", "PYTHONPATH") if name in mine}
        return {
            **kept,
            "KUBECONFIG": str(kubeconfig),
            "BLAST_COORD_BACKEND": "k8s",
            "BLAST_MAX_RUN_CONCURRENCY": str(self.plan.ceiling),
            "BLASTYARD_HOME": str(self.folder / "homes" / home),
            **({} if self.real_timings else _short()),
        }

    def direct(self, name: str, token: str) -> Path:
        """A kubeconfig that leads straight to the API server."""
        return self.plane.write_kubeconfig(self.folder / f"{name}.kube", token, self.namespace)

    def _through_proxy(self, name: str, token: str) -> Path:
        proxy = self.stack.enter_context(FaultProxy.before(self.plane))
        self.proxies[name] = proxy
        return proxy.write_kubeconfig(self.folder / f"{name}.kube", token, self.namespace)

    def _add(self, name: str, words: list[str], environment: Mapping[str, str]) -> Actor:
        command = [sys.executable, *words]
        self.actors[name] = Actor(name, command, environment, self.folder, self.say)
        return self.actors[name]

    def _flags(self) -> list[str]:
        return ["--real-timings"] if self.real_timings else []

    def _add_worker(self, worker: Worker) -> None:
        environment = self.environment(self._through_proxy(worker.name, self.token), worker.name)
        rows = [
            row.Row(
                each.search,
                each.user,
                each.level,
                _command(each),
                is_hopeless=each.script is Script.FAIL,
            )
            for each in worker.orders
        ]
        row.write(Path(environment["BLASTYARD_HOME"]) / "rows.json", rows)
        self.owners |= {each.search: worker.name for each in worker.orders}
        words = ["-m", _MODULE + "worker", "--name", worker.name, *self._flags()]
        self._add(worker.name, words, environment).returns = True

    def _add_command(self, order: Order) -> None:
        name = f"x-{order.search}"
        environment = self.environment(self._through_proxy(name, self.token), name)
        words = ["-m", _MODULE + "execution", "--who", name, "--search-id", order.search]
        words += ["--user", order.user, "--priority", _priority(order.level), *self._flags()]
        self.owners[order.search] = name
        self._add(name, [*words, "--", *_command(order)], environment)

    def _add_program(self, program: Program) -> None:
        kubeconfig = self._through_proxy(program.name, self.plane.admin_token)
        scale = 1.0 if self.real_timings else FOREIGN_SCALE
        words = ["-m", "blastyard.testing.foreign", "--kubeconfig", str(kubeconfig)]
        words += ["--kind", program.kind, "--source", program.name, "--scale", str(scale)]
        words += ["--searches", str(program.searches), "--seed", str(self.plan.seed)]
        words += ["--arrival", str(program.arrival / scale), "--ceiling", str(PEERS_CEILING)]
        if not self.real_timings:
            words += ["--lease-seconds", str(FOREIGN_LEASE_SECONDS)]
            words += ["--skew", str(SHORT.skew.total_seconds())]
        self._add(program.name, words, self.environment(kubeconfig, program.name))

    def _add_controller(self) -> None:
        kubeconfig = self.direct("controller", self.plane.admin_token)
        words = ["-m", _MODULE + "controller", "--kubeconfig", str(kubeconfig)]
        self._add("controller", words, self.environment(kubeconfig, "controller"))

    def _await_rights(self) -> None:
        """The account's rights come into force a moment after they were given."""
        clock, never = SystemClock(), Event()
        latest = clock.monotonic() + _READY_SECONDS
        asked = self.plane.requests(self.token)
        while not asked.finds(self.leases()):
            if clock.monotonic() > latest:
                raise AssertionError("the account has no rights in its namespace")
            never.wait(0.05)

    def owner_of(self, holder: str) -> Actor | None:
        """The process that is inside Gate A under this name, if it is one of ours."""
        search = holder.removeprefix("blastyard-").rpartition("-")[0]
        return self.actors.get(self.owners.get(search, ""))

    # -- what an administrator sees ----------------------------------------------------------------

    def leases(self) -> str:
        """The address of the namespace's Leases."""
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    def jobs(self) -> str:
        """The address of the namespace's Jobs."""
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    def ledger(self) -> str:
        """The address of the ledger."""
        name = rbac.ledger_name(self.namespace)
        return f"/api/v1/namespaces/{self.namespace}/configmaps/{name}"

    def submit_lease(self) -> str:
        """The address of the submit lease."""
        return f"{self.leases()}/{rbac.submit_lease_name(self.namespace)}"

    def lease(self) -> dict[str, Any]:
        """The submit lease as it stands; empty when there is none. Raises ``OSError``."""
        answer = self.plane.admin.send("GET", self.submit_lease())
        return answer.document if answer.ok else {}

    def close(self) -> None:
        """End everybody by their processes."""
        for actor in self.actors.values():
            if actor.is_running:
                actor.kill()
        self.stack.close()
        self.say.close()


@contextmanager
def staged(
    plane: ControlPlane, plan: Plan, folder: Path, *, namespace: str, real_timings: bool
) -> Iterator[Stage]:
    """A stage, ready and empty."""
    folder.mkdir(parents=True)  # two runs in one recording could not be judged
    plane.create_namespace(namespace)
    say = Narrator(folder / "harness.deeds.jsonl")
    stage = Stage(plane, plan, folder, real_timings, namespace, say)
    try:
        stage.furnish()
        yield stage
    finally:
        stage.close()
        plane.delete_namespace(namespace)


def _short() -> dict[str, str]:
    return {"SUBMIT_EXEC_TIMEOUT_SECONDS": str(int(SHORT.command.total_seconds()))}


def _command(order: Order) -> list[str]:
    words = [sys.executable, "-I", "-S", str(_SUBMIT)]
    return [*words, order.script.value, f"{order.delay:.2f}", f"{order.life:.2f}"]


def _priority(level: int) -> str:
    return next(each.value for each in Priority if each.level == level)
