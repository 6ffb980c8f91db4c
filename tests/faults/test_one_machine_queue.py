"""The queue on real stores, processes and commands: order, reasons, deadlines, wake-ups."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from machine_stage import Machine
from test_killed_worker import require_good_end
from test_one_machine_ceiling import running, settled

from blastyard.admission.outcome import Reason
from blastyard.admission.port import LEDGER
from blastyard.domain.job import State
from blastyard.domain.program import SequenceType
from blastyard.domain.search import Search
from blastyard.testing.installation import Installation

NewMachine = Callable[..., Machine]


def order_of_starts(installation: Installation, ids: list[str]) -> list[str]:
    """The searches in the order in which their slots were granted."""

    def granted(search_id: str) -> int:
        events = installation.yard.store.events(search_id)
        return min(int(event.reason.split()[-1]) for event in events if "fence" in event.reason)

    return sorted(ids, key=granted)


def drained(new_machine: NewMachine, **environment: str) -> Machine:
    """A machine with a service and a ceiling of 0: all that is submitted waits."""
    machine = new_machine(0, **environment)
    machine.installation.start().ready()
    return machine


def open_up(machine: Machine, ceiling: int = 1) -> None:
    machine.installation.yard.gate.change_policy("operator", ceiling=ceiling)


def test_a_slot_that_frees_is_taken_at_once_by_another_process(new_machine: NewMachine) -> None:
    """Fault Q2: the benchmark measures how soon; here it must not take a floor's length."""
    machine = new_machine(1)
    machine.actors.hold()
    one, other = (machine.installation.start("search").ready() for _ in range(2))
    first = one.submit(machine.request(own=True))
    actor = machine.actors.begun()
    second = other.submit(machine.request(own=True))
    settled(machine)
    clock = machine.installation.yard.clock
    machine.actors.let(actor)
    freed = clock.monotonic()
    machine.actors.let(machine.actors.begun())
    assert clock.monotonic() - freed < 5
    require_good_end(machine, [first, second])


@pytest.fixture
def arriving(machine: Machine, sample_databases: Any) -> Path:
    """Where a database called ``late`` is being copied to; its first file is there."""
    folder = machine.installation.home / "arriving"
    folder.mkdir()
    prefix = folder / sample_databases.nucl.name
    shutil.copy(next(sample_databases.nucl.parent.glob(f"{prefix.name}.nsq")), folder)
    machine.installation.yard.databases.add_path("late", prefix, SequenceType.NUCL, copying=True)
    return folder


def test_a_search_whose_database_is_being_copied_waits_and_the_next_goes(
    machine: Machine, arriving: Path
) -> None:
    """Faults Q4 and R7."""
    yard = machine.installation.yard
    machine.installation.start().ready()
    blocked = machine.submit(database="late")
    require_good_end(machine, [machine.submit()])

    search = yard.store.get(blocked)
    assert (search.state, search.phase) == (State.QUEUED, "waiting_for_database")
    assert [place.obstacle for place in yard.gate.view().queue] == [Reason.BLOCKED]


@pytest.mark.slow
def test_a_search_runs_when_its_database_has_been_copied(
    machine: Machine, arriving: Path, sample_databases: Any
) -> None:
    """Fault R7."""
    machine.installation.start().ready()
    blocked = machine.submit(database="late")
    phase = "waiting_for_database"
    store = machine.installation.yard.store
    machine.installation.until(lambda: store.get(blocked).phase == phase, "its wait")
    for file in sample_databases.nucl.parent.glob(f"{sample_databases.nucl.name}.n*"):
        shutil.copy(file, arriving)

    require_good_end(machine, [blocked])
    assert store.get(blocked).attempt == 1


def test_users_take_turns_whoever_came_first_with_many(new_machine: NewMachine) -> None:
    """Fault Q5."""
    machine = drained(new_machine)
    many = [machine.submit(user="ada") for _ in range(12)]
    few = [machine.submit(user="bob") for _ in range(2)]
    open_up(machine)
    require_good_end(machine, many + few)

    order = order_of_starts(machine.installation, many + few)
    assert max(order.index(search_id) for search_id in few) <= 3
    assert [search_id for search_id in order if search_id in many] == many


def test_a_user_at_the_cap_waits_and_others_go(new_machine: NewMachine) -> None:
    """Fault Q5."""
    machine = drained(new_machine)
    machine.actors.hold()
    machine.installation.yard.gate.change_policy("operator", cap=1)
    hers = [machine.submit(user="ada") for _ in range(3)]
    his = machine.submit(user="bob")
    open_up(machine, 3)
    actors = [machine.actors.begun() for _ in range(2)]
    running(machine, 2)
    settled(machine)

    ledger = machine.installation.yard.gate.ledger()
    assert sorted(ledger.holds) == sorted([hers[0], his])
    queue = machine.installation.yard.gate.view().queue
    assert {place.obstacle for place in queue} == {Reason.USER_CAP}
    for actor in actors:
        machine.actors.let(actor)
    for _ in range(2):
        machine.actors.let(machine.actors.begun())
    require_good_end(machine, [*hers, his])


def test_a_low_search_that_waited_long_goes_before_new_high_ones(new_machine: NewMachine) -> None:
    """Fault Q6."""
    machine = drained(new_machine)
    documents = machine.installation.yard.documents
    low = machine.submit(priority="low")
    found = documents.read(LEDGER)
    ledger = json.loads(found.body or b"")
    ledger["policy"]["ageing_seconds"] = 1
    written = documents.swap(LEDGER, found.version, json.dumps(ledger).encode())
    assert written is not None
    begun = machine.installation.yard.store.now()
    machine.installation.until(
        lambda: (machine.installation.yard.store.now() - begun).total_seconds() > 2.1, "its ageing"
    )
    high = [machine.submit(priority="high") for _ in range(3)]
    open_up(machine)
    require_good_end(machine, [low, *high])

    assert order_of_starts(machine.installation, [low, *high])[0] == low


def test_priorities_go_first_and_equals_in_order_of_arrival(new_machine: NewMachine) -> None:
    """Fault Q12."""
    machine = drained(new_machine)
    normal = [machine.submit() for _ in range(4)]
    high = [machine.submit(priority="high") for _ in range(2)]
    open_up(machine)
    require_good_end(machine, normal + high)

    assert order_of_starts(machine.installation, normal + high) == high + normal


def test_a_deadline_stands_in_the_row_whatever_happens_meanwhile(new_machine: NewMachine) -> None:
    """Fault Q7: denials, set aside, another process: nothing moves it."""
    words = {"BLAST_CAPACITY_WAIT_MAX_SECONDS": "3", "BLAST_SUBMIT_SLOT_WAIT_MAX_SECONDS": "3000"}
    machine = drained(new_machine, **words)
    yard = machine.installation.yard
    search_id = machine.submit()
    deadlines = _deadlines(yard.store.get(search_id))
    assert None not in deadlines
    yard.searches.park(search_id, "operator")
    settled(machine)
    yard.searches.unpark(search_id)
    machine.installation.processes[0].kill()
    machine.installation.start().ready()

    ended = machine.installation.ended(search_id)
    assert _deadlines(ended) == deadlines
    assert ended.state is State.FAILED
    assert ended.error is not None
    assert ended.error.code == "capacity_timeout"
    assert ended.finished_at is not None
    assert ended.capacity_deadline_at is not None
    assert 0 <= (ended.finished_at - ended.capacity_deadline_at).total_seconds() < 5


def _deadlines(search: Search) -> tuple[object, object]:
    return search.submit_deadline_at, search.capacity_deadline_at


def test_waiting_uses_up_no_attempts(new_machine: NewMachine) -> None:
    """Fault Q8."""
    machine = drained(new_machine)
    search_id = machine.submit()
    yard = machine.installation.yard
    for _ in range(8):
        yard.searches.park(search_id, "operator")
        yard.searches.unpark(search_id)
        settled(machine)
    assert yard.store.get(search_id).attempt == 0
    open_up(machine)
    require_good_end(machine, [search_id])
    assert yard.store.get(search_id).attempt == 1


def test_those_who_wait_write_nothing_and_wake_nobody(new_machine: NewMachine) -> None:
    """Fault Q9."""
    machine = drained(new_machine)
    for number in range(150):
        machine.submit(user=f"user{number % 7}")
    yard = machine.installation.yard
    settled(machine)
    machine.installation.until(
        lambda: all(
            each.phase for each in yard.store.live() if each.id in yard.gate.ledger().tickets
        ),
        "a reason for each",
    )
    version = yard.documents.read(LEDGER).version
    rows = {search.id: search.version for search in yard.store.live()}
    watch = yard.documents.watch()
    try:
        assert not watch.wait(3.0)
    finally:
        watch.close()
    assert yard.documents.read(LEDGER).version == version
    assert {search.id: search.version for search in yard.store.live()} == rows


@pytest.mark.parametrize("published", [True, False])
def test_a_search_cancelled_while_it_waits_never_takes_a_slot(
    new_machine: NewMachine, published: bool
) -> None:
    """Fault Q11: also one that has no ticket yet."""
    machine = drained(new_machine) if published else new_machine(0)
    if not published:
        for _ in range(100):
            machine.submit()
    cancelled = machine.submit()
    yard = machine.installation.yard
    assert (cancelled in yard.gate.ledger().tickets) is published
    yard.searches.cancel(cancelled)
    assert machine.installation.ended(cancelled).state is State.CANCELLED
    if published:
        open_up(machine)
        require_good_end(machine, [machine.submit()])
    assert yard.store.get(cancelled).attempt == 0
    assert not any("fence" in event.reason for event in yard.store.events(cancelled))


def test_a_home_of_its_own_is_a_queue_of_its_own(new_machine: NewMachine) -> None:
    one, other = new_machine(0), new_machine(1)
    other.installation.start().ready()
    waiting = one.submit()
    require_good_end(other, [other.submit()])
    assert one.installation.yard.store.get(waiting).state is State.QUEUED
    assert Path(one.installation.home) != Path(other.installation.home)
