"""Admission against a real Kubernetes control plane, with many searches waiting in three processes.

The searches are suspended Jobs; this process completes each by a status patch, as a Job controller
would, as soon as it sees it (or after ``seconds``).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread, Timer

from figure import Figure, Setting, percentile

from blastyard.domain.clock import SystemClock
from blastyard.kube.client import Client, Selection
from blastyard.kube.config import Wanted, find
from blastyard.kube.http import HttpWire
from blastyard.kube.outcome import Object
from blastyard.kube.resource import JOBS
from blastyard.kube.watching import Changed
from blastyard.testing.controlplane import ControlPlane

WORKER = Path(__file__).with_name("cluster_worker.py")
PROCESSES = 3


def completed_status() -> dict[str, object]:
    """What a Job controller writes when a Job has succeeded."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ends = [
        {"type": kind, "status": "True", "lastTransitionTime": at, "lastProbeTime": at}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    status = {"startTime": at, "completionTime": at, "succeeded": 1, "conditions": ends}
    return status | {"active": 0, "ready": 0, "terminating": 0}


def follow(look: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait until ``look`` says so."""
    ends_at = time.monotonic() + seconds
    while not look():
        if time.monotonic() > ends_at:
            raise RuntimeError("it does not happen")
        time.sleep(0.005)


def submitter_environment(plane: ControlPlane, setting: Setting, namespace: str) -> dict[str, str]:
    """An environment for a blastyard in a new namespace."""
    plane.create_namespace(namespace)
    kubeconfig = setting.root / f"{namespace}.kubeconfig"
    plane.write_kubeconfig(kubeconfig, plane.admin_token, namespace)
    return setting.environment(namespace, KUBECONFIG=str(kubeconfig), BLAST_COORD_BACKEND="k8s")


@dataclass
class Controller:
    """Completes finalizers, and knows when."""

    client: Client
    seconds: float
    completed: dict[str, float] = field(default_factory=dict)
    created: dict[str, int] = field(default_factory=dict)

    def start(self) -> None:
        Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        selection = Selection("app=finalizer,!blastyard/marker")
        version = self.client.listing(JOBS, Object, selection).version
        watching = self.client.watch(JOBS, Object, version, selection, 3600)
        for event in watching.events(3600.0):
            if isinstance(event, Changed):
                self._seen(event.object)

    def _seen(self, job: Object) -> None:
        search = job["metadata"]["labels"]["elb-job-id"]
        if search in self.created:
            return
        self.created[search] = int(job["metadata"]["resourceVersion"])
        if self.seconds:
            Timer(self.seconds, self._complete, (search,)).start()
        else:
            self._complete(search)

    def _complete(self, search: str) -> None:
        self.client.patch(JOBS, f"f-{search}", {"status": completed_status()}, "status")
        self.completed[search] = time.monotonic()


@dataclass
class Outcome:
    """What the three processes did."""

    submitted: list[dict[str, float]]
    completed: dict[str, float]
    calls: dict[str, int]
    memory: float
    inversions: int
    seconds: float
    etcd_bytes: int
    """By how much etcd's database and log grew."""


def drained(plane: ControlPlane, setting: Setting, each: int, seconds: float) -> Outcome:
    """Let ``each`` searches wait in each process, then let them go."""
    namespace = f"bench-{each}-{int(seconds * 1000)}"
    plane.create_namespace(namespace)
    kubeconfig = setting.root / f"{namespace}.kubeconfig"
    plane.write_kubeconfig(kubeconfig, plane.admin_token, namespace)
    wire = HttpWire(
        find(Wanted({}, setting.root, str(kubeconfig)), SystemClock().now).endpoint, time.monotonic
    )
    controller = Controller(Client(wire, namespace, time.monotonic), seconds)
    controller.start()
    with _workers(setting, kubeconfig, each) as workers:
        for worker in workers:
            json.loads(worker.stdout.readline())  # type: ignore[union-attr]
        begun, stored = time.monotonic(), _stored(setting)
        for worker in workers:
            worker.stdin.write("go\n")  # type: ignore[union-attr]
            worker.stdin.flush()  # type: ignore[union-attr]
        lines = [json.loads(line) for text in _outputs(workers) for line in text.splitlines()]
    took = time.monotonic() - begun
    submitted = [line for line in lines if line["event"] == "submitted"]
    ends = [line for line in lines if line["event"] == "end"]
    calls: dict[str, int] = {}
    for end in ends:
        for key, count in end["calls"].items():
            calls[key] = calls.get(key, 0) + count
    memory = max(end["mib"] for end in ends)
    grown = _stored(setting) - stored
    inversions = _inversions(submitted)
    return Outcome(submitted, controller.completed, calls, memory, inversions, took, grown)


def _stored(setting: Setting) -> int:
    """Bytes of etcd's database. Its log is written over, and its pages are used again."""
    return sum(path.stat().st_size for path in (setting.root / "plane").rglob("snap/db"))


def _outputs(workers: list[subprocess.Popen[str]]) -> list[str]:
    found: list[str] = [""] * len(workers)

    def read(number: int, worker: subprocess.Popen[str]) -> None:
        found[number] = worker.stdout.read()  # type: ignore[union-attr]

    threads = [Thread(target=read, args=pair) for pair in enumerate(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    return found


@contextmanager
def _workers(
    setting: Setting, kubeconfig: Path, each: int
) -> Iterator[list[subprocess.Popen[str]]]:
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), f"w{number}", str(each)],
            env=setting.environment(
                f"w{number}", KUBECONFIG=str(kubeconfig), BLAST_COORD_BACKEND="k8s"
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def _inversions(submitted: list[dict[str, float]]) -> int:
    """Pairs of one process whose later search was submitted first; all are one user's."""
    order = sorted(submitted, key=lambda one: one["at"])
    count = 0
    for number in range(PROCESSES):
        own = [
            int(str(one["search"]).rpartition("-")[2])
            for one in order
            if str(one["search"]).startswith(f"w{number}-")
        ]
        count += sum(a > b for index, a in enumerate(own) for b in own[index + 1 :])
    return count


def _gaps(outcome: Outcome, ceiling: int) -> list[float]:
    """Milliseconds from each completion to the submission that took its slot."""
    ends = sorted(outcome.completed.values())
    starts = sorted(one["at"] for one in outcome.submitted)[ceiling:]
    return [1000 * (start - end) for end, start in zip(ends, starts, strict=False)]


def measure(setting: Setting) -> list[Figure]:
    """Slot idle with 60 and with 1,000 waiting; admissions per second; calls of each."""
    setting.root.mkdir(parents=True)
    few, many = (8, 20) if setting.quick else (20, 334)
    figures: list[Figure] = []
    with ControlPlane.start(setting.root / "plane") as plane:
        for waiting, seconds in ((few, 0.5), (many, 0.5), (many, 0.0)):
            outcome = drained(plane, setting, waiting, seconds)
            figures += _figures(outcome, waiting * PROCESSES, seconds)
    return figures


def _figures(outcome: Outcome, waiting: int, seconds: float) -> list[Figure]:
    count = len(outcome.submitted)
    where = f"{waiting} waiting, jobs of {seconds:g} s"
    own = sum(n for key, n in outcome.calls.items() if key == "create jobs")
    asked = (sum(outcome.calls.values()) - own) / count
    gaps = _gaps(outcome, 3)
    span = max(one["at"] for one in outcome.submitted) - min(one["at"] for one in outcome.submitted)
    figures = [
        Figure(f"API calls per admission, {where}", asked, "", "<= 8", count),
        Figure(f"FIFO inversions, {where}", outcome.inversions, "", "0", count),
        Figure(f"admissions, {where}", (count - 1) / span, "1/s", ">= 25 instant", count),
        Figure(
            f"etcd growth, {where}", outcome.etcd_bytes / outcome.seconds / 1e6, "MB/s", "< 2", 1
        ),
        Figure(f"memory of a submitter, {where}", outcome.memory, "MiB", "< 150", PROCESSES),
    ]
    if seconds:
        figures[:0] = [
            Figure(f"slot idle, {where}, p50", percentile(gaps, 0.5), "ms", "< 30", len(gaps)),
            Figure(f"slot idle, {where}, p99", percentile(gaps, 0.99), "ms", "< 90", len(gaps)),
        ]
    print(json.dumps(outcome.calls), file=sys.stderr)
    return figures
