"""What a search comes to by the way in which its submit command ends."""

from __future__ import annotations

from datetime import timedelta

import pytest
from remote_stage import ANSWER, PACE, Remote

from blastyard.domain.job import Phase, State
from blastyard.domain.search import Search
from blastyard.testing.elastic_blast.plan import Run

RETRY = "retry_after_seconds"
SETTLE = timedelta(seconds=PACE["settle"])


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (Run(exit_code=1), "submit_input"),
        (Run(exit_code=2), "submit_database"),
        (Run(exit_code=3, answer="none"), "submit_failed"),
        (Run(exit_code=4), "submit_memory"),
        (Run(exit_code=6), "submit_permission"),
        (Run(exit_code=7), "submit_dependency"),
        (Run(exit_code=7, die_at="blast 0 made", death="error"), "submit_dependency"),
    ],
)
def test_a_command_that_refuses_a_search_ends_it_with_the_cause(
    remote: Remote, run: Run, code: str
) -> None:
    remote.plan(run)
    search_id = remote.submit_to(remote.start())

    search = remote.ended(search_id)

    assert search.state is State.FAILED
    assert search.error is not None
    assert search.error.code == code
    assert search.error.next_step
    assert len(remote.runs(search_id)) == 1
    assert remote.live(search_id) == set()


@pytest.mark.parametrize(
    ("run", "code", "phase"),
    [
        (Run(exit_code=10, retry_after=4), "capacity_timeout", Phase.WAITING_FOR_CAPACITY),
        (Run(exit_code=8, retry_after=4), "submit_failed", Phase.WAITING_FOR_SUBMIT_SLOT),
        (
            Run(finalizer_refused=True, retry_after=4),
            "submit_failed",
            Phase.WAITING_FOR_SUBMIT_SLOT,
        ),
        (
            Run(die_at="blast 0 made", death="kill"),
            "terminal_exec_unavailable",
            Phase.WAITING_FOR_SUBMIT_SLOT,
        ),
        (
            Run(die_at="finalizer made", death="int"),
            "terminal_exec_unavailable",
            Phase.WAITING_FOR_SUBMIT_SLOT,
        ),
    ],
)
def test_a_command_that_cannot_submit_now_is_run_again_when_it_is_time(
    remote: Remote, run: Run, code: str, phase: Phase
) -> None:
    remote.plan(run)
    search_id = remote.submit_to(remote.start())

    def is_back() -> Search | None:
        search = remote.search(search_id)
        return search if search.state is State.QUEUED and search.not_before_at else None

    search = remote.installation.until(is_back, "a setback")
    remote.plan_well()

    assert search.phase == phase
    assert remote.codes(search_id) == [code]
    assert remote.live(search_id) == set()
    assert search.not_before_at is not None
    set_back_at = remote.installation.yard.store.events(search_id)[-1].at
    assert set_back_at is not None
    assert search.not_before_at - set_back_at > SETTLE - timedelta(seconds=0.1)
    if run.retry_after:
        waits = float(remote.installation.yard.store.events(search_id)[-1].details[RETRY])
        assert waits in (4.0, 15.0)
        with remote.ending():
            ended = remote.ended(search_id)
        assert ended.state is State.COMPLETED
        assert remote.result(search_id) == ANSWER
        events = remote.installation.yard.store.events(search_id)
        claimed = [event.at for event in events if event.state is State.ADMITTING and event.at]
        assert claimed[-1] >= search.not_before_at


def test_a_command_that_is_not_there_is_said_before_it_has_a_turn(remote: Remote) -> None:
    (remote.elastic.bin / "elastic-blast").unlink()
    search_id = remote.submit_to(remote.start())

    search = remote.ended(search_id)

    assert search.error is not None
    assert search.error.code == "dependency_missing"
    assert State.SUBMITTING not in remote.states(search_id)


def test_a_job_that_fails_for_good_ends_the_search_and_all_of_it(remote: Remote) -> None:
    """Fault R2. A pod that fails before decides nothing."""
    search_id = remote.submit_to(remote.start())
    running = remote.reaches(search_id, State.RUNNING)
    assert running.remote is not None
    remote.elastic.cluster.fail_pod(running.remote.id)
    remote.elastic.cluster.fail(running.remote.id)

    search = remote.ended(search_id)

    assert search.state is State.FAILED
    assert search.error is not None
    assert search.error.code == "blast_failed"
    assert remote.live(search_id) == set()


def test_a_batch_without_a_result_is_no_success(remote: Remote) -> None:
    """Fault R3."""
    remote.plan(Run(results=True, lost=(1,)))
    search_id = remote.submit_to(remote.start())
    with remote.ending():
        search = remote.ended(search_id)

    assert search.state is State.FAILED
    assert search.error is not None
    assert search.error.code == "result_incomplete"
