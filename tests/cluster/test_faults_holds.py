"""Run slots in a namespace: kept while a search lives, free afterwards, whatever ends it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Semaphore

import pytest
from fault_command import Command, submitted
from fault_jobs import delete, end, jobs, make
from fault_service import NewService, Service
from fault_stage import NewYard, Yard, until
from gate_stage import Lab
from waiting_stage import is_full

from blastyard.admission.outcome import Granted
from blastyard.domain.errors import CallerMistake, Failure
from blastyard.domain.job import State
from blastyard.service.submitting import Fate

# -- the ceiling -----------------------------------------------------------------------------------


def test_a_lowered_ceiling_drops_nobody_and_admits_nobody_until_there_is_room(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B9."""
    yard = new_yard(ceiling=5)
    running = [f"job-{number}" for number in range(4)]
    for search in running:
        yard.hold(search)
    lab.run("gate", "ceiling", "2")

    for number, search in enumerate(running[:3], start=1):
        assert is_full(yard.ask("next", number))
        assert lab.ledger().holds.keys() == set(running)
        yard.gate.end(search)
        running.remove(search)

    assert isinstance(yard.ask("next", 4), Granted)


def test_a_raised_ceiling_admits_at_once_as_many_as_fit(lab: Lab, new_yard: NewYard) -> None:
    """Fault B10: woken by the change itself, since nobody here looks by and by."""
    yard, operators = new_yard(ceiling=1), new_yard()
    yard.hold("first")
    began = Semaphore(0)

    def begins(search: str) -> int:
        began.release()
        make(lab, search, "submit", "blast", "finalizer")
        return 0

    commands = [
        Command(yard, search, lambda _, search=search: begins(search), floor=False)
        for search in (f"job-{number}" for number in range(7))
    ]
    until(lambda: all(command.told for command in commands), yard)
    for ceiling in (3, 5, 7):
        operators.gate.change_policy("olga", ceiling=ceiling)
        for _ in range(2):
            until(lambda: began.acquire(blocking=False), yard)
        until(lambda: not lab.holder(), yard)
        assert len(lab.ledger().holds) == ceiling
        assert len(lab.ledger().tickets) == 8 - ceiling

    for command in commands:
        command.passage.stop()
    for command in commands:
        command.result()


# -- ends ------------------------------------------------------------------------------------------


def completes(lab: Lab) -> None:
    for app in ("submit", "blast", "finalizer"):
        end(lab, f"{app}-job-1")


def fails(lab: Lab) -> None:
    for app in ("submit", "blast", "finalizer"):
        end(lab, f"{app}-job-1", "Failed")


def is_deleted(lab: Lab) -> None:
    delete(lab, "elb-job-id=job-1")


def is_deleted_while_it_merges(lab: Lab) -> None:
    for app in ("submit", "blast"):
        end(lab, f"{app}-job-1")
    delete(lab, "app=blast")
    delete(lab, "app=finalizer,elb-job-id=job-1")


def is_deleted_without_its_companion(lab: Lab) -> None:
    delete(lab, "elb-job-id=job-1,!blastyard/marker")


@pytest.mark.parametrize(
    "happens",
    [completes, fails, is_deleted, is_deleted_while_it_merges, is_deleted_without_its_companion],
)
def test_the_slot_of_a_submitted_search_is_free_after_whatever_ends_it(
    lab: Lab, new_yard: NewYard, happens: Callable[[Lab], None]
) -> None:
    """Fault B11."""
    yard = new_yard(ceiling=1)
    submitted(lab, yard, "job-1")
    assert is_full(yard.ask("next"))

    happens(lab)

    frees(lab, yard)


def frees(lab: Lab, yard: Yard) -> None:
    """Nothing of the first search is left in time, and the next one gets its slot."""

    def is_clear() -> bool:
        ledger = lab.ledger()
        return "job-1" not in {*ledger.holds, *ledger.tickets} and not lab.markers("job-1")

    until(is_clear, yard)
    assert isinstance(yard.ask("next", 2), Granted)


def test_a_command_stopped_while_it_waits_leaves_its_place(lab: Lab, new_yard: NewYard) -> None:
    """Fault B11."""
    yard = new_yard(ceiling=1)
    yard.hold("other")
    waiting = Command(yard, "job-1", lambda _: 0)
    until(lambda: bool(waiting.told))

    waiting.passage.stop()

    assert waiting.result() is None
    assert not lab.ledger().tickets
    yard.gate.end("other")
    frees(lab, yard)


@pytest.mark.parametrize("code", [3, None])
def test_a_command_that_fails_or_is_stopped_leaves_its_slot_when_nothing_of_it_can_arrive(
    lab: Lab, new_yard: NewYard, code: int | None
) -> None:
    """Fault B11."""
    yard = new_yard(ceiling=1)

    def fails(ended: Event) -> int:
        make(lab, "job-1", "submit")
        if code is None:
            ended.wait()
        return code or 0

    command = Command(yard, "job-1", fails)
    if code is None:
        until(lambda: bool(jobs(lab, "elb-job-id=job-1")))
        command.passage.stop()
    result = command.result()
    assert result is not None
    assert result.fate is Fate.FAILED
    assert is_full(yard.ask("next"))

    frees(lab, yard)


def test_the_slot_of_a_submitter_that_died_inside_is_free_when_its_command_must_be_dead(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B11."""
    dying, yard = new_yard(boot_id="elsewhere"), new_yard()
    yard.gate.change_policy("olga", ceiling=1)
    dying.admit("job-1")
    dying.close()

    until(lambda: lab.holder() == "", yard)
    assert is_full(yard.ask("next"))

    frees(lab, yard)


def test_a_service_gives_its_slots_and_places_back_whatever_ends_its_searches(
    lab: Lab, new_service: NewService
) -> None:
    """Fault B11."""
    service = new_service(ceiling=1)
    desk = service.yard.searches
    running, waiting = service.submit(), service.submit()
    service.running(running)
    assert lab.markers(running) == {("stand-in", "finalizer"), ("stand-in", "submit")}

    desk.cancel(waiting)
    service.until(lambda: service.search(waiting).state is State.CANCELLED)
    assert not lab.ledger().tickets
    for ends in (service.machine.complete, desk.cancel, no_disk(service)):
        ends(running)
        service.until(lambda search=running: service.search(search).state.is_terminal)
        service.until(lambda search=running: search not in lab.ledger().holds)
        service.until(lambda search=running: not lab.markers(search))
        running = service.submit()
        service.running(running)
    service.machine.crash(running)
    service.until(lambda: service.search(running).attempt == 2)
    service.running(running)
    assert lab.ledger().holds.keys() == {running}


def no_disk(service: Service) -> Callable[[str], None]:
    failure = Failure("disk_full", "no space left", "make room")
    return lambda search: service.machine.fail(search, failure)


# -- after a while ---------------------------------------------------------------------------------


def test_no_fourth_search_is_admitted_when_everybody_starts_anew_while_three_run(lab: Lab) -> None:
    """Fault B12."""
    script = lab.submit_script()
    for number in range(3):
        lab.run("exec", "--search-id", f"job-{number}", "--", str(script), "{id}")
    assert len(lab.ledger().holds) == 3

    fourth = lab.run("exec", "--wait", "2s", "--search-id", "job-3", "--", str(script), "{id}")

    assert fourth.returncode == 121
    assert "3 running of at most 3" in fourth.stderr
    assert lab.ledger().holds.keys() == {"job-0", "job-1", "job-2"}
    assert not jobs(lab, "elb-job-id=job-3")


def test_a_search_that_can_never_fit_is_refused_with_the_numbers_and_gets_no_place(
    lab: Lab, new_service: NewService
) -> None:
    """Fault B15."""
    service = new_service(BLASTYARD_SEARCH_MEMORY_MB="1")

    with pytest.raises(
        CallerMistake, match=r"needs about [\d,]+ MiB.* one search may use 1$"
    ) as told:
        service.submit()

    assert told.value.code == "never_fits"
    assert not lab.ledger().tickets


def test_a_reserved_slot_is_counted_anew_before_its_command_runs_again(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B19."""
    yard = new_yard(ceiling=1)
    stay, first = yard.admit("ours")
    yard.gate.leave(stay)
    make(lab, "theirs", "submit", "finalizer")

    assert is_full(yard.ask("ours", 2))
    until(lambda: "ours" not in yard.gate.due().searches)

    for app in ("submit", "finalizer"):
        end(lab, f"{app}-theirs")
    until(lambda: "ours" in yard.gate.due().searches)
    again = yard.ask("ours", 3)
    assert isinstance(again, Granted)
    assert again.fence.number > first.fence.number
