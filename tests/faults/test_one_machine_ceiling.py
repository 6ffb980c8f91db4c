"""The ceiling on real stores, processes and commands: held, changed, and found again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from machine_stage import Machine, through
from test_killed_worker import require_good_end

from blastyard.admission.port import LEDGER
from blastyard.domain.errors import CallerMistake, Unavailable
from blastyard.domain.job import State
from blastyard.testing.checkpoint import Checkpoints, recorded

NewMachine = Callable[..., Machine]


def running(machine: Machine, count: int) -> None:
    """Wait until so many searches hold a slot and say they run."""
    yard = machine.installation.yard
    machine.installation.until(
        lambda: (
            yard.store.counts().get(State.RUNNING, 0) == count
            and len(yard.gate.ledger().holds) == count
        ),
        f"{count} running",
    )


def settled(machine: Machine) -> None:
    """Wait until every live worker has had a look at the queue as it is."""
    yard = machine.installation.yard
    versions = {
        name: seen.version for name, seen in yard.gate.submitters().items() if not seen.gone
    }
    machine.installation.until(
        lambda: all(
            seen.version > versions.get(name, 0) or seen.gone
            for name, seen in yard.gate.submitters().items()
        ),
        "signs of life",
    )


def test_a_lowered_ceiling_drops_nobody_and_admits_nobody_until_there_is_room(
    new_machine: NewMachine,
) -> None:
    """Fault B9."""
    machine = new_machine(5)
    machine.actors.hold()
    machine.installation.start().ready()
    ids = [machine.submit() for _ in range(4)]
    actors = [machine.actors.begun() for _ in range(4)]
    running(machine, 4)
    machine.installation.yard.gate.change_policy("operator", ceiling=2)
    ids += [machine.submit() for _ in range(2)]
    for left in (3, 2):
        machine.actors.let(actors.pop())
        running(machine, left)
        settled(machine)
        assert machine.actors.starts() == 4
        assert len(machine.actors.live()) == left

    machine.actors.let(actors.pop())
    machine.actors.begun()
    running(machine, 2)
    assert machine.actors.starts() == 5
    machine.installation.processes[0].kill()


def test_a_raised_ceiling_lets_as_many_in_as_fit_at_once(new_machine: NewMachine) -> None:
    """Fault B10: the benchmark measures how soon; here it must not take a floor's length."""
    machine = new_machine(1)
    machine.actors.hold()
    for _ in range(2):
        machine.installation.start().ready()
    for _ in range(5):
        machine.submit()
    machine.actors.begun()
    running(machine, 1)

    yard = machine.installation.yard
    before = yard.clock.monotonic()
    yard.gate.change_policy("operator", ceiling=4)
    for _ in range(3):
        machine.actors.begun()
    assert yard.clock.monotonic() - before < 5
    running(machine, 4)
    settled(machine)
    assert machine.actors.starts() == 4


def points_of_a_life(new_machine: NewMachine, record: object) -> list[str]:
    machine = new_machine()
    checkpoints = Checkpoints(record=record)  # type: ignore[arg-type]
    search_id = machine.submit()
    with machine.working(through(checkpoints)):
        require_good_end(machine, [search_id])
    passed = recorded(record)  # type: ignore[arg-type]
    return [
        f"{point.name}#{point.count}"
        for point in passed
        if point.is_write and point.name.startswith("step:")
    ]


def test_a_search_cancelled_at_any_step_ends_once_and_leaves_its_slot(
    new_machine: NewMachine, tmp_path: object
) -> None:
    """Faults B11 and R8."""
    points = points_of_a_life(new_machine, tmp_path / "record")  # type: ignore[operator]
    assert len(points) > 20
    for point in points:
        cancel_at(new_machine(), point)


def cancel_at(machine: Machine, wanted: str) -> None:
    search_id = machine.submit()
    name, _, count = wanted.partition("#")
    yard = machine.installation.yard
    passed = 0

    def checkpoint(at: str) -> None:
        nonlocal passed
        if "step:" + at.replace(search_id, "") == name:
            passed += 1
            if passed == int(count):
                yard.searches.cancel(search_id)

    with machine.working(through(checkpoint)):
        ended = machine.installation.ended(search_id)
        states = [event.state for event in yard.store.events(search_id)]
        assert ended.state in (State.CANCELLED, State.COMPLETED), wanted
        assert sum(state.is_terminal for state in states) == 1, wanted
        machine.actors.wait_gone()
        following = machine.submit()
        require_good_end(machine, [following])
    if ended.state is State.CANCELLED:
        assert ended.result is None
        with pytest.raises(CallerMistake):
            yard.searches.result(search_id)


def test_a_failed_search_leaves_its_slot_and_can_be_deleted(new_machine: NewMachine) -> None:
    """Fault B11."""
    machine = new_machine(1)
    machine.actors.hold()
    machine.installation.start().ready()
    failing, following = machine.submit(), machine.submit()
    machine.actors.let(machine.actors.begun(), "3")
    machine.actors.let(machine.actors.begun())

    assert machine.installation.ended(failing).state is State.FAILED
    require_good_end(machine, [following])
    machine.installation.yard.searches.delete(failing)
    assert not machine.installation.yard.files.directory(failing).exists()


@pytest.mark.parametrize("body", [b"{not json", b'{"uid":"u","policy":{},"fence":1,"format":99}'])
def test_a_ledger_that_cannot_be_read_admits_nobody_until_it_is_repaired(
    machine: Machine, body: bytes
) -> None:
    """Fault B13."""
    yard = machine.installation.yard
    machine.installation.start().ready()
    first = machine.submit()
    require_good_end(machine, [first])
    whole = yard.documents.read(LEDGER)
    spoilt = yard.documents.swap(LEDGER, whole.version, body)
    assert spoilt is not None
    second = machine.submit()
    settled(machine)

    with pytest.raises(Unavailable) as refused:
        yard.gate.view()
    assert refused.value.code == "ledger_unreadable"
    assert yard.store.get(second).state is State.QUEUED
    assert machine.actors.starts() == 1
    assert yard.documents.swap(LEDGER, spoilt.version, whole.body) is not None
    require_good_end(machine, [second])


def test_a_ledger_deleted_by_hand_is_made_again_from_what_runs(new_machine: NewMachine) -> None:
    """Fault B14."""
    machine = new_machine(2)
    machine.actors.hold()
    for _ in range(2):
        machine.installation.start("search").ready()
    one, other = machine.installation.processes
    ids = [each.submit(machine.request(own=True)) for each in (one, other)]
    actors = [machine.actors.begun() for _ in range(2)]
    running(machine, 2)
    ids += [each.submit(machine.request(own=True)) for each in (one, other)]
    yard = machine.installation.yard
    yard.gate.change_policy("operator", cap=7)
    settled(machine)
    found = yard.documents.read(LEDGER)
    assert yard.documents.swap(LEDGER, found.version, None) is not None

    machine.installation.until(lambda: len(yard.gate.ledger().holds) == 2, "both claims")
    machine.installation.until(lambda: yard.gate.ledger().is_whole, "a whole ledger")
    settled(machine)
    assert machine.actors.starts() == 2
    assert yard.gate.ledger().policy.user_cap == 7
    for actor in actors:
        machine.actors.let(actor)
    for _ in range(2):
        machine.actors.let(machine.actors.begun())
    require_good_end(machine, ids)


def test_after_a_restart_of_everybody_what_ran_still_counts(new_machine: NewMachine) -> None:
    """Fault B12."""
    machine = new_machine(3)
    machine.actors.hold()
    doomed = [machine.installation.start("search").ready() for _ in range(3)]
    ids = [process.submit(machine.request(own=True)) for process in doomed]
    for _ in ids:
        machine.actors.begun()
    running(machine, 3)
    for process in doomed:
        process.kill()
    waiting = machine.submit()
    machine.installation.start().ready()
    for _ in range(4):
        machine.actors.let(machine.actors.begun())

    require_good_end(machine, [*ids, waiting])
    assert machine.actors.peak() <= 3
