"""Web replicas that run nothing, and workers that are told of searches by the broker."""

from __future__ import annotations

import signal
from collections.abc import Callable

import httpx
import pytest
from team_stage import Backend, Team, until

from blastyard.testing.redis_server import RedisServer


@pytest.fixture
def crew(team: Callable[[Backend], Team], redis_server: RedisServer) -> Team:
    """PostgreSQL for all that is kept, Redis for messages only."""
    made = team(Backend("postgresql", ""))
    made.environment["BLASTYARD_REDIS_URL"] = redis_server.url
    return made


def submitted(crew: Team, address: str) -> str:
    asked = {"program": "blastn", "database": "genes", "query": crew.query.read_text()}
    answer = httpx.post(f"{address}/api/v1/searches", json=asked, timeout=30)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def state(crew: Team, search: str) -> str:
    return str(crew.json("status", search)["state"])


def test_a_worker_runs_what_a_replica_accepted(crew: Team) -> None:
    with crew.replica() as one, crew.replica() as other, crew.worker():
        searches = [submitted(crew, each.address) for each in (one, other)]
        for search in searches:
            until(lambda search=search: state(crew, search) == "completed")
        results = httpx.get(f"{other.address}/api/v1/searches/{searches[0]}/results", timeout=30)

    assert results.status_code == 200
    assert results.text.count("\n") > 5


def test_a_search_that_no_message_tells_of_is_found(crew: Team) -> None:
    """Fault Q13: the broker was not there when it was submitted."""
    broker = crew.environment["BLASTYARD_REDIS_URL"]
    crew.environment["BLASTYARD_REDIS_URL"] = "redis://127.0.0.1:1/0"
    with crew.replica() as replica:
        search = submitted(crew, replica.address)
        crew.environment["BLASTYARD_REDIS_URL"] = broker
        with crew.worker():
            until(lambda: state(crew, search) == "completed")


def test_what_a_killed_worker_looked_after_another_goes_on_with(crew: Team) -> None:
    """Fault R11."""
    crew.run("gate", "ceiling", "0")
    with crew.replica() as replica, crew.worker() as first:
        searches = [submitted(crew, replica.address) for _ in range(3)]
        until(lambda: all(crew.json("status", each)["phase"] for each in searches))
        first.end(signal.SIGKILL)
        with crew.worker():
            crew.run("gate", "ceiling", "3")
            for search in searches:
                until(lambda search=search: state(crew, search) == "completed")


def test_a_worker_that_is_stopped_hands_over_what_waits(crew: Team) -> None:
    crew.run("gate", "ceiling", "0")
    with crew.replica() as replica, crew.worker() as first, crew.worker():
        search = submitted(crew, replica.address)
        until(lambda: crew.json("status", search)["phase"])

        assert first.end(signal.SIGTERM) == 0

        crew.run("gate", "ceiling", "3")
        until(lambda: state(crew, search) == "completed")
