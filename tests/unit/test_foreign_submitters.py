"""Foreign submitters at work, in leaping time."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from foreign_stage import LEASE, LEASES, NOW, Server, lease, said_of

from blastyard.kube.wire import Call
from blastyard.testing.foreign.kind import DASHBOARD, RUDE, SERVICE, UPSTREAM, Pace, Setup
from blastyard.testing.foreign.lease import stamp
from blastyard.testing.foreign.submitter import FAULTS, ForeignSubmitter


@pytest.fixture
def server() -> Server:
    return Server()


class LeapingTime:
    """Nobody waits: time leaps."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.waits: list[float] = []

    def now(self) -> float:
        return self._server.at

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self._server.at += seconds


def at_work(server: Server, setup: Setup) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    submitter = ForeignSubmitter(setup, server, LeapingTime(server), told.append)
    while not submitter.is_done and len(told) < 2000:
        submitter.step()
    return told


SETUP = Setup("dash", "lab", DASHBOARD, pace=Pace(life=(10.0, 10.0), merge=(5.0, 5.0)))


def deeds(told: list[dict[str, Any]]) -> list[str]:
    return [str(deed["what"]) for deed in told]


def test_one_search_goes_through_both_gates_and_to_its_end(server: Server) -> None:
    told = at_work(server, SETUP)
    assert deeds(told) == [
        "accepted",
        "acquired",
        "submitting",
        "submitted",
        "releasing",
        "released",
        "ended",
    ]
    assert told[-1]["outcome"] == "completed"
    assert told[-1]["at"] - told[3]["at"] == pytest.approx(15.0)
    created = [
        json.loads(call.body or b"")["metadata"]["name"]
        for call in server.calls
        if call.method == "POST" and call.path.endswith("/jobs")
    ]
    tail = told[0]["search"][-8:]
    assert created == [
        f"submit-{tail}",
        f"blast-{tail}-000",
        f"blast-{tail}-001",
        f"elb-finalizer-{tail}",
    ]
    assert server.objects[LEASE]["spec"]["holderIdentity"] == ""
    assert told[1]["holder"].startswith("dash-")


def test_the_lease_is_held_until_the_finalizer_is_there(server: Server) -> None:
    holders: list[str] = []

    def look(call: Call) -> None:
        if b'"app": "finalizer"' in (call.body or b"") and call.method == "POST":
            holders.append(server.objects[LEASE]["spec"]["holderIdentity"])

    server.after = look
    told = at_work(server, SETUP)
    assert holders == [told[1]["holder"]]


def test_at_the_ceiling_the_lease_is_let_go_and_it_comes_back_in_30_to_40_seconds(
    server: Server,
) -> None:
    told = at_work(server, replace(SETUP, searches=5))
    denied = [index for index, what in enumerate(deeds(told)) if what == "denied-capacity"]
    assert len(denied) == 2
    assert all(deeds(told)[index - 1] == "released" for index in denied)
    for index in denied:
        again = next(
            deed
            for deed in told[index:]
            if deed["what"] == "acquired" and deed["search"] == told[index]["search"]
        )
        assert 30.0 <= again["at"] - told[index]["at"] <= 60.0
    assert deeds(told).count("ended") == 5


@pytest.mark.parametrize(("kind", "least", "most"), [(DASHBOARD, 30, 40), (SERVICE, 4, 6)])
def test_each_kind_asks_again_at_its_own_pace(kind: Any, least: float, most: float) -> None:
    chance = random.Random(1)
    delays = [kind.retry(chance) for _ in range(200)]
    assert least <= min(delays) < least + 0.5
    assert most - 0.5 < max(delays) <= most


def test_a_busy_lease_is_asked_for_until_patience_ends(server: Server) -> None:
    lease(server, leaseDurationSeconds=10**6)
    told = at_work(server, replace(SETUP, pace=Pace(patience=300.0)))
    assert set(deeds(told)) == {"accepted", "denied-busy", "ended"}
    assert told[-1]["outcome"] == "gave-up"
    assert 300.0 <= told[-1]["at"] - told[1]["at"] <= 340.0


def test_trouble_is_tried_again_a_bounded_number_of_times_and_nothing_is_submitted(
    server: Server,
) -> None:
    server.before = lambda call: said_of(500, {}) if call.path.endswith("/jobs") else None
    told = at_work(server, SETUP)
    assert deeds(told).count("trouble") == FAULTS + 1
    assert "submitting" not in deeds(told)
    assert server.objects[LEASE]["spec"]["holderIdentity"] == ""
    assert told[-1]["outcome"] == "failed"


def test_a_cancel_leaves_the_finalizer(server: Server) -> None:
    told = at_work(server, replace(SETUP, cancel_every=1))
    assert told[-1]["outcome"] == "cancelled"
    left = [
        one["metadata"]["labels"]["app"] for path, one in server.objects.items() if "/jobs/" in path
    ]
    assert left == ["finalizer"]


def test_a_rude_one_takes_no_lease_and_counts_nothing(server: Server) -> None:
    lease(server)
    told = at_work(server, replace(SETUP, kind=RUDE, searches=5))
    assert deeds(told).count("submitted") == 5
    assert all(deed["gate"] is False for deed in told if deed["what"] == "submitted")
    assert server.objects[LEASE]["spec"]["holderIdentity"] == "other-1"


def test_the_original_command_has_no_ids_and_fails_beside_another(server: Server) -> None:
    told = at_work(server, replace(SETUP, kind=UPSTREAM, searches=2))
    assert [deed["outcome"] for deed in told if deed["what"] == "ended"] == ["failed", "completed"]
    assert [deed["code"] for deed in told if deed["what"] == "submitted"] == [0, 7]
    labels = [one["metadata"]["labels"] for one in server.jobs]
    assert all("elb-job-id" not in one for one in labels)
    assert "finalizer" not in {one["app"] for one in labels}


def test_its_clock_error_is_on_the_lease_and_not_in_what_it_tells(server: Server) -> None:
    written: list[str] = []

    def look(call: Call) -> None:
        if call.method == "POST" and call.path == LEASES:
            written.append(json.loads(call.body or b"")["spec"]["renewTime"])

    server.after = look
    told = at_work(server, replace(SETUP, clock_error=-600.0))
    assert written == [stamp(NOW - 600.0)]
    assert told[0]["at"] == NOW
