"""The submit command on a real API server: run, understood, found again, undone.

Beside the product stands a stand-in that does what the real command does there.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from elastic_stage import CLOCK, SOON, Elastic, alike, elsewhere, named

from blastyard.domain.errors import Misconfigured
from blastyard.engine.elastic_blast.objects import RIGHTS
from blastyard.engine.elastic_blast.sight import is_adoptable
from blastyard.engine.remote import (
    Absent,
    AtWork,
    Broken,
    Failed,
    NoAnswer,
    Over,
    Partial,
    Retryable,
    Submitted,
)
from blastyard.kube import rbac
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.elastic_blast.plan import Run

PATIENCE = timedelta(seconds=20)
ONE = named("5b0c3a52-3a35-4f6e-8a1b-6c2b7d4d9f10")
TWO = named("9e107d9d-372b-4b6d-a1d6-2c1a0d4b1f1e")


@pytest.fixture
def elastic(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Elastic]:
    made = Elastic(control_plane, namespace, tmp_path)
    yield made
    made.close()


# -- submitted ---------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["finalizer-last", "finalizer-first"])
@pytest.mark.parametrize("cold", [False, True])
def test_a_search_is_submitted_under_its_id_in_either_order(
    elastic: Elastic, order: str, cold: bool
) -> None:
    elastic.plan(Run(order=order, cold=cold))  # type: ignore[arg-type]

    assert elastic.submit(ONE) == Submitted((ONE.id,), "accepted")

    assert elastic.judged(ONE) == AtWork(0, 2)
    apps = {job["metadata"]["labels"]["app"] for job in elastic.cluster.jobs(ONE.id)}
    assert apps == {"submit", "blast", "finalizer"} | ({"setup"} if cold else set())


def test_it_goes_to_the_namespace_that_is_meant_and_leaves_our_kubeconfig_alone(
    elastic: Elastic,
) -> None:
    """The command rewrites the kubeconfig it finds, and forgets the namespace in it."""
    before = elastic.kubeconfig.read_bytes()

    elastic.submit(ONE)
    elastic.submit(TWO)

    assert elastic.kubeconfig.read_bytes() == before
    assert isinstance(elastic.judged(ONE), AtWork)
    assert isinstance(elastic.judged(TWO), AtWork)


@pytest.mark.parametrize("answer", ["crlf", "twice", "followed"])
def test_its_answer_is_found_however_it_is_written(elastic: Elastic, answer: str) -> None:
    elastic.plan(Run(answer=answer, progress=3000))  # type: ignore[arg-type]

    assert elastic.submit(ONE) == Submitted((ONE.id,), "accepted")


def test_without_an_answer_the_cluster_tells(elastic: Elastic) -> None:
    elastic.plan(Run(answer="none"))

    assert elastic.submit(ONE) == Submitted()
    assert isinstance(elastic.judged(ONE), AtWork)


def test_the_command_of_pypi_is_refused_before_it_has_its_turn(elastic: Elastic) -> None:
    elastic.plan(Run(able=False))

    with pytest.raises(Misconfigured, match="no --json and no --idempotency-key"):
        elastic.prepared(ONE)

    assert elastic.lines(ONE) == []


def test_any_other_command_may_submit(elastic: Elastic) -> None:
    wrapper = elastic.folder / "lab-submit"
    wrapper.write_text(
        f"#!/bin/sh\nexec {elastic.bin}/elastic-blast submit --cfg $2 --idempotency-key $1\n"
    )
    wrapper.chmod(0o755)
    runner = elastic.runner(f"{wrapper} {{id}} {{cfg}}")

    assert elastic.outcome(runner, elastic.prepared(ONE, runner)) == Submitted()
    assert isinstance(elastic.judged(ONE), AtWork)


# -- refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (1, "submit_input"),
        (2, "submit_database"),
        (4, "submit_memory"),
        (6, "submit_permission"),
        (7, "submit_dependency"),
        (255, "submit_failed"),
    ],
)
def test_an_error_with_an_answer_is_named(elastic: Elastic, code: int, expected: str) -> None:
    elastic.plan(Run(exit_code=code, message="the cause"))

    found = elastic.submit(ONE)

    assert isinstance(found, Failed)
    assert found.failure.code == expected
    assert found.failure.message.endswith("It said: the cause")
    assert elastic.judged(ONE) == Absent()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (1, "submit_input"),
        (2, "submit_database"),
        (3, "submit_failed"),
        (4, "submit_memory"),
        (6, "submit_permission"),
        (7, "submit_dependency"),
        (9, "terminal_exec_unavailable"),
        (255, "terminal_exec_unavailable"),
    ],
)
def test_an_error_without_an_answer_is_told_by_its_exit_code(
    elastic: Elastic, code: int, expected: str
) -> None:
    elastic.plan(Run(exit_code=code, message="the cause", answer="none"))

    found = elastic.submit(ONE)

    assert isinstance(found, Failed | NoAnswer)
    assert found.failure.code == expected
    assert "the cause" in found.failure.message


@pytest.mark.parametrize(
    ("code", "answer", "reason", "wait"),
    [
        (3, "last", "transient", 17.0),
        (8, "last", "transient", 17.0),
        (10, "last", "capacity", 17.0),
        (5, "none", "timeout", None),
        (8, "none", "cluster", None),
        (10, "none", "not_ready", None),
    ],
)
def test_a_command_that_asks_to_come_again_is_obeyed(
    elastic: Elastic, code: int, answer: str, reason: str, wait: float | None
) -> None:
    elastic.plan(Run(exit_code=code, retry_after=17, answer=answer))  # type: ignore[arg-type]

    found = elastic.submit(ONE)

    assert isinstance(found, Retryable)
    assert (found.reason, found.retry_after) == (reason, wait)


def test_an_api_server_that_is_down_is_worth_a_retry(elastic: Elastic, tmp_path: Path) -> None:
    path = elsewhere(elastic.kubeconfig, tmp_path / "elsewhere")
    runner = elastic.runner(target=elastic.target(path))

    found = elastic.outcome(runner, elastic.prepared(ONE, runner))

    assert isinstance(found, Retryable)
    assert (found.reason, found.retry_after) == ("transient", 15.0)


def test_two_live_ids_alike_in_their_tails_are_told_and_the_first_goes_on(
    elastic: Elastic,
) -> None:
    """Fault R9."""
    other = alike(ONE)
    elastic.cluster.make(other.id, "submit")
    elastic.cluster.make(other.id, "finalizer")
    before = elastic.uids(other)

    found = elastic.submit(ONE)

    assert isinstance(found, Failed)
    assert found.failure.code == "submit_name_taken"
    assert elastic.uids(other) == before
    assert elastic.judged(ONE) == Absent()


def test_a_finalizer_that_is_refused_leaves_a_part_that_is_not_adopted(elastic: Elastic) -> None:
    """Fault R1."""
    elastic.plan(Run(finalizer_refused=True))

    found = elastic.submit(ONE)

    assert isinstance(found, Retryable)
    assert isinstance(elastic.judged(ONE), Partial)


# -- cut off -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["finalizer-last", "finalizer-first"])
def test_wherever_the_command_dies_what_it_left_is_told_and_undone_and_made_anew(
    elastic: Elastic, order: str
) -> None:
    """Fault R1."""
    run = Run(order=order, cold=True)  # type: ignore[arg-type]
    elastic.plan(run)
    elastic.submit(TWO)
    [lines] = elastic.lines(TWO)
    assert len(lines) == 10

    for line in lines:
        name = named("search", line)
        elastic.plan_for(name, msgspec.structs.replace(run, die_at=line), run)
        runner = elastic.runner()
        prepared = elastic.prepared(name, runner)

        assert isinstance(elastic.outcome(runner, prepared), NoAnswer), line

        sight = elastic.objects.look(name.id)
        assert not is_adoptable(sight, prepared.folder.ending()), line
        if order == "finalizer-last":  # then what is seen is enough, without a record of its end
            whole = line in ("finalizer made", "answered")
            assert is_adoptable(sight, None) == whole, line
            assert isinstance(elastic.judged(name), AtWork) == whole, line

        assert elastic.objects.cancel(name.id, PATIENCE) == (), line
        assert elastic.judged(name) == Absent(), line
        assert isinstance(elastic.submit(name), Submitted), line
        assert elastic.judged(name) == AtWork(0, 2), line


@pytest.mark.parametrize(("death", "code"), [("int", 9), ("term", 143), ("kill", 137)])
def test_a_command_that_is_interrupted_has_not_answered(
    elastic: Elastic, death: str, code: int
) -> None:
    elastic.plan(Run(die_at="submit made", death=death))  # type: ignore[arg-type]
    runner = elastic.runner()
    prepared = elastic.prepared(ONE, runner)

    found = elastic.outcome(runner, prepared)

    ending = prepared.folder.ending()
    assert isinstance(found, NoAnswer)
    assert ending is not None
    assert ending.shell_code == code
    assert isinstance(elastic.judged(ONE), Partial)


def test_half_an_answer_of_a_killed_command_is_none(elastic: Elastic) -> None:
    elastic.plan(Run(answer="truncated"))

    assert isinstance(elastic.submit(ONE), NoAnswer)
    assert isinstance(elastic.judged(ONE), AtWork)


def test_when_its_turn_is_over_the_command_ends_where_it_is(elastic: Elastic) -> None:
    pipe = elastic.folder / "pipe"
    os.mkfifo(pipe)
    elastic.plan(Run(wait_at="submit made", pipe=str(pipe)))
    runner = elastic.runner()
    with elastic.started(runner, elastic.prepared(ONE, runner)) as submission:
        with pipe.open("wb"):  # it has come so far when it opens the other end
            submission.extend(CLOCK.monotonic())
            ending = submission.wait(SOON)
        found = submission.outcome()

    assert ending is not None
    assert (ending.ended_by, ending.signal) == ("deadline", signal.SIGKILL)
    assert isinstance(found, NoAnswer)
    assert "blast 0 made" not in elastic.lines(ONE)[0]
    assert isinstance(elastic.judged(ONE), Partial)


def test_run_again_with_a_live_id_it_makes_all_anew(elastic: Elastic) -> None:
    """Why what can be adopted is never run again."""
    elastic.submit(ONE)
    before = elastic.uids(ONE)

    assert isinstance(elastic.submit(ONE), Submitted)

    after = elastic.uids(ONE)
    assert before.keys() == after.keys()
    assert set(before.values()) & set(after.values()) == set()
    assert "old Jobs deleted" in elastic.lines(ONE)[1]


def test_a_search_whose_results_are_there_already_is_not_submitted_again(elastic: Elastic) -> None:
    elastic.plan(Run(results=True))
    elastic.submit(ONE)
    elastic.objects.cancel(ONE.id, PATIENCE)

    assert elastic.submit(ONE) == Submitted((ONE.id,), "already_done", "SUCCESS")
    assert elastic.judged(ONE) == Absent()


# -- how it goes on ----------------------------------------------------------------------------


def test_a_search_is_followed_to_its_end(elastic: Elastic) -> None:
    """Fault R2."""
    elastic.submit(ONE)

    elastic.cluster.fail_pod(ONE.id)
    assert elastic.judged(ONE) == AtWork(0, 2)
    elastic.cluster.finish(ONE.id, "submit", "blast")
    assert elastic.judged(ONE) == AtWork(2, 2)
    elastic.cluster.finish(ONE.id)
    assert elastic.judged(ONE) == Over(2)


@pytest.mark.parametrize("app", ["blast", "submit", "finalizer"])
def test_a_part_that_fails_for_good_fails_the_search(elastic: Elastic, app: str) -> None:
    elastic.submit(ONE)

    elastic.cluster.fail(ONE.id, app)

    state = elastic.judged(ONE)
    assert isinstance(state, Broken)
    assert "BackoffLimitExceeded" in state.failure.message


def test_a_cancelled_search_leaves_nothing_and_touches_nobody_else(elastic: Elastic) -> None:
    """Fault R8."""
    elastic.plan(Run(cold=True))
    elastic.submit(ONE)
    elastic.submit(TWO)
    elastic.make_config_map(f"elb-job-{ONE.id}")
    elastic.make_config_map("queries", **{"elb-job-id": ONE.id})
    elastic.make_config_map(f"elb-job-{TWO.id}", **{"elb-job-id": TWO.id})
    before = elastic.uids(TWO)

    assert elastic.objects.cancel(ONE.id, PATIENCE) == ()

    assert elastic.judged(ONE) == Absent()
    assert elastic.uids(TWO) == before
    assert elastic.config_maps() == {"elb-scripts", f"elb-job-{TWO.id}"}


def test_blastyards_own_role_is_enough_to_end_a_search_and_says_what_it_may_not_delete(
    elastic: Elastic,
) -> None:
    """Fault R8."""
    elastic.submit(ONE)
    elastic.make_config_map(f"elb-job-{ONE.id}")
    objects = elastic.objects_of(elastic.account(rbac.needed(elastic.namespace)))

    [left] = objects.cancel(ONE.id, PATIENCE)

    assert elastic.judged(ONE) == Absent()
    assert "configmaps" in left
    assert elastic.config_maps() == {"elb-scripts", f"elb-job-{ONE.id}"}


def test_the_rights_that_are_named_are_enough_to_leave_nothing(elastic: Elastic) -> None:
    """Fault R8."""
    elastic.submit(ONE)
    elastic.make_config_map(f"elb-job-{ONE.id}")
    elastic.make_config_map("queries", **{"elb-job-id": ONE.id})
    objects = elastic.objects_of(elastic.account(RIGHTS))

    assert objects.cancel(ONE.id, PATIENCE) == ()

    assert elastic.judged(ONE) == Absent()
    assert elastic.config_maps() == {"elb-scripts"}
