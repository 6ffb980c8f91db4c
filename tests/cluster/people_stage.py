"""Who asks, and what is made, in the tests of permissions and of enforcement."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self

from blastyard.domain.clock import SystemClock
from blastyard.kube.config import Wanted, find
from blastyard.kube.http import HttpWire
from blastyard.testing.controlplane import ControlPlane


class People:
    """Connections to a test's API server, each with somebody's credential; closed at the end."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._control_plane = control_plane
        self._wires = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._wires.close()

    def admin(self) -> HttpWire:
        """Somebody who may do everything."""
        return self.with_token(self._control_plane.admin_token)

    def account(self, namespace: str, name: str) -> HttpWire:
        """A service account that is there."""
        return self.with_token(self._control_plane.token_for(namespace, name))

    def new_account(
        self, namespace: str, name: str, rules: Iterable[Mapping[str, Any]] = ()
    ) -> HttpWire:
        """A new service account that may do what the rules say."""
        self._control_plane.create_account(namespace, name, list(rules))
        return self.account(namespace, name)

    def with_token(self, token: str) -> HttpWire:
        """Whoever holds the token."""
        clock = SystemClock()
        with tempfile.TemporaryDirectory() as folder:
            path = self._control_plane.write_kubeconfig(Path(folder) / "kubeconfig", token, "any")
            target = find(Wanted({}, Path(folder), kubeconfig=str(path)), clock.now)
        return self._wires.enter_context(closing(HttpWire(target.endpoint, clock.monotonic)))


def lease(name: str, holder: str | None = None) -> dict[str, Any]:
    """A Lease that is held, or free."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {} if holder is None else {"holderIdentity": holder},
    }


def config_map(name: str, data: Mapping[str, str]) -> dict[str, Any]:
    """A ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": dict(data),
    }


def job(
    name: str, labels: Mapping[str, str] = {}, annotations: Mapping[str, str] = {}
) -> dict[str, Any]:
    """A Job without pods, as markers are."""
    container = {"name": "none", "image": "none"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": dict(labels), "annotations": dict(annotations)},
        "spec": {"parallelism": 0, "activeDeadlineSeconds": 259_200, "template": template},
    }
