"""The contract of API servers describes the real one."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import msgspec
import pytest

from blastyard.domain.clock import SystemClock
from blastyard.kube.config import Wanted, find
from blastyard.kube.http import HttpWire
from blastyard.kube.wire import Call, Wire
from blastyard.testing.contract_api import MERGE_PATCH, path_of
from blastyard.testing.contract_api_jobs import JobContract
from blastyard.testing.contract_api_leases import LeaseContract
from blastyard.testing.contract_api_lists import HistoryContract, ListContract
from blastyard.testing.contract_api_objects import ObjectContract
from blastyard.testing.contract_api_watches import ForgetfulWatchContract, WatchContract
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_program import ETCD, Layout
from blastyard.testing.controlplane_state import State

PATIENCE = 20.0
"""Seconds after which what did not come true will not."""
PAUSE = 0.1
"""Seconds between two looks."""


class OnRealServer:
    """A namespace of a real API server, under test."""

    def __init__(self, control_plane: ControlPlane, wire: Wire, namespace: str) -> None:
        self.wire = wire
        self.namespace = namespace
        self._control_plane = control_plane

    def until(self, true: Callable[[], bool]) -> None:
        clock = SystemClock()
        latest = clock.monotonic() + PATIENCE
        while not true():
            assert clock.monotonic() < latest, "it did not become true"
            Event().wait(PAUSE)

    def complete(self, name: str) -> None:
        time = self._created_at(name)
        ended = {"startTime": time, "completionTime": time, "succeeded": 1}
        self._write_status(name, ended, ("SuccessCriteriaMet", "Complete"))

    def fail(self, name: str) -> None:
        started = {"startTime": self._created_at(name), "failed": 1}
        self._write_status(name, started, ("FailureTarget", "Failed"))

    def forget(self) -> None:
        """Compact etcd, and let the API server begin with an empty cache."""
        _compact(self._control_plane)
        self._control_plane.restart_api()

    def _created_at(self, name: str) -> str:
        answer = self.wire.send(Call("GET", f"{path_of('jobs', self.namespace)}/{name}"))
        created: str = msgspec.json.decode(answer.body)["metadata"]["creationTimestamp"]
        return created

    def _write_status(
        self, name: str, status: dict[str, object], conditions: tuple[str, ...]
    ) -> None:
        true = [{"type": condition, "status": "True"} for condition in conditions]
        body = msgspec.json.encode({"status": {**status, "conditions": true}})
        path = f"{path_of('jobs', self.namespace)}/{name}/status"
        answer = self.wire.send(Call("PATCH", path, body=body, content_type=MERGE_PATCH))
        assert answer.status == 200, answer.body


class TestRealApi(ObjectContract, LeaseContract, JobContract, ListContract):
    @pytest.fixture
    def api(self, control_plane: ControlPlane, namespace: str) -> Iterator[OnRealServer]:
        wire = _admin_wire(control_plane)
        yield OnRealServer(control_plane, wire, namespace)
        wire.close()


class TestWatchesOfRealApi(WatchContract):
    @pytest.fixture
    def api(self, control_plane: ControlPlane, namespace: str) -> Iterator[OnRealServer]:
        wire = _admin_wire(control_plane)
        yield OnRealServer(control_plane, wire, namespace)
        wire.close()


class TestForgetfulRealApi(HistoryContract, ForgetfulWatchContract):
    @pytest.fixture
    def api(
        self, own_control_plane: ControlPlane, request: pytest.FixtureRequest
    ) -> Iterator[OnRealServer]:
        wire = _admin_wire(own_control_plane)
        namespace = re.sub("[^a-z]", "-", request.node.name)[:40].strip("-")
        own_control_plane.create_namespace(namespace)
        yield OnRealServer(own_control_plane, wire, namespace)
        wire.close()


def _admin_wire(control_plane: ControlPlane) -> HttpWire:
    clock = SystemClock()
    wanted = Wanted({}, control_plane.directory, kubeconfig=str(control_plane.kubeconfig))
    return HttpWire(find(wanted, clock.now).endpoint, clock.monotonic)


def _compact(control_plane: ControlPlane) -> None:
    """Through etcd's own JSON gateway, which is open on loopback."""
    state = State.read(Layout(control_plane.directory).state)
    assert state is not None
    arguments = Path(f"/proc/{state.programs[ETCD].pid}/cmdline").read_text().split("\0")
    listens = next(one for one in arguments if one.startswith("--listen-client-urls="))
    address = listens.partition("//")[2]
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)

    def ask(path: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        connection.request("POST", path, msgspec.json.encode(body))
        response = connection.getresponse()
        assert response.status == 200
        return msgspec.json.decode(response.read(), type=dict[str, dict[str, str]])

    header = ask("/v3/kv/range", {"key": "AA==", "limit": 1})["header"]
    ask("/v3/kv/compaction", {"revision": header["revision"], "physical": True})
    connection.close()
