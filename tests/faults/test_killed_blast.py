"""Kill -9 of a guardian, or of BLAST+ itself, under a worker that lives."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from machine_stage import Machine
from test_killed_worker import require_good_end

from blastyard.domain.job import State
from blastyard.domain.search import Search
from blastyard.engine.process import Process
from blastyard.testing.installation import YardProcess


@pytest.fixture
def worker(machine: Machine) -> Iterator[YardProcess]:
    """A service under which every BLAST+ waits at its start."""
    machine.actors.hold()
    yield machine.installation.start().ready()
    machine.actors.let_all()


def running(machine: Machine, search_id: str) -> Search:
    """The search once its run is recorded."""

    def condition() -> Search | None:
        search = machine.installation.yard.store.get(search_id)
        return search if search.state is State.RUNNING else None

    return machine.installation.until(condition, "a run")


def guardian_of(search: Search) -> Process:
    assert search.run is not None
    return Process(search.run.guardian_pid, search.run.guardian_started)


def test_a_killed_guardian_is_made_good_by_another_attempt(
    machine: Machine, worker: YardProcess
) -> None:
    """Faults R2 and R4: only what ended by itself decides."""
    search_id = machine.submit()
    actor = machine.actors.begun()
    guardian_of(running(machine, search_id)).send(signal.SIGKILL)

    assert actor.wait_gone(20)
    machine.actors.let(machine.actors.begun())
    require_good_end(machine, [search_id])
    assert machine.installation.yard.store.get(search_id).attempt == 2


def test_a_search_whose_guardian_dies_each_time_is_given_up_with_its_cause(
    machine: Machine, worker: YardProcess
) -> None:
    """Fault R5."""
    search_id = machine.submit()
    for _ in range(5):
        actor = machine.actors.begun()
        guardian_of(running(machine, search_id)).send(signal.SIGKILL)
        assert actor.wait_gone(20)

    ended = machine.installation.ended(search_id)
    assert ended.state is State.FAILED
    assert ended.error is not None
    assert (ended.error.code, "5 of 5" in ended.error.message) == ("runner_died", True)
    assert machine.actors.starts() == 5
    assert machine.actors.peak() == 1


@pytest.mark.parametrize(("word", "code"), [("KILL", "killed"), ("SEGV", "blast_crashed")])
def test_a_killed_blast_is_a_named_cause_and_no_result(
    machine: Machine, worker: YardProcess, word: str, code: str
) -> None:
    """Fault R5."""
    search_id = machine.submit()
    actor = machine.actors.begun()
    running(machine, search_id)
    machine.actors.let(actor, word)

    ended = machine.installation.ended(search_id)
    assert ended.state is State.FAILED
    assert ended.error is not None
    assert ended.error.code == code
    assert ended.error.next_step
    assert ended.result is None
    folder = machine.installation.yard.files.directory(search_id)
    assert [path.name for path in folder.glob("result.*")] == []


def test_the_slot_of_a_killed_blast_goes_to_the_next(machine: Machine, worker: YardProcess) -> None:
    """Fault B11."""
    first, second = machine.submit(), machine.submit()
    machine.actors.let(machine.actors.begun(), "KILL")
    machine.actors.let(machine.actors.begun())

    assert machine.installation.ended(first).state is State.FAILED
    require_good_end(machine, [second])
