"""Clients and stores of a namespace, for tests against a real API server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from waiting_stage import CLOCK

from blastyard.admission.kubernetes.documents import KubernetesDocumentStore
from blastyard.admission.kubernetes.watch import Informer
from blastyard.kube import rbac
from blastyard.kube.client import Client
from blastyard.kube.config import Target, Wanted, find
from blastyard.kube.http import HttpWire
from blastyard.testing.controlplane import ControlPlane

Request = tuple[str, str, int]


@dataclass
class Stage:
    """A namespace, and who asks about it."""

    plane: ControlPlane
    namespace: str
    folder: Path
    requests: list[Request] = field(default_factory=list)
    """What was asked by clients of this stage: verb, resource, status."""
    closers: list[Callable[[], None]] = field(default_factory=list)

    def target(self, token: str = "") -> Target:
        """The namespace, as whoever holds the token; as administrator without one."""
        number = len(list(self.folder.glob("kubeconfig*")))
        path = self.folder / f"kubeconfig-{number}"
        self.plane.write_kubeconfig(path, token or self.plane.admin_token, self.namespace)
        return find(Wanted({}, self.folder, str(path)), CLOCK.now)

    def account(self, rules: Sequence[dict[str, object]] | None = None) -> str:
        """The token of a service account with these rules; those that blastyard asks for."""
        needed = [rbac.rule(each) for each in rbac.needed(self.namespace)]
        self.plane.create_account(
            self.namespace, "blastyard", needed if rules is None else list(rules)
        )
        return self.plane.token_for(self.namespace, "blastyard")

    def client(self, token: str = "") -> Client:
        """A client with a wire of its own."""
        wire = HttpWire(self.target(token).endpoint, CLOCK.monotonic)
        self.closers.append(wire.close)
        return Client(
            wire,
            self.namespace,
            CLOCK.monotonic,
            lambda verb, resource, status, _: self.requests.append((verb, resource, status)),
        )

    def informer(self, client: Client) -> Informer:
        """A running informer."""
        informer = Informer(client, CLOCK.monotonic)
        informer.start()
        self.closers.insert(0, informer.close)
        return informer

    def store(self, token: str = "", *, follows: bool = False) -> KubernetesDocumentStore:
        """A store like that of a process of its own; with an informer that runs, or does not."""
        client = self.client(token)
        follower = self.informer(client) if follows else Informer(client, CLOCK.monotonic)
        return KubernetesDocumentStore(client, follower, CLOCK.monotonic)

    def close(self) -> None:
        """Close everything that was opened."""
        for close in self.closers:
            close()
