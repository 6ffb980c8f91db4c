"""Kill -9 of the process that submits or follows a search, wherever it is.

Another process of the installation goes on with it; what was complete is never run again, and what
was not leaves nothing.
"""

from __future__ import annotations

import signal

import pytest
from remote_stage import ANSWER, Remote

from blastyard.domain.job import State
from blastyard.testing.checkpoint import Point, Strike

WRITES = {
    "update:": ("claimed", "submitting", "running", "collecting", "completed"),
    "swap:lease": ("inside Gate A", "outside again"),
    "swap:ledger": ("slot reserved", "submission confirmed", "slot free"),
}
"""What a process writes in the life of a search, in the order of each kind."""
POINTS = [
    pytest.param(Point(f"step:{when}:{what}", number), id=f"{when} {meaning}")
    for what, meanings in WRITES.items()
    for number, meaning in enumerate(meanings, start=1)
    for when in ("before", "after")
    if (when, meaning) in {("before", "submission confirmed"), ("before", "running")}
    or when == "after"
]
ONCE = {"submission confirmed", "outside again", "running", "collecting", "completed", "slot free"}
"""After these the submission is complete, and nobody may submit again."""


def require_good_end(remote: Remote, search_id: str) -> None:
    """It was completed once, with its own result, and nothing of it is left."""
    with remote.ending():
        search = remote.ended(search_id)
    assert search.state is State.COMPLETED, (search.error, remote.installation.scene())
    assert remote.result(search_id) == ANSWER
    assert remote.states(search_id).count(State.COMPLETED) == 1
    assert remote.most.get(search_id, 0) <= 1
    assert remote.live(search_id) == set()


@pytest.mark.parametrize("point", POINTS)
def test_a_search_survives_its_process_wherever_that_dies(
    remote: Remote, point: Point, request: pytest.FixtureRequest
) -> None:
    """Faults A11, R1 and R11."""
    search_id = remote.submit()
    doomed = remote.start(strike=Strike(point, signal.SIGKILL))
    with remote.ending():
        doomed.wait_gone()
    remote.start()

    require_good_end(remote, search_id)
    if any(f"after {word}" in request.node.name for word in ONCE):
        assert remote.completions(search_id) == 1


@pytest.mark.parametrize(
    "line", ["begun", "scripts written", "submit made", "blast 0 made", "finalizer made"]
)
def test_a_command_that_loses_its_process_is_undone_and_made_anew(
    remote: Remote, line: str
) -> None:
    """Faults B1 and R1."""
    remote.held_at(line)
    search_id = remote.submit()
    doomed = remote.start()
    remote.begun(search_id, line)
    doomed.kill()
    remote.plan_well()
    remote.start()

    require_good_end(remote, search_id)
    assert remote.completions(search_id) == (2 if line == "finalizer made" else 1)
    assert remote.codes(search_id) == ["terminal_exec_unavailable"]


def test_a_search_that_runs_is_followed_by_another_process_and_not_run_again(
    remote: Remote,
) -> None:
    doomed = remote.start()
    search_id = remote.submit_to(doomed)
    remote.reaches(search_id, State.RUNNING)
    doomed.kill()
    heir = remote.start()
    gate = remote.installation.yard.gate

    def is_inherited() -> bool:
        hold = gate.ledger().holds[search_id]
        return {hold.submitter, remote.search(search_id).runner} == {remote.full_name(heir)}

    remote.installation.until(is_inherited, "an heir")
    require_good_end(remote, search_id)
    assert len(remote.runs(search_id)) == 1


def test_a_slot_falls_free_though_every_process_is_dead(remote: Remote) -> None:
    """What ends in the cluster meanwhile is collected by whoever comes."""
    doomed = remote.start()
    search_id = remote.submit_to(doomed)
    remote.reaches(search_id, State.RUNNING)
    doomed.kill()
    remote.finish(search_id)
    other = remote.submit()
    remote.start()

    require_good_end(remote, search_id)
    require_good_end(remote, other)
    assert len(remote.runs(search_id)) == 1


def test_a_process_that_ends_in_order_leaves_its_search_running(remote: Remote) -> None:
    leaving = remote.start()
    search_id = remote.submit_to(leaving)
    remote.reaches(search_id, State.RUNNING)
    leaving.end()

    assert remote.search(search_id).state is State.RUNNING
    assert remote.live(search_id) != set()
    remote.start()
    require_good_end(remote, search_id)
    assert len(remote.runs(search_id)) == 1
