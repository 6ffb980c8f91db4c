"""A process that stands still (SIGSTOP) and goes on later hurts nobody, and loses little."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

import pytest
from machine_stage import Machine
from test_killed_worker import require_good_end

from blastyard.admission.lease import Free
from blastyard.admission.port import LEASE
from blastyard.domain.job import State
from blastyard.testing.checkpoint import Point, Strike
from blastyard.testing.installation import YardProcess

NewMachine = Callable[..., Machine]


def holder(machine: Machine) -> str:
    """Who the submit lease names."""
    body = machine.installation.yard.documents.read(LEASE).body
    return str(json.loads(body or b"{}").get("holderIdentity", ""))


def stop_at(machine: Machine, point: str, **words: str) -> tuple[YardProcess, str]:
    """A process that submits a search, runs it, and stands still at a point of that."""
    strike = Strike(Point(point), signal.SIGSTOP)
    process = machine.installation.start("search", strike=strike).ready()
    process.ask_submit(machine.request(own=True, **words))
    process.hear("striking")
    [search] = machine.installation.yard.store.live()
    return process, search.id


@pytest.mark.parametrize("ceiling", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_holder_stopped_with_its_command_has_it_ended_before_anybody_takes_over(
    new_machine: NewMachine, ceiling: int
) -> None:
    """Faults A7 and A10: and when it goes on, it erases nothing of its successor."""
    machine = new_machine(ceiling)
    machine.actors.hold()
    stopped, first = stop_at(machine, "step:after:start:engine")
    actor = machine.actors.begun()
    assert holder(machine).startswith(f"blastyard-{first}")
    other = machine.installation.start("search").ready()
    second = other.submit(machine.request(own=True))

    follower = machine.actors.begun()
    assert not actor.is_alive()
    assert machine.actors.peak() == 1
    stopped.send(signal.SIGCONT)
    machine.actors.let(follower)
    machine.actors.let_all()
    require_good_end(machine, [first, second])


@pytest.mark.slow
def test_a_holder_that_goes_on_late_does_not_touch_the_lease_of_its_successor(
    new_machine: NewMachine,
) -> None:
    """Fault A10."""
    machine = new_machine(2)
    stopped, first = stop_at(machine, "step:after:swap:lease")
    strike = Strike(Point("step:after:start:engine"), signal.SIGSTOP)
    other = machine.installation.start("search", strike=strike).ready()
    other.ask_submit(machine.request(own=True))
    other.hear("striking")
    successor = holder(machine)
    assert not successor.startswith(f"blastyard-{first}")

    before = machine.installation.yard.store.get(first)
    stopped.send(signal.SIGCONT)
    machine.installation.until(
        lambda: machine.installation.yard.store.get(first).version > before.version, "a step"
    )
    other.send(signal.SIGCONT)
    require_good_end(machine, [s.id for s in machine.installation.yard.searches.page()])


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    ["step:after:start:engine", "step:after:swap:ledger"],
)
def test_a_search_that_lost_its_turn_by_standing_still_tries_again_soon(
    machine: Machine, point: str
) -> None:
    """Fault A10: its slot must not lie idle for a floor's length."""
    stopped, search_id = stop_at(machine, point)
    yard = machine.installation.yard
    machine.installation.until(lambda: isinstance(yard.gate.view().gate, Free), "a lapsed lease")
    stopped.send(signal.SIGCONT)
    went_on = yard.clock.monotonic()

    require_good_end(machine, [search_id])
    assert yard.clock.monotonic() - went_on < 10


def test_a_stopped_process_at_the_head_of_the_queue_is_passed_over_and_keeps_its_place(
    new_machine: NewMachine,
) -> None:
    """Fault Q3."""
    machine = new_machine(1)
    machine.actors.hold()
    runs = machine.installation.start("search").ready()
    running = runs.submit(machine.request(own=True, user="eve"))
    actor = machine.actors.begun()
    head = machine.installation.start("search").ready()
    first = head.submit(machine.request(own=True, user="ada"))
    behind = machine.installation.start("search").ready()
    second = behind.submit(machine.request(own=True, user="bob"))
    head.send(signal.SIGSTOP)
    machine.actors.let(actor)

    follower = machine.actors.begun()
    assert machine.installation.yard.store.get(second).state.is_attempt
    assert machine.installation.yard.store.get(first).state is State.QUEUED
    third = behind.submit(machine.request(own=True, user="bob"))
    head.send(signal.SIGCONT)
    machine.installation.until(
        lambda: (
            machine.installation.yard.gate.submitters()[head.name].silent_for.total_seconds() < 0.5
        ),
        "a sign of life",
    )
    queue = machine.installation.yard.gate.view().queue
    assert [place.search for place in queue] == [first, third]
    machine.actors.let(follower)
    machine.actors.let_all()
    require_good_end(machine, [running, first, second, third])


def test_whoever_waits_for_a_search_takes_it_on_from_a_service_stopped_for_long(
    new_machine: NewMachine,
) -> None:
    """Fault Q3."""
    machine = new_machine(1)
    installation = machine.installation
    service = installation.start("serve").ready()
    service.send(signal.SIGSTOP)
    search_id = machine.submit()
    assert installation.yard.store.get(search_id).runner == service.name

    with machine.opened(kind="search") as yard:
        installation.until(lambda: yard.sweep.adopt(search_id), "the search")
        assert installation.yard.store.get(search_id).runner == yard.gate.me.name
    service.send(signal.SIGCONT)

    require_good_end(machine, [search_id])


def test_the_searches_of_a_process_stopped_for_long_are_taken_on_by_a_service(
    new_machine: NewMachine,
) -> None:
    """Fault Q3: and when it goes on, it finds that they are not its own any more."""
    machine = new_machine(1)
    machine.actors.hold()
    service = machine.installation.start("serve").ready()
    running = service.submit(machine.request(own=True))
    actor = machine.actors.begun()
    waits = machine.installation.start("search").ready()
    waiting = waits.submit(machine.request(own=True))
    service.submit(machine.request(own=True))
    waits.send(signal.SIGSTOP)
    machine.installation.until(
        lambda: machine.installation.yard.store.get(waiting).runner == service.name, "an heir"
    )
    waits.send(signal.SIGCONT)
    machine.actors.let(actor)
    machine.actors.let_all()

    require_good_end(machine, [running, waiting])
