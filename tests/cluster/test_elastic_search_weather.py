"""Searches in the cluster whose API server stands still, and commands of a person."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from gate_stage import Lab
from remote_stage import ANSWER, PACE, Remote

from blastyard.domain.job import State
from blastyard.settings import caller_environment
from blastyard.testing.proxy import FaultProxy


@pytest.fixture
def through(remote: Remote, lab: Lab) -> Iterator[FaultProxy]:
    """A proxy through which the processes of the installation reach the API server."""
    with FaultProxy.before(lab.plane) as proxy:
        path = remote.elastic.folder / "through-proxy"
        proxy.write_kubeconfig(path, lab.plane.admin_token, lab.namespace)
        remote.installation.environment["KUBECONFIG"] = str(path)
        yield proxy


@pytest.mark.parametrize("line", ["begun", "blast 0 made", "finalizer made"])
def test_an_api_server_that_stands_still_while_a_search_is_submitted(
    remote: Remote, through: FaultProxy, line: str
) -> None:
    """Its command is ended before anybody else may have its turn; what it made is undone, or goes
    on when it was complete, and the search ends well."""
    go = remote.held_at(line)
    search_id = remote.submit_to(remote.start())
    remote.begun(search_id, line)
    through.pause()
    remote.installation.until(remote.is_over_for(PACE["takeover"] + 1.0), "the end of its turn")
    through.resume()
    remote.plan_well()
    go()

    with remote.ending():
        search = remote.ended(search_id)
    assert search.state is State.COMPLETED
    assert remote.result(search_id) == ANSWER
    assert remote.most[search_id] == 1


def test_an_api_server_that_stands_still_while_a_search_runs(
    remote: Remote, through: FaultProxy
) -> None:
    search_id = remote.submit_to(remote.start())
    remote.reaches(search_id, State.RUNNING)
    through.pause()
    remote.finish(search_id)
    remote.installation.until(remote.is_over_for(PACE["lapse"] + 1.0), "a long silence")
    assert remote.search(search_id).state is State.RUNNING
    through.resume()

    assert remote.ended(search_id).state is State.COMPLETED
    assert len(remote.runs(search_id)) == 1


def test_a_person_searches_with_one_command(remote: Remote, tmp_path: Path) -> None:
    output = tmp_path / "hits.tsv"
    words = ["search", "-p", "blastn", "-d", "genes", "-q", str(remote.query), "-o", str(output)]
    with remote.ending():
        done = subprocess.run(
            [sys.executable, "-m", "blastyard", *words],
            env={**caller_environment(), **remote.installation.environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert done.returncode == 0, done.stderr
    assert output.read_text() == ANSWER
