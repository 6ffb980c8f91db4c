"""Searches that are handed to a cluster: what is counted, waited for, taken over and undone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from remote_service_stage import CHANCE, Process, World

from blastyard.domain.errors import Failure
from blastyard.domain.job import Phase, State
from blastyard.domain.search import RemoteRun
from blastyard.engine.remote import Failed, Retryable, Submitted
from blastyard.service.outcome import Done, Wait
from blastyard.service.remote.advance import QUIET
from blastyard.service.remote.trouble import DELAY, JITTER, MOST
from blastyard.testing.remote_engine import Died, Makes, Plan

REFUSED = Failure("submit_input", "No.", "Correct it.")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_search_is_handed_over_once_and_its_result_fetched(world: World) -> None:
    process = Process(world, "serve-1")
    search = process.live(process.submit())
    assert search.remote == RemoteRun("one-1", 1)
    hold = process.gate.ledger().holds["one"]
    assert (hold.alias, hold.watched) == ("one-1", True)
    world.cluster.finish("one-1")

    assert process.live("one").state is State.COMPLETED
    assert world.cluster.submitted == ["one-1"]
    assert process.gate.ledger().holds == {}


def test_trouble_is_counted_and_ends_the_search_with_its_code(world: World) -> None:
    """Waits between are not counted."""
    process = Process(world, "serve-1")
    world.cluster.plan = Plan(Makes.PART, Retryable("transient", "not now"))

    search = process.live(process.submit(), seconds=3600)

    assert search.state is State.FAILED
    assert search.error is not None
    assert search.error.code == "submit_failed"
    assert len(world.cluster.submitted) == MOST + 1
    assert len(set(world.cluster.submitted)) == MOST + 1
    assert world.cluster.there == {}


@pytest.mark.parametrize(
    ("asked", "reason", "seconds", "phase"),
    [
        (200.0, "capacity", 200.0, Phase.WAITING_FOR_CAPACITY),
        (200.0, "transient", 200.0, Phase.WAITING_FOR_SUBMIT_SLOT),
        (3.0, "transient", 60.0, Phase.WAITING_FOR_SUBMIT_SLOT),
        (None, "transient", 60.0, Phase.WAITING_FOR_SUBMIT_SLOT),
    ],
)
def test_a_wish_to_be_asked_later_is_obeyed_to_the_second(
    world: World, asked: float | None, reason: str, seconds: float, phase: Phase
) -> None:
    """Never before a late write of the failed command has had its time."""
    process = Process(world, "serve-1")
    world.cluster.plan = Plan(Makes.NOTHING, Retryable(reason, "not now", asked))
    process.once(process.submit())

    search = world.search("one")
    assert search.not_before_at == world.now() + timedelta(seconds=seconds)
    assert search.phase == phase
    [event] = [event for event in world.store.events("one") if event.code]
    assert event.details["retry_after_seconds"] == f"{seconds:.3f}"
    world.cluster.plan = Plan()
    running = process.live("one")
    assert running.state is State.RUNNING
    assert world.seconds >= seconds
    assert (DELAY + CHANCE * JITTER).total_seconds() == 35.0


def test_a_search_that_is_refused_keeps_its_slot_until_nothing_can_arrive(world: World) -> None:
    process = Process(world, "serve-1")
    world.cluster.plan = Plan(Makes.PART, Failed(REFUSED))
    process.submit()

    assert isinstance(process.once("one"), Done)
    assert world.search("one").error == REFUSED
    assert world.cluster.there == {}
    assert process.gate.ledger().holds["one"].failed_at is not None
    process.sweep(lambda _: True)
    assert "one" in process.gate.ledger().holds
    process.pass_time(61)
    process.once("one")
    assert process.gate.ledger().holds == {}


def test_what_a_dead_process_had_running_changes_hands_and_is_not_run_again(world: World) -> None:
    first, second = Process(world, "serve-1"), Process(world, "serve-2")
    first.live(first.submit())
    world.dead.add("serve-1")
    second.pass_time(60)

    assert second.sweep(lambda _: True).adopted == ("one",)
    search = second.live("one")

    assert (search.state, search.runner) == (State.RUNNING, "serve-2")
    assert world.cluster.submitted == ["one-1"]


def test_what_was_handed_over_is_none_of_a_machine(world: World) -> None:
    """A process that runs searches itself leaves it alone, and does not free its slot."""
    first = Process(world, "serve-1")
    first.live(first.submit())
    world.dead.add("serve-1")
    machine = Process(world, "serve-2")

    assert not machine.local_sweep()(lambda _: True).adopted
    assert world.search("one").state is State.RUNNING
    assert "one" in machine.gate.ledger().holds


@pytest.mark.parametrize("makes", list(Makes))
def test_what_a_dead_process_was_submitting_is_adopted_only_when_complete(
    world: World, makes: Makes
) -> None:
    first, second = Process(world, "serve-1"), Process(world, "serve-2")
    left_in_the_midst(world, first, makes)
    world.dead.add("serve-1")
    second.pass_time(60)
    second.sweep(lambda _: True)

    search = second.live("one")

    again = [] if makes is Makes.ALL else [f"one-{search.attempt}"]
    assert search.state is State.RUNNING
    assert world.cluster.submitted == ["one-1", *again]
    assert len(world.cluster.there) == 1
    assert world.codes("one") == ([] if makes is Makes.ALL else ["terminal_exec_unavailable"])


def test_a_second_delivery_leaves_a_row_alone_that_shows_signs_of_life(world: World) -> None:
    """Fault A14."""
    process = Process(world, "serve-1")
    left_in_the_midst(world, process, Makes.ALL)
    row = world.search("one")
    other = Process(world, "serve-1")  # another process under the same name, as workers are
    process.write(row, alive_at=world.now())

    outcome = other.once("one")

    assert outcome == Wait(QUIET, State.SUBMITTING)
    assert world.search("one").attempt == row.attempt
    other.pass_time(41)
    assert other.live("one").state is State.RUNNING
    assert world.cluster.submitted == ["one-1"]


def test_a_search_that_waits_to_be_submitted_again_can_be_cancelled(world: World) -> None:
    process = Process(world, "serve-1")
    world.cluster.plan = Plan(Makes.PART, Retryable("transient", "not now"))
    process.once(process.submit())
    process.write(world.search("one"), cancel_requested=True)

    assert isinstance(process.once("one"), Done)
    assert world.search("one").state is State.CANCELLED
    assert "one" in process.gate.ledger().holds  # until nothing of it can arrive
    process.pass_time(61)
    process.once("one")
    assert process.gate.ledger().holds == {}


def test_jobs_that_vanish_before_they_have_ended_were_cancelled(world: World) -> None:
    process = Process(world, "serve-1")
    process.live(process.submit())
    world.cluster.there.clear()

    assert isinstance(process.once("one"), Done)
    search = world.search("one")
    assert search.state is State.CANCELLED
    assert search.error is not None
    assert "another program" in search.error.message


def test_a_process_that_leaves_in_order_ends_nothing(world: World) -> None:
    first = Process(world, "serve-1")
    first.live(first.submit())
    first.handover()
    first.gate.retire()
    second = Process(world, "serve-2")
    assert world.search("one").runner == ""
    second.sweep(lambda _: True)

    assert second.live("one").state is State.RUNNING
    assert second.gate.ledger().holds["one"].submitter == "serve-2"
    assert world.cluster.submitted == ["one-1"]


def left_in_the_midst(world: World, process: Process, makes: Makes) -> None:
    """The process got as far as its submit command, and no further."""
    outcome = Submitted() if makes is Makes.ALL else Retryable("transient", "not now")
    world.cluster.plan = Plan(makes, outcome, dies=True)
    with pytest.raises(Died):
        process.once(process.submit())
    assert world.search("one").state is State.SUBMITTING
    world.cluster.plan = Plan()
