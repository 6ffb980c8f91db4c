"""What a blastyard counts and logs in a namespace of a real API server."""

from __future__ import annotations

import json
import logging

import pytest
from fault_jobs import make
from gate_stage import Lab
from waiting_stage import until

from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt
from blastyard.admission.outcome import Granted
from blastyard.admission.stay import Stay
from blastyard.admission.ticket import Wish
from blastyard.bootstrap.gate import OpenGate

MARKERS = "blastyard_marker_requests_total"
CALLS = "blastyard_api_requests_total"


@pytest.fixture
def place(lab: Lab) -> Lab:
    """A namespace with one run slot."""
    lab.environment["BLAST_MAX_RUN_CONCURRENCY"] = "1"
    return lab


def values(text: bytes) -> dict[str, float]:
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def shown(opened: OpenGate) -> dict[str, float]:
    return values(opened.instruments.exposition())


def requests(counted: dict[str, float]) -> float:
    """Those made so far, the heartbeat of watches excepted: a watch is one request."""
    return sum(count for name, count in counted.items() if name.startswith(CALLS))


def submit(gate: Gate, search: str) -> None:
    """Take a slot as somebody who submits does."""
    gate.publish([Wish(search, "ada", 1)])
    stay = gate.enter(search, 1)
    assert isinstance(stay, Stay), stay
    try:
        outcome = stay.reserve(Attempt(search, 1, gate.me.name))
        assert isinstance(outcome, Granted), outcome
        assert stay.confirm(search, outcome.fence)
    finally:
        gate.leave(stay)


def test_an_admission_is_counted_with_its_requests_and_markers(place: Lab) -> None:
    opened = place.installation("serve").opened

    submit(opened.gate, "job-1")

    counted = shown(opened)
    assert counted['blastyard_grants_total{kind="new"}'] == 1
    assert counted['blastyard_lease_events_total{event="released"}'] == 1
    assert counted[f'{MARKERS}{{deed="put",kind="stand-in"}}'] == 2
    made = counted[f'{CALLS}{{resource="jobs",status="201",verb="create"}}']
    assert made in (2, 3)  # the stand-in, and the pulse where lists are slow
    # the ledger: a ticket, the slot, its confirmation; it was restored first, having never been
    assert counted[f'{CALLS}{{resource="configmaps",status="200",verb="update"}}'] >= 3
    assert counted[f'{CALLS}{{resource="leases",status="200",verb="update"}}'] >= 1
    assert counted['blastyard_api_request_seconds_count{verb="create"}'] >= 2


def test_gauges_cost_no_request_while_the_namespace_is_followed(place: Lab) -> None:
    opened = place.installation("serve").opened
    submit(opened.gate, "job-1")
    opened.gate.publish([Wish("job-2", "ada", 1)])
    until(lambda: shown(opened).get('blastyard_waiting_searches{reason="capacity"}') == 1)

    before = requests(shown(opened))
    counted = [shown(opened) for _ in range(20)][-1]

    assert requests(counted) == before
    assert counted["blastyard_admission_readable"] == 1
    assert counted['blastyard_holds{state="submitted"}'] == 1
    assert counted["blastyard_occupied_slots"] == counted["blastyard_ceiling"] == 1
    assert counted["blastyard_watch_restarts_total"] == 0


def test_searches_of_others_are_counted_and_those_that_came_past_gate_a_are_told(
    place: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    opened = place.installation("serve").opened
    submit(opened.gate, "job-1")  # from now on there is a lease, and nobody holds it
    until(lambda: shown(opened)["blastyard_lease_held"] == 0)
    make(place, "walker", "submit", "finalizer")
    until(lambda: shown(opened)["blastyard_foreign_searches"] == 1)

    def told() -> bool:
        opened.tend()
        return shown(opened)["blastyard_passed_searches_total"] == 1

    until(told)

    assert shown(opened)["blastyard_seen_searches"] == 1
    passed = [each for each in caplog.messages if each.startswith("k8s_gate_passed")]
    assert len(passed) == 1
    assert "search=walker" in passed[0]


def test_exec_adds_what_it_counted_to_the_file_and_logs_as_json(place: Lab) -> None:
    path = place.folder / "blastyard.prom"
    opened = place.installation("serve").opened
    place.environment["BLASTYARD_METRICS_FILE"] = str(path)
    place.environment["BLASTYARD_LOG_FORMAT"] = "json"

    first = place.run("exec", "--search-id", "job-1", "--", "true")
    second = place.run("exec", "--search-id", "job-2", "--wait", "2s", "--", "true")

    assert first.returncode == 0, first.stderr
    assert second.returncode == 121, second.stderr  # job-1 keeps the only slot for a while
    counted = values(path.read_bytes())
    assert counted['blastyard_grants_total{kind="new"}'] == 1
    assert counted['blastyard_denials_total{rule="capacity"}'] == 1
    made = counted[f'{CALLS}{{resource="jobs",status="201",verb="create"}}']
    assert made in (2, 3)  # the stand-in, and the pulse where lists are slow
    assert not any(name.startswith("blastyard_waiting") for name in counted)
    lines = [json.loads(line) for line in second.stderr.splitlines() if line.startswith("{")]
    denied = [line for line in lines if line.get("event") == "k8s_gate_deny"]
    assert [(line["search"], line["rule"], line["holds"]) for line in denied] == [
        ("job-2", "capacity", 1)
    ]
    assert opened.gate.lately().holds.keys() == {"job-1"}
