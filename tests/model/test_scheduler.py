"""Virtual time and processes, as the simulator has them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from blastyard.testing.scheduler import (
    HotLoop,
    Process,
    Scheduler,
    Signal,
    VirtualThread,
    VirtualWatch,
)


class Stage:
    """A scheduler, one process, and what its tasks have said."""

    def __init__(self, seed: int = 0, stickiness: float = 0.0) -> None:
        self.scheduler = Scheduler(random.Random(seed), stickiness)
        self.process = Process("p")
        self.said: list[object] = []

    def spawn(self, call: Callable[[], object], process: Process | None = None) -> None:
        self.scheduler.spawn(process or self.process, "task", call)

    def run(self, limit: float = 100.0) -> None:
        self.scheduler.run(lambda: False, limit)


def test_time_leaps_to_the_next_moment_at_which_something_happens() -> None:
    stage = Stage()

    def sleepy() -> None:
        stage.scheduler.sleep(3600.0)
        stage.said.append(stage.scheduler.now)

    stage.spawn(sleepy)
    stage.run(10_000.0)
    assert stage.said == [3600.0]


def test_tasks_take_turns_where_they_pause_in_an_order_of_the_seed() -> None:
    def history(seed: int) -> list[object]:
        stage = Stage(seed)

        def speak(name: str) -> None:
            for _ in range(4):
                stage.said.append(name)
                stage.scheduler.pause()

        for name in "abc":
            stage.spawn(lambda name=name: speak(name))
        stage.run()
        return stage.said

    assert history(1) == history(1)
    assert len({tuple(history(seed)) for seed in range(20)}) > 10


def test_a_killed_process_does_nothing_any_more_but_unwinds() -> None:
    stage = Stage()

    def careful() -> None:
        try:
            stage.scheduler.sleep(10.0)
            stage.said.append("went on")
        finally:
            stage.said.append("unwound")
            stage.scheduler.sleep(1.0)
            stage.said.append("acted after its death")

    stage.spawn(careful)
    stage.scheduler.at(5.0, lambda: stage.scheduler.kill(stage.process))
    stage.run()
    assert stage.said == ["unwound"]


def test_no_handler_of_exceptions_stops_a_crash() -> None:
    stage = Stage()

    def stubborn() -> None:
        while True:
            try:
                stage.scheduler.sleep(1.0)
            except Exception:
                stage.said.append("caught")

    stage.spawn(stubborn)
    stage.scheduler.at(2.5, lambda: stage.scheduler.kill(stage.process))
    stage.run()
    assert stage.said == []
    assert stage.process.threads == []


def test_a_frozen_process_goes_on_where_it_stood_while_others_act() -> None:
    stage = Stage()
    other = Process("q")

    def tick(name: str) -> None:
        for _ in range(3):
            stage.scheduler.sleep(1.0)
            stage.said.append((name, stage.scheduler.now))

    stage.spawn(lambda: tick("frozen"))
    stage.spawn(lambda: tick("free"), other)
    stage.process.frozen_until = 50.0
    stage.run()
    assert [said for said in stage.said if said[0] == "free"][-1] == ("free", 3.0)
    assert next(said for said in stage.said if said[0] == "frozen") == ("frozen", 51.0)


def test_a_wait_ends_by_its_signal_or_by_its_time() -> None:
    stage = Stage()
    signal = Signal(stage.scheduler)

    def wait() -> None:
        stage.said.append((signal.wait(2.0), stage.scheduler.now))
        stage.said.append((signal.wait(100.0), stage.scheduler.now))
        stage.said.append((signal.wait(), stage.scheduler.now))

    stage.spawn(wait)
    stage.scheduler.at(7.0, signal.set)
    stage.run()
    assert stage.said == [(False, 2.0), (True, 7.0), (True, 7.0)]


def test_a_watch_forgets_what_it_has_told() -> None:
    stage = Stage()
    watch = VirtualWatch(stage.scheduler)

    def look() -> None:
        stage.said.append(watch.wait(5.0))
        stage.said.append(watch.wait(5.0))

    stage.spawn(look)
    stage.scheduler.at(1.0, watch.wake)
    stage.run()
    assert stage.said == [True, False]


def test_a_thread_is_joined_when_it_has_ended() -> None:
    stage = Stage()

    def main() -> None:
        thread = VirtualThread(stage.scheduler, stage.process, lambda: stage.scheduler.sleep(4.0))
        thread.start()
        thread.join()
        stage.said.append(stage.scheduler.now)

    stage.spawn(main)
    stage.run()
    assert stage.said == [4.0]


def test_a_loop_in_which_no_time_passes_is_found() -> None:
    stage = Stage()

    def spin() -> None:
        while True:
            stage.scheduler.pause()

    stage.spawn(spin)
    with pytest.raises(HotLoop):
        stage.run()


def test_at_the_end_nothing_is_left() -> None:
    stage = Stage()
    signal = Signal(stage.scheduler)
    stage.spawn(signal.wait)
    stage.spawn(lambda: stage.scheduler.sleep(1e9))
    stage.run(10.0)
    threads = list(stage.process.threads)
    stage.scheduler.end()
    assert all(task.done for task in threads)
