"""Gate A on real stores, processes and commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Barrier, Event, Lock, Thread

import pytest
from machine_stage import Machine, through
from test_killed_worker import require_good_end

from blastyard.admission.lease import Free
from blastyard.admission.port import LEASE
from blastyard.bootstrap.gate import this_process
from blastyard.domain.job import State
from blastyard.testing.faulty import Fault
from blastyard.testing.installation import PATIENCE_SECONDS, SHORT

NewMachine = Callable[..., Machine]


def test_a_command_is_gone_before_the_lease_of_its_cancelled_search_is_released(
    machine: Machine,
) -> None:
    """Fault A8: cancelled between the command's start and the note of it."""
    machine.actors.hold()
    alive: list[int] = []
    started = Event()
    search_id = machine.submit()

    def checkpoint(at: str) -> None:
        if at == "after:start:engine":
            machine.actors.begun()
            machine.installation.yard.searches.cancel(search_id)
            started.set()
        elif at == "before:swap:lease" and started.is_set():
            alive.append(len(machine.actors.live()))

    with machine.working(through(checkpoint)):
        ended = machine.installation.ended(search_id)
    assert ended.state is State.CANCELLED
    assert alive
    assert set(alive) == {0}


@pytest.mark.parametrize("times", [1, 6])
@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.CONFLICT, Fault.LOST_ANSWER])
def test_a_release_that_fails_is_tried_again_until_the_lease_is_free(
    new_machine: NewMachine, fault: Fault, times: int
) -> None:
    """Fault A9: the lease itself would be taken over after a minute only."""
    machine = new_machine(2, {**SHORT, "takeover": 60.0})
    left = [times]
    running = Event()
    lock = Lock()

    def checkpoint(at: str) -> None:
        if at == "after:extend:engine":
            running.set()

    def plan(operation: str, name: str) -> Fault:
        with lock:
            if (operation, name) == ("swap", LEASE) and running.is_set() and left[0] > 0:
                left[0] -= 1
                return fault
        return Fault.OK

    first = machine.submit()
    with machine.working(through(checkpoint, plan)):
        require_good_end(machine, [first])
        assert left[0] < times
        left[0] = 0
        second = machine.submit()
        require_good_end(machine, [second])
    assert isinstance(machine.installation.yard.gate.view().gate, Free)


def test_a_claim_whose_answers_were_lost_does_not_block_its_own_search(
    new_machine: NewMachine,
) -> None:
    """Fault A1: more answers in a row are lost than one attempt asks again for."""
    machine = new_machine(1, {**SHORT, "takeover": 60.0})
    left = [3]

    def plan(operation: str, name: str) -> Fault:
        if (operation, name) == ("swap", LEASE) and left[0]:
            left[0] -= 1
            return Fault.LOST_ANSWER
        return Fault.OK

    with machine.working(through(plan=plan)) as (yard, _):
        search_id = machine.submit()
        machine.installation.until(lambda: yard.store.get(search_id).attempt > 0, "an attempt")
        begun = yard.store.now()

        def over() -> bool:
            ended = yard.store.get(search_id).state.is_terminal
            return ended or (yard.store.now() - begun).total_seconds() > 6

        machine.installation.until(over, "its end, or more than ten beats")
        assert yard.store.get(search_id).state is State.COMPLETED


def test_two_deliveries_of_one_search_never_run_it_twice_at_once(machine: Machine) -> None:
    """Fault A14: two workers under one name; a second attempt comes after the first is gone."""
    search_id = machine.submit()
    together = Barrier(2, timeout=PATIENCE_SECONDS)
    waited = Lock()
    waiting = {"first", "second"}

    def meeting(who: str) -> Callable[[str], None]:
        def checkpoint(at: str) -> None:
            if at.startswith("before:update:"):
                with waited:
                    come = who in waiting
                    waiting.discard(who)
                if come:
                    together.wait()

        return checkpoint

    yard, name = machine.installation.yard, this_process("serve").name
    yard.store.update(replace(yard.store.get(search_id), runner=name))
    yard.gate.adopt(search_id, name)
    with (
        machine.working(through(meeting("first"))) as (_, first),
        machine.working(through(meeting("second"))) as (_, second),
    ):
        first.take([search_id])
        second.take([search_id])
        require_good_end(machine, [search_id])
    assert machine.actors.peak() == 1


def test_a_search_that_two_processes_want_is_looked_after_by_one(machine: Machine) -> None:
    """Fault A14."""
    search_id = machine.submit()
    rivals = [machine.installation.start("search", adopts=False) for _ in range(4)]
    for rival in rivals:
        rival.ready()
    for rival in rivals:
        rival.tell(f"take {search_id}")
    said = [rival.hear("taken") for rival in rivals]

    assert sorted(said) == ["taken False"] * 3 + ["taken True"]
    require_good_end(machine, [search_id])
    assert machine.actors.starts() == 1


def test_a_step_that_takes_longer_than_the_lease_keeps_it(machine: Machine) -> None:
    """Fault A15: signs of life come from a thread of their own."""
    go_on, inside = Event(), Event()

    def checkpoint(at: str) -> None:
        if at == "after:swap:lease":
            inside.set()
        elif at.startswith("before:update:") and inside.is_set():
            assert go_on.wait(PATIENCE_SECONDS)

    yard = machine.installation.yard
    first = machine.submit()
    takeover = yard.gate.timings.takeover
    with machine.working(through(checkpoint)):
        assert inside.wait(PATIENCE_SECONDS)
        begun = yard.store.now()
        rival = machine.installation.start("search").ready()
        second = rival.submit(machine.request(own=True))

        def outlasted() -> bool:
            seen = yard.documents.read(LEASE)
            assert first in (seen.body or b"").decode()
            return seen.stamped_at is not None and seen.stamped_at - begun > 1.5 * takeover

        machine.installation.until(outlasted, "a lease held for longer")
        go_on.set()
        require_good_end(machine, [first, second])
    assert yard.store.get(first).attempt == 1


def test_many_processes_at_the_gate_are_never_inside_together(new_machine: NewMachine) -> None:
    """Faults A1 to A3 on the real store: no two submissions overlap, every fence is new."""
    machine = new_machine(3)
    processes = [machine.installation.start("search") for _ in range(4)]
    for process in processes:
        process.ready()
    ids: list[str] = []

    def submit(number: int) -> None:
        ids.extend(processes[number].submit(machine.request(own=True)) for _ in range(3))

    threads = [Thread(target=submit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    require_good_end(machine, ids)
    events = [event for each in ids for event in machine.installation.yard.store.events(each)]
    fences = [event.reason for event in events if "fence" in event.reason]
    assert len(set(fences)) == len(fences) == 12
