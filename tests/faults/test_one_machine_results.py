"""Runs and results on real stores, processes and commands."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from machine_stage import Machine, bare_answer, through
from test_killed_worker import require_good_end
from test_one_machine_ceiling import running

from blastyard.domain.errors import Conflict
from blastyard.domain.job import State
from blastyard.domain.search import Event, Search
from blastyard.store.port import Filter, SearchStore
from blastyard.testing.faulty import FaultySearchStore

NewMachine = Callable[..., Machine]


class ReadsAtCompletion(FaultySearchStore):
    """A store that reads the published file at the moment a search is written as completed."""

    def __init__(self, inner: SearchStore, folder: Path) -> None:
        super().__init__(inner)
        self.folder = folder
        self.read: list[tuple[str, str]] = []

    def update(self, search: Search, event: Event | None = None) -> Search:
        if search.state is State.COMPLETED and search.result is not None:
            path = self.folder / search.id / f"result.{search.result.extension}"
            said = hashlib.sha256(path.read_bytes()).hexdigest()
            self.read.append((said, search.result.sha256))
        return super().update(search, event)


def test_a_completed_search_can_be_downloaded_at_that_moment(machine: Machine) -> None:
    """Fault R6."""
    made: list[ReadsAtCompletion] = []

    def store(inner: SearchStore) -> SearchStore:
        made.append(ReadsAtCompletion(inner, machine.installation.yard.home.searches))
        return made[-1]

    with machine.working(replace(through(), store=store)):
        require_good_end(machine, [machine.submit()])
    [(found, recorded)] = made[0].read
    assert found == recorded == hashlib.sha256(machine.answer).hexdigest()


def test_a_search_cancelled_while_it_runs_is_gone_at_once_and_stays_cancelled(
    new_machine: NewMachine,
) -> None:
    """Fault R8."""
    machine = new_machine(1)
    machine.actors.hold()
    machine.installation.start().ready()
    search_id = machine.submit()
    following = machine.submit()
    actor = machine.actors.begun()
    running(machine, 1)
    machine.installation.yard.searches.cancel(search_id)

    assert actor.wait_gone(20)
    ended = machine.installation.ended(search_id)
    assert ended.state is State.CANCELLED
    machine.actors.let(machine.actors.begun())
    require_good_end(machine, [following])
    assert machine.installation.yard.store.get(search_id) == ended
    folder = machine.installation.yard.files.directory(search_id)
    machine.installation.until(
        lambda: [path.name for path in folder.iterdir()] == ["query.fa"], "nothing but the query"
    )


def test_a_search_cancelled_after_its_worker_died_is_cancelled_by_the_next(
    machine: Machine,
) -> None:
    """Faults R8 and B11."""
    machine.actors.hold()
    doomed = machine.installation.start().ready()
    search_id = machine.submit()
    actor = machine.actors.begun()
    running(machine, 1)
    doomed.kill()
    machine.installation.yard.searches.cancel(search_id)
    machine.installation.start().ready()

    assert machine.installation.ended(search_id).state is State.CANCELLED
    assert not actor.is_alive()
    assert machine.actors.starts() == 1


STRANGE = [
    "a" * 1016 + "12345678",
    "b" * 1016 + "12345678",
    "PIPELINE_7",
    "pipeline_7",
    "../../etc/passwd",
    "naïve \N{DNA DOUBLE HELIX} %2F",
]


def test_keys_that_look_alike_are_different_searches(machine: Machine) -> None:
    """Fault R9."""
    ids = [machine.submit(key=key) for key in STRANGE]
    assert len(set(ids)) == len(STRANGE)
    assert [machine.submit(key=key) for key in STRANGE] == ids
    stored = [machine.installation.yard.store.get(search_id) for search_id in ids]
    assert [search.request.key for search in stored] == STRANGE
    folders = {path.name for path in machine.installation.yard.home.searches.iterdir()}
    assert folders == set(ids)


def test_one_key_from_many_processes_at_once_is_one_search(machine: Machine) -> None:
    """Fault R10."""
    processes = [machine.installation.start("command", works=False) for _ in range(8)]
    for process in processes:
        process.ready()
    for process in processes:
        process.ask_submit(machine.request(key="step 7"))
    said = [process.hear("submitted").split() for process in processes]

    assert len({search_id for _, search_id, _ in said}) == 1
    assert sorted(created for *_, created in said) == ["False"] * 7 + ["True"]
    [search] = machine.installation.yard.store.list(Filter())
    folders = [path.name for path in machine.installation.yard.home.searches.iterdir()]
    assert folders == [search.id]
    with pytest.raises(Conflict) as refused:
        machine.submit(key="step 7", database="genes", output_format="xml")
    assert refused.value.code == "key_conflict"


def test_one_key_from_many_threads_at_once_is_one_search(machine: Machine) -> None:
    """Fault R10."""
    ids: list[str] = []
    threads = [Thread(target=lambda: ids.append(machine.submit(key="step 7"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(ids) == 8
    assert len(set(ids)) == 1


def test_a_restart_with_searches_in_all_states_loses_and_doubles_none(
    new_machine: NewMachine,
) -> None:
    """Fault R11."""
    machine = new_machine(4)
    yard = machine.installation.yard
    machine.actors.hold()
    doomed = machine.installation.start().ready()
    ids = [machine.submit(user=f"user{number % 5}") for number in range(50)]
    cancelled = ids[-3:]
    for search_id in cancelled:
        yard.searches.cancel(search_id)
    actors = [machine.actors.begun() for _ in range(4)]
    machine.actors.let(actors[0])
    machine.actors.let(actors[1], "3")
    machine.actors.begun()
    machine.actors.begun()
    running(machine, 4)
    before = yard.store.counts()
    assert set(before) >= {State.QUEUED, State.RUNNING, State.COMPLETED, State.FAILED}
    doomed.kill()
    machine.actors.wait_gone()
    machine.actors.let_all()
    machine.installation.start().ready()

    ended = [machine.installation.ended(search_id) for search_id in ids]
    states = [search.state for search in ended]
    assert states.count(State.FAILED) == 1
    assert states.count(State.CANCELLED) == 3
    require_good_end(machine, [each.id for each in ended if each.state is State.COMPLETED])
    assert states.count(State.COMPLETED) == 46
    assert machine.actors.starts() == 47 + 4


def test_two_searches_share_no_path(new_machine: NewMachine, tmp_path: Path, blast: Path) -> None:
    """Fault R12."""
    machine = new_machine(2)
    machine.installation.start().ready()
    records = [">" + text for text in machine.query.read_text().split(">")[1:]]
    queries = [tmp_path / f"{number}.fa" for number in range(len(records))]
    for path, record in zip(queries, records, strict=True):
        path.write_text(record)
    machines = [replace(machine, query=path) for path in queries]
    ids = [each.submit() for each in machines]

    database = Path(machine.installation.yard.databases.get("genes").path)
    answers = [bare_answer(blast / "blastn", database, path) for path in queries]
    _require_each_its_own(machine, ids, answers)


def _require_each_its_own(machine: Machine, ids: Sequence[str], answers: Sequence[bytes]) -> None:
    assert len(set(answers)) == len(answers)
    yard = machine.installation.yard
    for search_id, answer in zip(ids, answers, strict=True):
        assert machine.installation.ended(search_id).state is State.COMPLETED
        result = yard.searches.result(search_id)
        assert result.read_bytes() == answer
        assert search_id in result.parts
        assert search_id in yard.files.query(search_id).parts
