"""`/metrics` of a running service."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from blastyard.metrics.registry import CONTENT_TYPE
from blastyard.metrics.table import ALL

CLUSTER = {
    "blastyard_api_requests_total",
    "blastyard_api_request_seconds",
    "blastyard_watch_restarts_total",
    "blastyard_marker_requests_total",
}


def scrape(client: Any) -> dict[tuple[str, tuple[str, ...]], float]:
    """Samples by name and the values of their labels."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == CONTENT_TYPE
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_a_search_that_ran_is_in_the_numbers(front: Any, gene: str) -> None:
    before = scrape(front.client)
    front.ended(front.submit(gene)["id"])
    after = scrape(front.client)

    def grown(name: str, *labels: str) -> float:
        return after[name, labels] - before.get((name, labels), 0.0)

    assert grown("blastyard_grants_total", "new") == 1
    assert grown("blastyard_wait_seconds_count") == 1
    assert grown("blastyard_lease_events_total", "acquired") >= 1
    assert grown("blastyard_lease_held_seconds_count") >= 1
    assert after["blastyard_admission_readable", ()] == 1


def test_searches_that_wait_are_shown_by_reason(idle: Any, gene: str) -> None:
    for number in range(2):
        idle.submit(gene, title=f"t{number}")

    shown = scrape(idle.client)

    reasons = {
        labels[0]: value
        for (name, labels), value in shown.items()
        if name == "blastyard_waiting_searches"
    }
    assert sum(reasons.values()) == 2
    assert reasons["turn"] == 2
    assert shown["blastyard_ceiling", ()] == 3


def test_one_machine_shows_every_metric_but_those_of_a_cluster(front: Any) -> None:
    text = front.client.get("/metrics").text
    missing = {each.name for each in ALL if f"\n{each.name}" not in f"\n{text}"}

    assert missing == CLUSTER


def test_asking_for_metrics_writes_nothing(idle: Any, gene: str) -> None:
    idle.submit(gene)
    ledger = idle.yard.documents.read("ledger").version
    lease = idle.yard.documents.read("lease").version

    for _ in range(3):
        scrape(idle.client)

    assert idle.yard.documents.read("ledger").version == ledger
    assert idle.yard.documents.read("lease").version == lease


def test_another_site_is_not_told_the_metrics(front: Any) -> None:
    answer = front.client.get("/metrics", headers={"host": "evil.example"})

    assert answer.status_code == 403


def test_a_service_logs_its_grants_as_json_when_asked_to(
    serve: Callable[[], Any], environment: dict[str, str], gene: str, tmp_path: Any
) -> None:
    environment["BLASTYARD_LOG_FORMAT"] = "json"
    with serve() as service, httpx.Client(base_url=service.address, timeout=60) as client:
        asked = {"program": "blastn", "database": "genes", "query": gene}
        search = client.post("/api/v1/searches", json=asked).json()["id"]
        with client.stream("GET", f"/api/v1/searches/{search}/stream") as stream:
            assert "event: end" in list(stream.iter_lines())
    lines = (tmp_path / "service.log").read_text().splitlines()
    told = [json.loads(line) for line in lines if not line.startswith("blastyard is served")]

    grants = [line for line in told if line.get("event") == "gate_grant"]
    assert [(line["search"], line["level"]) for line in grants] == [(search, "info")]
    assert all({"at", "level", "logger", "message"} <= line.keys() for line in told)
