"""What a worker decides: which searches it drives, which is to be stepped, and when."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from admission_stage import NOW, TIMINGS, Clock, seconds

from blastyard.admission.memory import MemoryWatch
from blastyard.admission.view import Due
from blastyard.domain.errors import BlastyardError, Unavailable
from blastyard.domain.search import Search
from blastyard.service.outcome import Done, Wait
from blastyard.service.sweep import Swept
from blastyard.worker.driver import (
    LONGEST_RETRY,
    RETRY,
    SWEEP,
    SWEEP_WAITING,
    Driver,
    Work,
    safely,
)


def unavailable() -> Unavailable:
    return Unavailable("store_unavailable", "the store did not answer")


@dataclass
class Stage:
    """What a driver is told, and what it did."""

    clock: Clock = field(default_factory=Clock)
    timings = TIMINGS
    due_now: Due = field(default_factory=lambda: Due((), (), None, NOW))
    outcomes: dict[str, Done | Wait | Exception] = field(default_factory=dict)
    adopted: tuple[str, ...] = ()
    sweeps: int = 0
    upkeeps: int = 0
    beats: int = 0
    broken: bool = False

    def due(self) -> Due:
        if self.broken:
            raise unavailable()
        return self.due_now

    def beat(self) -> None:
        self.beats += 1
        if self.broken:
            raise unavailable()

    def advance(self, search_id: str) -> Done | Wait:
        outcome = self.outcomes.get(search_id, Done())
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def sweep(self, wants: Callable[[Search], bool]) -> Swept:
        self.sweeps += 1
        return Swept(self.adopted)

    def keep_up(self) -> None:
        self.upkeeps += 1

    def driver(self) -> Driver:
        work = Work(self.advance, self.sweep, self, MemoryWatch(), lambda _: True, self.keep_up)
        return Driver(work, self.clock.monotonic)


def waits(delay: float, phase: str = "waiting_for_capacity") -> Wait:
    return Wait(seconds(delay), phase)


def stepped(driver: Driver, search: str) -> bool:
    """Step a search that must be due now."""
    assert search in driver.begin()
    return driver.step(search)


def test_what_is_taken_is_stepped_at_once() -> None:
    driver = Stage().driver()

    driver.take(["s1", "s2"])

    assert driver.begin() == ["s1", "s2"]
    assert driver.active == 2


def test_a_search_that_is_done_is_driven_no_longer() -> None:
    driver = Stage().driver()
    driver.take(["s1"])

    assert stepped(driver, "s1")
    assert driver.active == 0


def test_a_search_that_waits_is_stepped_again_after_its_delay() -> None:
    stage = Stage(outcomes={"s1": waits(4.0)})
    driver = stage.driver()
    driver.take(["s1"])

    assert stepped(driver, "s1"), "so soon that it must be planned for"
    assert driver.pause(60.0) == 4.0
    stage.clock.leap(4.0)
    assert driver.begin() == ["s1"]


def test_what_need_not_be_looked_at_for_long_asks_for_no_plan() -> None:
    """Fault Q9."""
    stage = Stage(outcomes={"s1": waits(30.0)})
    driver = stage.driver()
    driver.take(["s1"])

    assert not stepped(driver, "s1")


def test_only_those_whose_turn_it_is_are_stepped_and_the_others_are_known() -> None:
    """Fault Q9."""
    stage = Stage(outcomes={name: waits(30.0) for name in ("s1", "s2", "s3")})
    driver = stage.driver()
    stage.due_now = Due((), ("s1", "s2", "s3"), None, NOW)
    driver.plan()
    assert [stepped_ for name in driver.begin() for stepped_ in [driver.step(name)]] == [False] * 3

    stage.due_now = Due(("s2",), ("s1", "s2", "s3"), None, NOW)
    driver.plan()

    assert driver.begin() == ["s2"]
    assert driver.active == 3


def test_a_pause_ends_when_asking_again_could_help() -> None:
    """Fault Q2."""
    stage = Stage(due_now=Due((), ("s1",), NOW + seconds(0.7), NOW))
    driver = stage.driver()

    assert driver.plan() == pytest.approx(0.7)
    stage.due_now = Due((), ("s1",), NOW - seconds(3), NOW)
    assert driver.plan() == 0.0


@pytest.mark.parametrize(
    ("waiting", "every"), [((), SWEEP.total_seconds()), (("s1",), SWEEP_WAITING.total_seconds())]
)
def test_it_sweeps_at_the_beginning_and_then_now_and_then(
    waiting: tuple[str, ...], every: float
) -> None:
    stage = Stage(due_now=Due((), waiting, None, NOW))
    driver = stage.driver()

    assert driver.plan() == every
    assert driver.plan() == every
    assert (stage.sweeps, stage.upkeeps) == (1, 1)
    stage.clock.leap(every - 0.5)
    assert driver.plan() == 0.5
    stage.clock.leap(0.5)
    assert driver.plan() == every
    assert (stage.sweeps, stage.upkeeps) == (2, 2)


def test_what_a_sweep_adopts_is_stepped_at_once() -> None:
    stage = Stage(adopted=("s7",))
    driver = stage.driver()

    driver.plan()

    assert driver.begin() == ["s7"]


def test_the_end_of_a_pause_is_a_look_at_all_that_run() -> None:
    stage = Stage(outcomes={"runs": waits(30.0, "running"), "waits": waits(30.0)})
    driver = stage.driver()
    driver.take(["runs", "waits"])
    for name in driver.begin():
        driver.step(name)

    driver.resume()

    assert driver.begin() == ["runs"]


@pytest.mark.parametrize(
    "error",
    [
        unavailable(),
        BlastyardError("internal", "a step met something unexpected"),
        RuntimeError("a mistake of the program"),
    ],
)
def test_a_step_that_failed_is_tried_again_later_and_later(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """Fault A13."""
    stage = Stage(outcomes={"s1": error})
    driver = stage.driver()
    driver.take(["s1"])
    delays = []

    for _ in range(14):
        stepped(driver, "s1")
        delays.append(driver.pause(3600.0))
        stage.clock.leap(delays[-1])

    assert delays[:6] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
    assert set(delays[6:]) == {LONGEST_RETRY.total_seconds()}
    assert "search s1" in caplog.text
    stage.outcomes["s1"] = waits(0.0)
    stepped(driver, "s1")
    stage.outcomes["s1"] = error
    stepped(driver, "s1")
    assert driver.pause(3600.0) == RETRY.total_seconds(), "the count began anew"


def test_a_failure_of_one_search_does_not_delay_another() -> None:
    stage = Stage(outcomes={"s1": unavailable(), "s2": waits(0.5)})
    driver = stage.driver()
    driver.take(["s1", "s2"])

    for name in driver.begin():
        driver.step(name)

    assert driver.pause(60.0) == 0.5


def test_a_plan_that_cannot_be_made_is_made_a_second_later() -> None:
    """Fault A13."""
    stage = Stage(broken=True)
    driver = stage.driver()

    assert driver.plan() == RETRY.total_seconds()
    stage.broken = False
    assert driver.plan() == SWEEP.total_seconds()


def test_a_sign_of_life_that_fails_ends_nothing() -> None:
    """Fault A13."""
    stage = Stage(broken=True)
    driver = stage.driver()

    driver.beat()
    driver.beat()

    assert stage.beats == 2


def test_what_fails_safely_is_said_and_has_its_default(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> int:
        raise unavailable()

    def crash() -> int:
        raise ZeroDivisionError

    with caplog.at_level(logging.WARNING):
        assert (safely(fail, 7), safely(crash, 8), safely(lambda: 9, 0)) == (7, 8, 9)
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
