"""Stores and informers on an API server in memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from blastyard.admission.kubernetes.documents import KubernetesDocumentStore
from blastyard.admission.kubernetes.watch import Informer
from blastyard.admission.lease import SubmitLease
from blastyard.admission.ledger import encode
from blastyard.domain.clock import SystemClock
from blastyard.kube.client import Client
from blastyard.kube.reflector import Pace
from blastyard.kube.wire import Call
from blastyard.testing.memory_api import MemoryApi

NAMESPACE = "lab"
LEASE_NAME = f"elb-blast-submit-{NAMESPACE}"
LEDGER_NAME = f"elb-blast-ledger-{NAMESPACE}"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
CONFIGMAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
SOON = 10.0
"""Seconds that a test waits for what must happen at once before it fails."""


def record(holder: str = "", renewed: str | None = None, **more: Any) -> bytes:
    """The body of a submit lease."""
    return encode(SubmitLease(holder, renew_time=renewed, **more))


class Hand:
    """Time that a test moves, for clients and server alike."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 12, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)


class Cluster:
    """An API server, and who speaks to it: ours, and somebody by hand."""

    def __init__(self, clock: Hand | SystemClock) -> None:
        self.clock = clock
        self.api = MemoryApi(clock.now, clock.monotonic, seed=1)
        self.requests: list[tuple[str, str, int]] = []
        self.informers: list[Informer] = []

    def client(self) -> Client:
        return Client(
            self.api.client("blastyard"),
            NAMESPACE,
            self.clock.monotonic,
            lambda *told: self.requests.append(told[:3]),
        )

    def informer(self, client: Client | None = None, **more: Any) -> Informer:
        """An informer that does not run yet."""
        informer = Informer(client or self.client(), self.clock.monotonic, **more)
        self.informers.append(informer)
        return informer

    def store(self, informer: Informer | None = None) -> KubernetesDocumentStore:
        """A store of a process without an informer that runs, unless one is given."""
        client = self.client()
        follower = informer or self.informer(client)
        return KubernetesDocumentStore(client, follower, self.clock.monotonic)

    def following(self, **pace: float) -> tuple[KubernetesDocumentStore, Informer]:
        """A store, and the informer of its process, which runs."""
        client = self.client()
        informer = self.informer(client, pace=Pace(**pace) if pace else None)
        informer.start()
        return KubernetesDocumentStore(client, informer, self.clock.monotonic), informer

    def close(self) -> None:
        for informer in self.informers:
            informer.close()

    # -- by hand -----------------------------------------------------------------------------------

    def send(self, method: str, path: str, body: Any = None, **query: str) -> dict[str, Any]:
        """A request of somebody else; its answer, which must be a success."""
        data = None if body is None else msgspec.json.encode(body)
        merge = "application/merge-patch+json"
        kind = merge if method == "PATCH" else "application/json"
        answer = self.api.client("peer").send(Call(method, path, query, data, kind))
        assert answer.status in (200, 201), answer
        decoded: dict[str, Any] = msgspec.json.decode(answer.body)
        return decoded

    def lease(self) -> dict[str, Any]:
        """The submit lease as it is stored."""
        return self.api.documents("leases", NAMESPACE)[LEASE_NAME]

    def put_lease(self, spec: Any, **metadata: Any) -> dict[str, Any]:
        """A peer's write: the whole body, with only name, namespace and version."""
        found = self.api.documents("leases", NAMESPACE).get(LEASE_NAME)
        named = {"name": LEASE_NAME, "namespace": NAMESPACE, **metadata}
        document = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
        if found is None:
            return self.send("POST", LEASES, {**document, "metadata": named})
        named["resourceVersion"] = found["metadata"]["resourceVersion"]
        return self.send("PUT", f"{LEASES}/{LEASE_NAME}", {**document, "metadata": named})


def eventually(watch: Any, holds: Callable[[], bool]) -> None:
    """Wait, from one ring to the next, until it holds."""
    while not holds():
        assert watch.wait(SOON), "nothing rang any more"
