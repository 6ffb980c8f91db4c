"""Which searches a worker drives, and when each is to be stepped next."""

from __future__ import annotations

from admission_stage import Clock
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from blastyard.worker.agenda import Agenda

NAME = st.sampled_from(("s1", "s2", "s3"))


def agenda() -> tuple[Agenda, Clock]:
    clock = Clock()
    return Agenda(clock.monotonic), clock


def test_what_is_woken_is_stepped_once() -> None:
    todo, _ = agenda()
    todo.wake("s1")
    todo.wake("s1")

    assert todo.begin() == ["s1"]
    assert todo.begin() == []
    assert len(todo) == 1


def test_what_was_finished_comes_back_after_its_delay_or_never() -> None:
    todo, clock = agenda()
    for name, delay in (("s1", 5.0), ("s2", None)):
        todo.wake(name)
        todo.begin()
        assert not todo.finish(name, delay)

    assert (len(todo), todo.next_in()) == (1, 5.0)
    clock.leap(4.9)
    assert todo.begin() == []
    clock.leap(0.1)
    assert todo.next_in() == 0.0
    assert todo.begin() == ["s1"]


def test_a_wake_up_during_a_step_makes_one_more_step_at_once() -> None:
    todo, _ = agenda()
    todo.wake("s1")
    todo.begin()

    todo.wake("s1")
    assert todo.begin() == []
    assert todo.finish("s1", None)

    assert todo.begin() == ["s1"]
    assert not todo.finish("s1", None)
    assert len(todo) == 0


def test_what_is_known_already_is_not_stepped_sooner() -> None:
    todo, _ = agenda()
    todo.know("s1")
    assert todo.begin() == ["s1"]
    todo.know("s1")
    todo.finish("s1", 30.0)

    todo.know("s1")

    assert todo.begin() == []
    assert todo.next_in() == 30.0


def test_a_look_at_all_that_run_steps_only_those() -> None:
    todo, _ = agenda()
    for name, running in (("runs", True), ("waits", False)):
        todo.wake(name)
        todo.begin()
        todo.finish(name, 30.0, running=running)

    todo.wake_running()

    assert todo.begin() == ["runs"]


def test_what_runs_no_more_is_not_looked_at() -> None:
    todo, _ = agenda()
    for running in (True, False):
        todo.wake("s1")
        todo.begin()
        todo.finish("s1", 30.0, running=running)

    todo.wake_running()

    assert todo.begin() == []


def test_a_running_search_that_is_being_stepped_is_looked_at_a_second_later_and_wakes_nobody() -> (
    None
):
    """Fault Q9."""
    todo, _ = agenda()
    todo.wake("s1")
    todo.begin()
    todo.finish("s1", 30.0, running=True)
    todo.wake("s1")
    todo.begin()

    todo.wake_running()

    assert not todo.finish("s1", 30.0, running=True)
    assert todo.next_in() == 1.0
    todo.wake("s1")
    todo.begin()
    todo.finish("s1", 30.0, running=True)
    assert todo.next_in() == 30.0


def test_with_nothing_to_do_it_is_an_hour_until_the_next_step() -> None:
    todo, _ = agenda()

    assert todo.next_in() == 3600.0


class AgendaMoves(RuleBasedStateMachine):
    """Wake-ups and steps in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.todo, self.clock = agenda()
        self.busy: set[str] = set()
        self.owed: set[str] = set()
        self.driven: set[str] = set()

    @rule(by=st.sampled_from((0.0, 1.0, 10.0)))
    def time_passes(self, by: float) -> None:
        self.clock.leap(by)

    @rule(name=NAME)
    def wake(self, name: str) -> None:
        self.todo.wake(name)
        self.owed.add(name)
        self.driven.add(name)

    @rule(name=NAME)
    def know(self, name: str) -> None:
        self.todo.know(name)
        self.driven.add(name)

    @rule()
    def look_at_all_that_run(self) -> None:
        self.todo.wake_running()

    @rule()
    def begin(self) -> None:
        begun = self.todo.begin()
        assert len(set(begun)) == len(begun)
        assert not self.busy & set(begun), "two steps of one search at once"
        assert self.owed - self.busy <= set(begun), "a wake-up was lost"
        self.owed -= set(begun)
        self.busy |= set(begun)

    @rule(name=NAME, delay=st.sampled_from((None, 0.0, 5.0)), running=st.booleans())
    def finish(self, name: str, delay: float | None, running: bool) -> None:
        if name not in self.busy:
            return
        self.busy.remove(name)
        again = self.todo.finish(name, delay, running=running and delay is not None)
        assert again == (name in self.owed)
        if delay is None and not again:
            self.driven.discard(name)

    @invariant()
    def nothing_is_forgotten(self) -> None:
        assert len(self.todo) == len(self.driven)
        if self.owed - self.busy:
            assert self.todo.next_in() == 0.0


TestAgendaMoves = AgendaMoves.TestCase
TestAgendaMoves.settings = settings(stateful_step_count=30)
