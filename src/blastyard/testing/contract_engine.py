"""The suite that every engine must pass.

A test module subclasses :class:`EngineContract` and gives it a fixture ``rig``: an
:class:`EngineRig`, which has the engine under test and can do to its runs what a machine does.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

import pytest

from blastyard.domain.errors import CallerMistake, Misconfigured, Unavailable
from blastyard.domain.search import Run
from blastyard.engine.port import Engine, Exited, Lost, Running, Task
from blastyard.testing.engine import Ended


class EngineRig(Protocol):
    """An engine, and the means to make its runs end."""

    engine: Engine
    other: Engine
    """An engine of another process on the same machine."""

    def task(self, search_id: str, attempt: int = 1) -> Task:
        """A task whose command writes a little, then waits to be told how to end."""
        ...

    def broken_task(self) -> Task:
        """A task whose program is not there."""
        ...

    def complete(self, search_id: str) -> None:
        """Have the search's command end well."""
        ...

    def fail(self, search_id: str) -> None:
        """Have it end by itself with an error."""
        ...

    def crash(self, search_id: str, ref: Run) -> None:
        """Have the command and what guards it vanish."""
        ...

    def live(self) -> set[str]:
        """The ids of the searches of which any process runs."""
        ...

    def soon(self) -> float:
        """A deadline a moment from now, on the engine's clock."""
        ...

    def pass_deadline(self) -> None:
        """Let a virtual clock go past any deadline given by :meth:`soon`; a real one goes."""
        ...


def begun(rig: EngineRig, deadline: float | None = None) -> tuple[Task, Run, Ended]:
    """A task of the search ``one``, its run, and who is told of the end."""
    task, ended = rig.task("one"), Ended()
    return task, rig.engine.start(task, deadline, ended), ended


def completed(rig: EngineRig) -> tuple[Task, Run, Ended]:
    """The same after the run ended well, and that was said."""
    task, ref, ended = begun(rig)
    rig.complete("one")
    ended.wait()
    return task, ref, ended


class EngineContract:
    """What :mod:`blastyard.engine.port` promises."""

    @pytest.fixture
    def rig(self) -> EngineRig:
        """The engine under test; a subclass provides it."""
        raise NotImplementedError

    def test_a_started_run_is_running_for_everybody(self, rig: EngineRig) -> None:
        task, ref, _ = begun(rig)

        assert ref.attempt == task.attempt
        assert isinstance(rig.engine.poll(task, ref), Running)
        assert isinstance(rig.other.poll(task, ref), Running)
        assert rig.live() == {"one"}

    def test_a_run_that_ends_well_is_said_once_and_published(self, rig: EngineRig) -> None:
        task, ref, ended = completed(rig)

        state = rig.engine.poll(task, ref)
        output = rig.engine.collect(task, ref)
        content = output.path.read_bytes()
        assert isinstance(state, Exited)
        assert state.exit_code == 0
        assert state.failure is None
        assert rig.live() == set()
        assert output.path == task.directory / f"result.{task.extension}"
        assert output.size == len(content) > 0
        assert output.sha256 == hashlib.sha256(content).hexdigest()
        assert ended.times == 1

    def test_collecting_again_gives_the_same_answer(self, rig: EngineRig) -> None:
        task, ref, _ = completed(rig)

        first = rig.engine.collect(task, ref)
        assert rig.engine.collect(task, ref) == first
        assert rig.other.collect(task, ref) == first
        assert isinstance(rig.other.poll(task, ref), Exited)

    def test_a_running_search_has_nothing_to_collect(self, rig: EngineRig) -> None:
        task, ref, _ = begun(rig)

        with pytest.raises(CallerMistake) as caught:
            rig.engine.collect(task, ref)
        assert caught.value.code == "search_unfinished"
        assert not (task.directory / f"result.{task.extension}").exists()

    def test_a_run_that_ends_badly_has_a_named_cause_and_no_output(self, rig: EngineRig) -> None:
        task, ref, ended = begun(rig)
        rig.fail("one")
        ended.wait()

        for engine in (rig.engine, rig.other):
            state = engine.poll(task, ref)
            assert isinstance(state, Exited)
            assert state.failure is not None
            assert state.failure.message
            assert state.failure.next_step
            with pytest.raises(CallerMistake) as caught:
                engine.collect(task, ref)
            assert caught.value.code == state.failure.code
        assert not (task.directory / f"result.{task.extension}").exists()

    def test_a_cancelled_run_is_gone_when_cancel_returns(self, rig: EngineRig) -> None:
        task, ref, ended = begun(rig)
        rig.engine.cancel(ref)

        assert rig.live() == set()
        assert isinstance(rig.engine.poll(task, ref), Lost)
        with pytest.raises(CallerMistake) as caught:
            rig.engine.collect(task, ref)
        assert caught.value.code == "interrupted"
        ended.wait()
        rig.engine.cancel(ref)
        rig.other.cancel(ref)
        assert ended.times == 1

    def test_another_process_may_cancel(self, rig: EngineRig) -> None:
        task, ref, ended = begun(rig)
        rig.other.cancel(ref)

        assert rig.live() == set()
        ended.wait()
        assert isinstance(rig.engine.poll(task, ref), Lost)
        assert isinstance(rig.other.poll(task, ref), Lost)

    def test_cancelling_what_has_ended_changes_nothing(self, rig: EngineRig) -> None:
        task, ref, _ = completed(rig)
        rig.engine.cancel(ref)

        assert isinstance(rig.engine.poll(task, ref), Exited)
        assert rig.engine.collect(task, ref).size > 0

    def test_a_run_whose_end_nobody_saw_is_lost(self, rig: EngineRig) -> None:
        task, ref, ended = begun(rig)
        rig.crash("one", ref)
        ended.wait()

        assert isinstance(rig.engine.poll(task, ref), Lost)
        assert isinstance(rig.other.poll(task, ref), Lost)
        assert rig.live() == set()

    def test_a_run_ends_at_its_deadline(self, rig: EngineRig) -> None:
        task, ref, ended = begun(rig, rig.soon())
        rig.pass_deadline()
        assert isinstance(rig.engine.poll(task, ref), Running | Lost)
        ended.wait()

        assert rig.live() == set()
        assert isinstance(rig.engine.poll(task, ref), Lost)

    def test_a_run_that_starts_after_its_deadline_is_lost(self, rig: EngineRig) -> None:
        task, ref, ended = begun(rig, rig.soon() - 100)
        rig.live()
        ended.wait()

        assert rig.live() == set()
        assert isinstance(rig.engine.poll(task, ref), Lost)

    def test_an_extended_run_outlives_its_first_deadline(self, rig: EngineRig) -> None:
        timer, deadline = Ended(), rig.soon()
        task, ref, _ = begun(rig, deadline)
        rig.engine.extend(ref, None)
        rig.engine.start(rig.task("timer"), deadline, timer)
        rig.pass_deadline()
        rig.live()
        timer.wait()

        assert isinstance(rig.engine.poll(task, ref), Running)
        assert rig.live() == {"one"}

    def test_a_retry_publishes_its_own_output(self, rig: EngineRig) -> None:
        first, second, ended = rig.task("one"), rig.task("one", attempt=2), Ended()
        lost = rig.engine.start(first, None, Ended())
        rig.engine.cancel(lost)
        ref = rig.engine.start(second, None, ended)
        rig.complete("one")
        ended.wait()

        assert rig.engine.collect(second, ref).size > 0
        assert isinstance(rig.engine.poll(first, lost), Lost)

    def test_an_attempt_is_started_once(self, rig: EngineRig) -> None:
        task, _, _ = begun(rig)

        with pytest.raises(Unavailable):
            rig.other.start(task, None, Ended())
        assert rig.live() == {"one"}

    def test_two_searches_share_nothing(self, rig: EngineRig) -> None:
        """Fault R12."""
        ended = {name: Ended() for name in ("one", "two")}
        tasks = {name: rig.task(name) for name in ended}
        refs = {name: rig.engine.start(tasks[name], None, ended[name]) for name in ended}
        for name, told in ended.items():
            rig.complete(name)
            told.wait()

        texts = {rig.engine.collect(tasks[name], refs[name]).path.read_text() for name in ended}
        assert len(texts) == 2

    def test_a_program_that_is_not_there_is_said_to_be_missing(self, rig: EngineRig) -> None:
        with pytest.raises(Misconfigured) as caught:
            rig.engine.start(rig.broken_task(), None, Ended())
        assert caught.value.code == "blast_missing"
        assert rig.live() == set()

    def test_discarding_keeps_the_published_result(self, rig: EngineRig) -> None:
        task, ref, _ = completed(rig)
        output = rig.engine.collect(task, ref)
        rig.engine.discard(task)

        assert [path.name for path in task.directory.iterdir()] == [output.path.name]
        rig.engine.discard(task)
