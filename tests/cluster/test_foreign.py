"""Foreign submitters and the recorder, on a real API server."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blastyard.domain.clock import SystemClock
from blastyard.kube.wire import Answer, Call
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.foreign.api import Api, Forbidden
from blastyard.testing.foreign.count import count, list_jobs
from blastyard.testing.foreign.kind import DASHBOARD, UPSTREAM, Pace, Rules, Setup
from blastyard.testing.foreign.lease import Acquired, Busy, GateA
from blastyard.testing.foreign.submitter import ForeignSubmitter
from blastyard.testing.foreign.time import RealTime
from blastyard.testing.plain_wire import Access, PlainWire
from blastyard.testing.proxy import FaultProxy
from blastyard.testing.proxy_fault import LostAnswer, Rule, html, too_many, unavailable
from blastyard.testing.recorded.deed import changes_of, read_deeds
from blastyard.testing.recorded.recorder import Recorder
from blastyard.testing.recorded.verdict import check

CLOCK = SystemClock()
FAST = Pace(scale=0.02, life=(5.0, 20.0), merge=(1.0, 5.0))
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/elb-blast-submit-{}"


def now() -> float:
    return CLOCK.now().timestamp()


@pytest.fixture
def kubeconfig(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    return control_plane.write_kubeconfig(path, control_plane.admin_token, namespace)


@contextlib.contextmanager
def wire_of(kubeconfig: Path) -> Iterator[PlainWire]:
    wire = PlainWire(Access.read(kubeconfig), "foreign-test")
    try:
        yield wire
    finally:
        wire.close()


@pytest.fixture
def wire(kubeconfig: Path) -> Iterator[PlainWire]:
    with wire_of(kubeconfig) as connected:
        yield connected


@pytest.fixture
def api(wire: PlainWire, namespace: str) -> Api:
    return Api(wire, namespace)


def a_gate(api: Api, *, ahead: float = 0.0, rules: Rules | None = None) -> GateA:
    return GateA(api, rules or Rules(), lambda: now() + ahead)


# -- the gates ---------------------------------------------------------------------------------


def test_the_lease_is_made_taken_cleared_and_taken_again(api: Api) -> None:
    first, second = a_gate(api), a_gate(api)
    taken = first.acquire("dash-1")
    assert isinstance(taken, Acquired)
    assert second.acquire("svc-1") == Busy("dash-1")
    assert isinstance(first.acquire("dash-1"), Acquired)
    assert second.release("svc-1", lambda _: None) is None
    assert first.release("dash-1", lambda _: None)
    assert isinstance(second.acquire("svc-1"), Acquired)


def test_a_put_takes_off_what_others_had_put_on_the_lease(
    api: Api, control_plane: ControlPlane, namespace: str
) -> None:
    gate = a_gate(api)
    gate.acquire("dash-1")
    gate.release("dash-1", lambda _: None)
    path = LEASES.format(namespace, namespace)
    found = control_plane.admin.send("GET", path).document
    found["metadata"]["labels"] = {"kept": "never"}
    control_plane.admin.send("PUT", path, found).expect(200)
    gate.acquire("dash-2")
    assert "labels" not in control_plane.admin.send("GET", path).document["metadata"]


def test_a_clock_that_is_61_seconds_ahead_steals_no_lease_of_900_seconds(api: Api) -> None:
    a_gate(api).acquire("dash-1")
    assert a_gate(api, ahead=61.0).acquire("svc-1") == Busy("dash-1")
    assert isinstance(a_gate(api, ahead=932.0).acquire("svc-1"), Acquired)


class Overtaken:
    """A wire on which somebody else is faster with the first write."""

    def __init__(self, wire: PlainWire, faster: Callable[[], object]) -> None:
        self._wire = wire
        self._faster: Callable[[], object] | None = faster
        self.stream = wire.stream
        self.close = wire.close

    def send(self, call: Call) -> Answer:
        faster = self._faster
        if call.method == "POST" and faster is not None:
            self._faster = None
            faster()
        return self._wire.send(call)


def test_one_of_two_that_race_is_busy(wire: PlainWire, api: Api, namespace: str) -> None:
    slower = Overtaken(wire, lambda: a_gate(api).acquire("svc-1"))
    assert a_gate(Api(slower, namespace)).acquire("dash-1") == Busy("svc-1")


def test_lost_answers_and_bad_weather_come_right(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    with FaultProxy.before(control_plane) as proxy:
        path = tmp_path / "through-proxy"
        proxy.write_kubeconfig(path, control_plane.admin_token, namespace)
        with wire_of(path) as wire:
            gate = a_gate(Api(wire, namespace))
            proxy.plan.add(Rule(LostAnswer(), "POST", "/leases"))
            assert isinstance(gate.acquire("dash-1"), Acquired)
            for fault in (too_many(0), html(), unavailable(), LostAnswer()):
                proxy.plan.add(Rule(fault, "PUT", "/leases/"))
            assert gate.release("dash-1", lambda _: None) is None  # it had been cleared unheard
            assert isinstance(gate.acquire("dash-2"), Acquired)


def test_a_credential_without_rights_is_loud(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    control_plane.create_account(namespace, "nobody", [])
    token = control_plane.token_for(namespace, "nobody")
    path = control_plane.write_kubeconfig(tmp_path / "nobody", token, namespace)
    with wire_of(path) as wire, pytest.raises(Forbidden, match=namespace):
        a_gate(Api(wire, namespace)).acquire("dash-1")


# -- whole searches ----------------------------------------------------------------------------


def told_by(wire: PlainWire, setup: Setup) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    ForeignSubmitter(setup, wire, RealTime(), told.append).run()
    return told


def ended(told: list[dict[str, Any]]) -> list[object]:
    return [deed["outcome"] for deed in told if deed["what"] == "ended"]


def test_the_objects_of_a_search_come_and_go_as_its_labels_say(
    wire: PlainWire, api: Api, namespace: str
) -> None:
    seen: list[frozenset[str]] = []

    def emit(deed: dict[str, object]) -> None:
        if deed["what"] in ("submitted", "ended"):
            seen.append(count(list_jobs(api), now(), 300.0).active)

    setup = Setup("dash", namespace, DASHBOARD, pace=FAST)
    ForeignSubmitter(setup, wire, RealTime(), emit).run()
    assert len(seen[0]) == 1
    assert seen[1] == frozenset()
    apps = sorted(job["metadata"]["labels"]["app"] for job in list_jobs(api))
    assert apps == ["blast", "blast", "finalizer", "submit"]


def test_a_cancelled_search_leaves_a_finalizer_that_becomes_a_phantom(
    wire: PlainWire, api: Api, namespace: str
) -> None:
    setup = Setup("dash", namespace, DASHBOARD, cancel_every=1, pace=FAST)
    assert ended(told_by(wire, setup)) == ["cancelled"]
    jobs = list_jobs(api)
    assert [job["metadata"]["labels"]["app"] for job in jobs] == ["finalizer"]
    assert len(count(jobs, now(), 300.0).active) == 1
    assert len(count(jobs, now() + 301.0, 300.0).phantoms) == 1


def test_a_second_original_command_in_the_namespace_fails(wire: PlainWire, namespace: str) -> None:
    pace = replace(FAST, life=(20.0, 20.0))
    setup = Setup("upstream", namespace, UPSTREAM, searches=2, pace=pace)
    assert sorted(map(str, ended(told_by(wire, setup)))) == ["completed", "failed"]


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(kubeconfig: Path) -> Iterator[Start]:
    running: list[subprocess.Popen[str]] = []

    def begin(kind: str, source: str, *more: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "blastyard.testing.foreign", "--kubeconfig", kubeconfig]
        command += ["--kind", kind, "--source", source, "--scale", "0.02"]
        command += ["--life", "5", "20", "--merge", "1", "5", *map(str, more)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def said_by(programs: list[subprocess.Popen[str]]) -> list[str]:
    """The lines of programs that end by themselves."""
    return [line for one in programs for line in one.communicate(timeout=120)[0].splitlines()]


def test_programs_of_both_kinds_beside_each_other_keep_the_contract(
    wire: PlainWire, namespace: str, start: Start, tmp_path: Path
) -> None:
    with Recorder(wire, namespace, tmp_path / "recording") as recorder:
        programs = [
            start("dashboard", "dash-a", "--searches", 4, "--seed", 1),
            start("dashboard", "dash-b", "--searches", 4, "--seed", 2, "--clock-error", 61),
            start("service", "svc-a", "--searches", 4, "--seed", 3),
            start("service", "svc-b", "--searches", 4, "--seed", 4, "--clock-error", -600),
        ]
        lines = said_by(programs)
        recorder.reach()
    verdict = check(namespace, changes_of(tmp_path / "recording"), read_deeds(lines))
    assert verdict.violations == (), str(verdict)
    assert verdict.is_whole
    assert [program.returncode for program in programs] == [0, 0, 0, 0]
    expected = {"foreign admissions": 16, "ended": 16, "submissions": 16, "takeovers": 0}
    assert {name: verdict.counts.get(name, 0) for name in expected} == expected


def test_what_one_makes_that_skips_gate_a_is_counted_apart(
    wire: PlainWire, namespace: str, start: Start, tmp_path: Path
) -> None:
    with Recorder(wire, namespace, tmp_path / "recording") as recorder:
        programs = [
            start("rude", "rude", "--searches", 4),
            start("service", "svc", "--searches", 2),
        ]
        lines = said_by(programs)
        recorder.reach()
    verdict = check(namespace, changes_of(tmp_path / "recording"), read_deeds(lines))
    assert verdict.violations == (), str(verdict)
    assert verdict.counts["made past Gate A"] == 4 * 2


def test_a_killed_program_leaves_the_lease_and_its_jobs(
    wire: PlainWire, api: Api, namespace: str, start: Start
) -> None:
    program = start("dashboard", "dash", "--life", 1000, 1000)
    assert program.stdout is not None
    for line in program.stdout:
        if json.loads(line)["what"] == "submitting":
            program.kill()
            break
    assert isinstance(a_gate(api).acquire("svc-1"), Busy)


# -- the recorder ------------------------------------------------------------------------------


def leases(recording: Path) -> list[str]:
    return [
        change.document["spec"]["holderIdentity"]
        for change in changes_of(recording)
        if change.kind == "Lease"
    ]


def test_every_version_of_an_object_is_recorded_in_order(
    wire: PlainWire, api: Api, namespace: str, tmp_path: Path
) -> None:
    gate = a_gate(api)
    with Recorder(wire, namespace, tmp_path / "recording") as recorder:
        for number in range(20):
            gate.acquire(f"dash-{number}")
            gate.release(f"dash-{number}", lambda _: None)
        recorder.reach()
    expected = [text for number in range(20) for text in (f"dash-{number}", "")]
    assert leases(tmp_path / "recording") == expected
    versions = [change.version for change in changes_of(tmp_path / "recording")]
    assert versions == sorted(versions)


def test_a_deletion_is_recorded_after_what_came_before(
    wire: PlainWire, api: Api, namespace: str, tmp_path: Path
) -> None:
    with Recorder(wire, namespace, tmp_path / "recording") as recorder:
        a_gate(api).acquire("dash-1")
        wire.send(Call("DELETE", LEASES.format(namespace, namespace)))
        recorder.reach()
    whats = [change.what for change in changes_of(tmp_path / "recording") if change.kind == "Lease"]
    assert whats == ["ADDED", "DELETED"]


def test_a_cut_network_leaves_no_gap_in_a_recording(
    control_plane: ControlPlane, api: Api, namespace: str, tmp_path: Path
) -> None:
    gate = a_gate(api)
    with FaultProxy.before(control_plane) as proxy:
        path = tmp_path / "through-proxy"
        proxy.write_kubeconfig(path, control_plane.admin_token, namespace)
        with (
            wire_of(path) as recorders,
            Recorder(recorders, namespace, tmp_path / "recording") as recorder,
        ):
            gate.acquire("dash-1")
            proxy.cut()
            gate.release("dash-1", lambda _: None)
            gate.acquire("dash-2")
            proxy.heal()
            recorder.reach()
    assert leases(tmp_path / "recording") == ["dash-1", "", "dash-2"]
    assert "GAP" not in {change.what for change in changes_of(tmp_path / "recording")}


def test_where_the_server_has_forgotten_the_place_a_gap_is_recorded(
    control_plane: ControlPlane, api: Api, namespace: str, tmp_path: Path
) -> None:
    gate = a_gate(api)
    with FaultProxy.before(control_plane) as proxy:
        path = tmp_path / "through-proxy"
        proxy.write_kubeconfig(path, control_plane.admin_token, namespace)
        with (
            wire_of(path) as recorders,
            Recorder(recorders, namespace, tmp_path / "recording") as recorder,
        ):
            gate.acquire("dash-1")
            recorder.reach()
            expired = proxy.plan.add(Rule(GONE, "GET", "/leases.*watch=", times=1))
            proxy.cut()
            gate.release("dash-1", lambda _: None)
            gate.acquire("dash-2")
            proxy.heal()
            expired.wait()
            recorder.reach()
    changes = [change for change in changes_of(tmp_path / "recording") if change.kind == "Lease"]
    assert [change.what for change in changes] == ["ADDED", "GAP", "MODIFIED"]
    assert [change.bridged for change in changes] == [False, False, True]


GONE = unavailable(410)
