"""From a query to its result, through the stand-in for the real command and a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from elastic_stage import CLOCK, QUERY, Elastic, named
from gate_stage import Lab

from blastyard.admission.ledger import HoldState
from blastyard.admission.ticket import Wish
from blastyard.domain.errors import Failure
from blastyard.engine.attempt import Attempt
from blastyard.engine.elastic_blast.collection import Wanted, collect
from blastyard.engine.elastic_blast.location import location
from blastyard.engine.elastic_blast.name import ClusterName
from blastyard.engine.elastic_blast.runner import Submission
from blastyard.engine.remote import Absent, AtWork, Collected, NoAnswer, Over, Submitted
from blastyard.service.entrance import Entrance, Patience
from blastyard.service.submitting import Fate, Submitting
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.elastic_blast.plan import Run

ONE = named("5b0c3a52-3a35-4f6e-8a1b-6c2b7d4d9f10")
TWO = named("9e107d9d-372b-4b6d-a1d6-2c1a0d4b1f1e")


@pytest.fixture
def elastic(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Elastic]:
    made = Elastic(control_plane, namespace, tmp_path / "elastic")
    yield made
    made.close()


def submitted(elastic: Elastic, name: ClusterName, query: str) -> None:
    runner = elastic.runner()
    prepared = runner.prepare(elastic.order(name, query), elastic.folder / name.tail)
    assert isinstance(elastic.outcome(runner, prepared), Submitted)


def collected(elastic: Elastic, name: ClusterName, seen: int = 0) -> Collected | Failure:
    order = elastic.order(name)
    attempt = Attempt(elastic.folder / name.tail, elastic.folder / f"{name.tail}.tsv")
    wanted = Wanted(name, order.program, order.output_format, seen)
    return collect(location(order.results), wanted, attempt)


@pytest.mark.parametrize("layout", ["id", "flat"])
def test_each_search_gets_the_result_of_its_own_query(elastic: Elastic, layout: str) -> None:
    """Fault R12."""
    elastic.plan(Run(results=True, layout=layout))  # type: ignore[arg-type]
    submitted(elastic, ONE, QUERY)
    submitted(elastic, TWO, QUERY.replace(">q", ">other"))
    for name in (ONE, TWO):
        elastic.cluster.finish(name.id)

    state = elastic.judged(ONE)
    one, two = (collected(elastic, name) for name in (ONE, TWO))

    assert state == Over(2)
    assert isinstance(one, Collected)
    assert isinstance(two, Collected)
    assert [line.split()[0] for line in one.output.path.read_text().splitlines()] == [
        "q1", "q2", "q3",
    ]  # fmt: skip
    assert two.output.path.read_text() == one.output.path.read_text().replace("q", "other")


def test_jobs_that_were_removed_before_anybody_looked_prove_nothing(elastic: Elastic) -> None:
    """Fault R3."""
    elastic.plan(Run(results=True, lost=(1,)))
    submitted(elastic, ONE, QUERY)
    elastic.cluster.delete(ONE.id)

    found = collected(elastic, ONE)

    assert elastic.judged(ONE, was_complete=True) == Absent()
    assert isinstance(found, Failure)
    assert "1 of 2 results are missing: batch_001" in found.message


def test_half_a_file_is_no_result(elastic: Elastic) -> None:
    """Fault R4."""
    elastic.plan(Run(results=True, damaged=(0,)))
    submitted(elastic, ONE, QUERY)

    found = collected(elastic, ONE)

    assert isinstance(found, Failure)
    assert found.code == "result_incomplete"


# -- behind both gates -------------------------------------------------------------------------


@pytest.fixture
def lab(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Lab]:
    made = Lab(control_plane, namespace, tmp_path)
    yield made
    made.close()


def passage(lab: Lab, search: str) -> Submitting:
    gate = lab.installation().opened
    entrance = Entrance(gate.gate, gate.documents.watch(), CLOCK.monotonic, lambda: None)
    return Submitting(
        entrance,
        Wish(search, "ada", 1),
        Patience(),
        lambda *_: None,
        limit=gate.gate.timings.command,
        watched=True,
    )


def admitted(elastic: Elastic, lab: Lab, name: ClusterName) -> tuple[Submitting, Submission]:
    runner = elastic.runner()
    start = partial(runner.start, elastic.prepared(name, runner))
    turn = passage(lab, name.search)
    with turn:
        submission = turn.admit(start)
    return turn, submission


def test_a_search_is_admitted_submitted_and_held_under_its_id_in_the_cluster(
    elastic: Elastic, lab: Lab
) -> None:
    turn, submission = admitted(elastic, lab, ONE)

    assert submission.outcome() == Submitted((ONE.id,), "accepted")
    assert turn.result is not None
    assert turn.result.fate is Fate.COMPLETE
    hold = lab.ledger().holds[ONE.search]
    assert (hold.state, hold.alias) == (HoldState.SUBMITTED, ONE.id)
    assert lab.markers(ONE.search) == {("companion", "submit")}
    assert elastic.judged(ONE) == AtWork(0, 2)
    assert lab.holder() == ""


def test_a_companion_is_no_part_of_the_search_and_goes_with_admissions_own_hands(
    elastic: Elastic, lab: Lab
) -> None:
    admitted(elastic, lab, ONE)
    elastic.cluster.finish(ONE.id)

    assert elastic.judged(ONE) == Over(2)
    elastic.objects.cancel(ONE.id, lab.installation().opened.gate.timings.command)
    assert lab.markers(ONE.search) == {("companion", "submit")}


def test_a_command_that_was_cut_off_behind_the_gates_keeps_its_slot_and_can_be_undone(
    elastic: Elastic, lab: Lab
) -> None:
    """Fault R1."""
    elastic.plan(Run(die_at="submit made", death="term"))

    turn, submission = admitted(elastic, lab, ONE)

    assert isinstance(submission.outcome(), NoAnswer)
    assert turn.result is not None
    assert turn.result.fate is Fate.FAILED
    assert lab.ledger().holds[ONE.search].state is HoldState.RESERVED
    elastic.objects.cancel(ONE.id, lab.installation().opened.gate.timings.command)
    assert elastic.judged(ONE) == Absent()


def test_exec_runs_the_command_as_anybody_elses(elastic: Elastic, lab: Lab) -> None:
    prepared = elastic.prepared(ONE)
    lab.environment |= {"PATH": elastic.environment["PATH"]}
    lab.environment |= {"KUBECONFIG": str(elastic.kubeconfig), "HOME": str(prepared.folder.home)}
    words = ["elastic-blast", "submit", "--cfg", str(prepared.folder.configuration), "--json"]

    ended = lab.run("exec", "--search-id", "job-one", "--", *words, "--idempotency-key", "{id}")

    assert ended.returncode == 0, ended.stderr
    assert '"correlation_id":"job-one"' in ended.stdout.splitlines()[-1]
    assert lab.ledger().holds["job-one"].state is HoldState.SUBMITTED
