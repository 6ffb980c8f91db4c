"""A search that is cancelled, by its user or by others, wherever it is."""

from __future__ import annotations

import pytest
from remote_stage import Remote

from blastyard.domain.job import State
from blastyard.testing.elastic_blast.plan import Run


def require_cancelled(remote: Remote, search_id: str) -> None:
    """It ended so, for good; nothing of it is left, and its slot is another's."""
    search = remote.ended(search_id)
    assert search.state is State.CANCELLED
    assert remote.live(search_id) == set()
    remote.plan_well()
    other = remote.submit()
    with remote.ending():
        assert remote.ended(other).state is State.COMPLETED
    assert remote.search(search_id).state is State.CANCELLED


def test_one_that_waits_its_turn(remote: Remote) -> None:
    service = remote.start()
    first = remote.submit_to(service)
    remote.reaches(first, State.RUNNING)
    search_id = remote.submit_to(service)
    remote.installation.yard.searches.cancel(search_id)
    remote.finish(first)

    require_cancelled(remote, search_id)
    assert remote.runs(search_id) == []


@pytest.mark.parametrize("line", ["begun", "blast 0 made", "finalizer made"])
def test_one_that_is_being_submitted(remote: Remote, line: str) -> None:
    """Faults B11 and R8."""
    remote.held_at(line)
    search_id = remote.submit_to(remote.start())
    remote.begun(search_id, line)
    remote.installation.yard.searches.cancel(search_id)

    require_cancelled(remote, search_id)


def test_one_that_was_being_submitted_by_a_process_that_died(remote: Remote) -> None:
    remote.held_at("blast 0 made")
    doomed = remote.start()
    search_id = remote.submit_to(doomed)
    remote.begun(search_id, "blast 0 made")
    doomed.kill()
    remote.installation.yard.searches.cancel(search_id)
    remote.start()

    require_cancelled(remote, search_id)


def test_one_that_waits_to_be_submitted_again(remote: Remote) -> None:
    remote.plan(Run(finalizer_refused=True))
    search_id = remote.submit_to(remote.start())
    remote.installation.until(lambda: remote.codes(search_id), "a setback")
    remote.installation.yard.searches.cancel(search_id)

    require_cancelled(remote, search_id)


def test_one_that_runs(remote: Remote) -> None:
    """Faults B11 and R8."""
    search_id = remote.submit_to(remote.start())
    remote.reaches(search_id, State.RUNNING)
    remote.installation.yard.searches.cancel(search_id)

    require_cancelled(remote, search_id)


def test_one_that_runs_and_whose_process_is_dead(remote: Remote) -> None:
    doomed = remote.start()
    search_id = remote.submit_to(doomed)
    remote.reaches(search_id, State.RUNNING)
    doomed.kill()
    remote.installation.yard.searches.cancel(search_id)
    remote.start()

    require_cancelled(remote, search_id)


def test_one_whose_jobs_a_peer_deletes(remote: Remote) -> None:
    """Peers delete what computes, and leave the finalizer."""
    remote.plan(Run())
    search_id = remote.submit_to(remote.start())
    running = remote.reaches(search_id, State.RUNNING)
    assert running.remote is not None
    remote.installation.until(lambda: is_marked(remote, search_id), "its companion")
    remote.delete(running.remote.id, "blast", "submit")

    require_cancelled(remote, search_id)


def test_one_whose_jobs_are_all_deleted_by_hand(remote: Remote) -> None:
    remote.plan(Run())
    search_id = remote.submit_to(remote.start())
    running = remote.reaches(search_id, State.RUNNING)
    assert running.remote is not None
    remote.installation.until(lambda: is_marked(remote, search_id), "its companion")
    remote.delete(running.remote.id, "blast", "submit", "finalizer")

    require_cancelled(remote, search_id)


def is_marked(remote: Remote, search_id: str) -> bool:
    hold = remote.installation.yard.gate.ledger().holds.get(search_id)
    return hold is not None and hold.marked
