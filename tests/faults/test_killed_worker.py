"""Kill -9 of the process that runs searches, at every step of their lives.

The steps are found by a run in which nothing dies, so a new step is covered as soon as it exists.
"""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from death_stage import Deaths, P
from machine_stage import Machine

from blastyard.admission.lease import Free
from blastyard.domain.job import State
from blastyard.store.port import Filter
from blastyard.testing.checkpoint import Point, Strike, recorded
from blastyard.testing.installation import YardProcess

AT_ONCE = 12
"""Stories told at a time: most of each is waiting for a lease to lapse."""

NewMachine = Callable[..., Machine]


def life(new_machine: NewMachine, searches: int, record: Path) -> list[Point]:
    """All that the process passes which takes on and runs so many searches, to their end."""
    machine = new_machine()
    ids = [machine.submit() for _ in range(searches)]
    process = machine.installation.start(record=str(record)).ready()
    for search_id in ids:
        machine.installation.ended(search_id)
    process.kill()
    return recorded(record)


def require_good_end(machine: Machine, ids: Sequence[str]) -> None:
    """Each search was completed once, with the right bytes, and nothing else is left."""
    installation = machine.installation
    for search_id in ids:
        search = installation.ended(search_id)
        assert search.state is State.COMPLETED, search.error
        output = installation.yard.searches.result(search_id).read_bytes()
        assert output == machine.answer
        assert search.result is not None
        assert search.result.size == len(output)
        assert search.result.sha256 == hashlib.sha256(output).hexdigest()
        states = [event.state for event in installation.yard.store.events(search_id)]
        assert states.count(State.COMPLETED) == 1
        assert states[-1] is State.COMPLETED
    ceiling = installation.yard.gate.ledger().policy.ceiling
    assert machine.actors.peak() <= ceiling
    assert machine.actors.live() == []
    installation.until(lambda: isinstance(installation.yard.gate.view().gate, Free), "a free gate")


def require_clean(machine: Machine, heir: YardProcess) -> None:
    """Nobody but the heir is left in the books, and after its end not even that."""
    gate = machine.installation.yard.gate
    machine.installation.until(lambda: set(gate.submitters()) == {heir.name}, "the dead's removal")
    heir.end()
    ledger = gate.ledger()
    assert (ledger.holds, ledger.tickets) == ({}, {})
    assert gate.submitters() == {}


def killed_at(new_machine: NewMachine, point: Point) -> bool:
    """Two searches, one slot, and a death at ``point``; whether it came to that."""
    machine = new_machine()
    ids = [machine.submit() for _ in range(2)]
    doomed = machine.installation.start(strike=Strike(point, signal.SIGKILL))

    def over() -> bool:
        states = [machine.installation.yard.store.get(search_id).state for search_id in ids]
        return not doomed.is_alive() or all(state.is_terminal for state in states)

    machine.installation.until(over, "its death")
    died = not doomed.is_alive()
    doomed.kill()
    machine.actors.wait_gone()
    heir = machine.installation.start().ready()
    require_good_end(machine, ids)
    require_clean(machine, heir)
    return died


def tell_all(stories: Sequence[P], story: Callable[[P], bool]) -> None:
    """Tell a story for each point, several at a time; report all that end badly."""
    bad: list[str] = []
    died: list[bool] = []

    def tell(point: P) -> None:
        try:
            died.append(story(point))
        except BaseException as error:
            bad.append(f"{point.name} #{point.count}: {error}")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(tell, stories))
    assert not bad, f"{len(bad)} of {len(stories)}:\n" + "\n".join(sorted(bad))
    # threads race, so one run may pass a point fewer times than the recorded one
    assert sum(died) >= 0.5 * len(stories)


def test_a_worker_killed_at_any_write_leaves_searches_that_end_once(
    new_machine: NewMachine, deaths: Deaths, tmp_path: Path
) -> None:
    """Faults A11, B12, R1, R4 and R11."""
    points = [point for point in life(new_machine, 2, tmp_path / "record") if point.is_write]
    assert {point.name.split(":")[2] for point in points} >= {"update", "swap", "start", "collect"}

    tell_all(deaths(points), lambda point: killed_at(new_machine, point))


@pytest.mark.slow
def test_a_worker_killed_at_any_read_leaves_searches_that_end_once(
    new_machine: NewMachine, deaths: Deaths, tmp_path: Path
) -> None:
    points = [
        point
        for point in life(new_machine, 2, tmp_path / "record")
        if not point.is_write and point.name.startswith("step:")
    ]

    tell_all(deaths(points), lambda point: killed_at(new_machine, point))


MOMENTS = {
    "inside the gate": "step:after:swap:lease",
    "a slot reserved": "step:after:swap:ledger",
    "a command nobody recorded": "step:after:start:engine",
    "a command that runs": "step:after:extend:engine",
    "a published result": "step:after:collect:engine",
}


def orphaned(new_machine: NewMachine, moment: str) -> tuple[Machine, str]:
    """A search whose worker was killed at a moment of its life."""
    machine = new_machine()
    search_id = machine.submit()
    strike = Strike(Point(MOMENTS[moment]), signal.SIGKILL)
    machine.installation.start(strike=strike).wait_gone()
    assert machine.installation.yard.store.get(search_id).state.is_attempt
    return machine, search_id


def killed_again_at(new_machine: NewMachine, point: Later) -> bool:
    """A worker killed at a moment, its heir at a point, and the heir of both."""
    machine, search_id = orphaned(new_machine, point.moment)
    strike = Strike(Point(point.name, point.count), signal.SIGKILL)
    heir = machine.installation.start(strike=strike)

    def over() -> bool:
        ended = machine.installation.yard.store.get(search_id).state.is_terminal
        return ended or not heir.is_alive()

    machine.installation.until(over, "its death")
    died = not heir.is_alive()
    heir.kill()
    last = machine.installation.start().ready()
    require_good_end(machine, [search_id])
    require_clean(machine, last)
    return died


class Later(Point, frozen=True):
    """A point in the life of an heir, whose predecessor was killed at a moment."""

    moment: str = ""


def points_of_heir(new_machine: NewMachine, moment: str, record: Path) -> list[Later]:
    """All that a process writes which goes on after a worker was killed at this moment."""
    machine, search_id = orphaned(new_machine, moment)
    heir = machine.installation.start(record=str(record)).ready()
    require_good_end(machine, [search_id])
    heir.kill()
    return [
        Later(point.name, point.count, moment)
        for point in recorded(record)
        if point.is_write and not point.name.startswith("heart:")
    ]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_an_heir_killed_at_any_write_leaves_searches_that_end_once(
    new_machine: NewMachine, deaths: Deaths, tmp_path: Path
) -> None:
    """Faults B12 and R11: recovery itself is cut short."""
    points = [
        point
        for moment in MOMENTS
        for point in points_of_heir(new_machine, moment, tmp_path / moment)
    ]

    tell_all(deaths(points), lambda point: killed_again_at(new_machine, point))


def test_an_heir_that_was_there_already_goes_on_with_the_search(new_machine: NewMachine) -> None:
    """Faults A11 and R11."""
    tell_all(
        [Point(name) for name in MOMENTS.values()], lambda point: inherited(new_machine, point)
    )


def inherited(new_machine: NewMachine, point: Point) -> bool:
    machine = new_machine()
    heir = machine.installation.start("search").ready()
    strike = Strike(point, signal.SIGKILL)
    doomed = machine.installation.start("search", strike=strike).ready()
    doomed.ask_submit(machine.request(own=True))
    own = heir.submit(machine.request(own=True))
    doomed.wait_gone()

    [other] = {search.id for search in machine.installation.yard.store.list(Filter())} - {own}
    require_good_end(machine, [own, other])
    return True


def test_a_death_before_the_attempts_are_removed_leaves_no_files_of_them(
    new_machine: NewMachine,
) -> None:
    """A cancelled or failed search may have left gigabytes there."""
    machine = new_machine()
    search_id = machine.submit()
    strike = Strike(Point("step:before:discard:engine"), signal.SIGKILL)
    machine.installation.start(strike=strike).wait_gone()
    heir = machine.installation.start().ready()
    require_good_end(machine, [search_id])
    heir.end()

    left = machine.installation.yard.files.directory(search_id).iterdir()
    assert {path.name for path in left} == {"query.fa", "result.tsv"}
