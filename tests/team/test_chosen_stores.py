"""The same search over every store and every place of admission that can be chosen."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from team_stage import Backend, Team

BACKENDS = [
    Backend("sqlite", "redis"),
    Backend("postgresql", ""),
    Backend("postgresql", "redis"),
    Backend("azure-tables", "redis"),
]


@pytest.fixture(params=BACKENDS, ids=lambda one: f"{one.store}-{one.admission or 'own'}")
def chosen(request: pytest.FixtureRequest, team: Callable[[Backend], Team]) -> Team:
    return team(request.param)


def test_a_search_finds_its_hits(chosen: Team) -> None:
    assert chosen.search().count("\n") > 5
    assert [one["state"] for one in chosen.json("list")["searches"]] == ["completed"]


def test_a_service_runs_what_another_process_submits(chosen: Team) -> None:
    with chosen.service():
        ids = chosen.run("submit", "-p", "blastn", "-d", "genes", "-q", str(chosen.query)).split()
        chosen.run("wait", *ids[-1:])
        shown = chosen.json("status", ids[-1])

    assert shown["state"] == "completed"
