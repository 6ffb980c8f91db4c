"""An engine without processes: runs end when the test says so, or when virtual time has come.

One :class:`FakeMachine` stands for the machine; each submitter of a simulation has a
:class:`FakeEngine` on it, as each blastyard process has an engine of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock

from blastyard.domain.clock import Clock, SystemClock
from blastyard.domain.errors import CallerMistake, Failure, Misconfigured, Unavailable
from blastyard.domain.search import Run
from blastyard.engine.port import Exited, Lost, Output, Running, RunState, Task

_BOOT = "00000000-0000-0000-0000-000000000000"


_PATIENCE_SECONDS = 20.0


class Ended:
    """An ``on_exit`` that counts its calls and can be waited for."""

    def __init__(self) -> None:
        self.times = 0
        self._event = Event()
        self._lock = Lock()

    def __call__(self) -> None:
        with self._lock:
            self.times += 1
        self._event.set()

    def wait(self) -> None:
        """Wait until it was called; AssertionError when that takes too long."""
        if not self._event.wait(_PATIENCE_SECONDS):
            raise AssertionError("nobody said that the run had ended")


@dataclass(slots=True)
class FakeRun:
    """One run on the fake machine. ``state`` is ``Running`` until it ends, then for good."""

    task: Task
    ref: Run
    owner: str
    deadline: float | None
    finishes_at: float | None
    on_exit: Callable[[], None]
    state: RunState = field(default_factory=Running)

    @property
    def is_live(self) -> bool:
        """Whether it still runs."""
        return isinstance(self.state, Running)


class FakeMachine:
    """What runs, whoever started it. ``finish_after`` (seconds) ends runs well by themselves.

    ``started`` remembers every start, ``most`` the largest number of runs that were live at once:
    what an invariant wants to look at.
    """

    def __init__(self, clock: Clock | None = None, finish_after: float | None = None) -> None:
        self.clock = clock or SystemClock()
        self.finish_after = finish_after
        self.runs: list[FakeRun] = []
        self.started: list[tuple[str, int]] = []
        self.most = 0
        self.outputs: dict[Path, bytes] = {}

    def live(self) -> set[str]:
        """The ids of the searches that run now."""
        self.tick()
        return {run.task.search_id for run in self.runs if run.is_live}

    def tick(self) -> None:
        """End what virtual time has ended: finished runs, and runs past their deadline."""
        now = self.clock.monotonic()
        for run in [run for run in self.runs if run.is_live]:
            done, limit = run.finishes_at, run.deadline
            if done is not None and done <= now and (limit is None or done < limit):
                self._end(run, Exited(0, None))
            elif limit is not None and limit <= now:
                self._end(run, Lost())

    def complete(self, search_id: str) -> None:
        """The search's command ends well, now."""
        self._end(self.running(search_id), Exited(0, None))

    def fail(self, search_id: str, failure: Failure, exit_code: int = 3) -> None:
        """The search's command ends by itself, badly."""
        self._end(self.running(search_id), Exited(exit_code, failure))

    def crash(self, search_id: str) -> None:
        """The command and its guardian vanish, and nobody sees the end."""
        self._end(self.running(search_id), Lost())

    def kill_owner(self, owner: str) -> None:
        """The process that started these runs dies: its guardians end them. No callbacks."""
        for run in self.runs:
            if run.is_live and run.owner == owner:
                run.state = Lost()

    def running(self, search_id: str) -> FakeRun:
        """The live run of a search; KeyError when there is none."""
        self.tick()
        for run in self.runs:
            if run.is_live and run.task.search_id == search_id:
                return run
        raise KeyError(search_id)

    def add(self, run: FakeRun) -> None:
        """Start a run."""
        self.runs.append(run)
        self.started.append((run.task.search_id, run.ref.attempt))
        self.most = max(self.most, len([run for run in self.runs if run.is_live]))

    def find(self, ref: Run) -> FakeRun | None:
        """The run with this reference, if this machine ever had it."""
        self.tick()
        return next((run for run in self.runs if run.ref == ref), None)

    def _end(self, run: FakeRun, state: RunState) -> None:
        if run.is_live:
            run.state = state
            run.on_exit()


class FakeEngine:
    """An :class:`~blastyard.engine.port.Engine` on a :class:`FakeMachine`.

    Output is kept in memory, or written below the task's directory with ``files=True``. A task
    whose program is not an absolute path has no program: ``Misconfigured('blast_missing')``.
    """

    def __init__(
        self,
        machine: FakeMachine | None = None,
        *,
        owner: str = "owner",
        files: bool = False,
        finish_after: float | None = None,
    ) -> None:
        self.machine = machine or FakeMachine(finish_after=finish_after)
        self.owner = owner
        self._files = files

    def start(self, task: Task, deadline: float | None, on_exit: Callable[[], None]) -> Run:
        """As the port says."""
        if not task.argv[0].startswith("/"):
            raise Misconfigured("blast_missing", f"{task.argv[0]} cannot be run")
        number = len(self.machine.runs) + 1
        known = {(run.task.search_id, run.ref.attempt) for run in self.machine.runs}
        if (task.search_id, task.attempt) in known:
            raise Unavailable("internal", f"attempt {task.attempt} was started before")
        ref = Run(_BOOT, 2 * number, number, 2 * number + 1, number, task.attempt)
        after = self.machine.finish_after
        finishes_at = None if after is None else self.machine.clock.monotonic() + after
        self.machine.add(FakeRun(task, ref, self.owner, deadline, finishes_at, on_exit))
        return ref

    def extend(self, ref: Run, deadline: float | None) -> None:
        """As the port says; only its owner can, as with a real pipe."""
        run = self.machine.find(ref)
        if run and run.is_live and run.owner == self.owner:
            run.deadline = deadline

    def poll(self, task: Task, ref: Run) -> RunState:  # noqa: ARG002  (the port's)
        """As the port says."""
        run = self.machine.find(ref)
        return Lost() if run is None else run.state

    def cancel(self, ref: Run) -> None:
        """As the port says."""
        run = self.machine.find(ref)
        if run and run.is_live:
            run.state = Lost()
            run.on_exit()

    def collect(self, task: Task, ref: Run) -> Output:
        """As the port says. The content is made from the search's id."""
        match self.poll(task, ref):
            case Running():
                raise CallerMistake("search_unfinished", f"search {task.search_id} still runs")
            case Lost():
                raise CallerMistake("interrupted", f"attempt {ref.attempt} did not end by itself")
            case Exited(failure=Failure() as failure):
                raise CallerMistake(failure.code, failure.message, failure.next_step)
        content = f"result of {task.search_id}\n".encode()
        path = task.directory / f"result.{task.extension}"
        self.machine.outputs[path] = content
        if self._files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return Output(path, len(content), hashlib.sha256(content).hexdigest())

    def discard(self, task: Task) -> None:
        """As the port says: attempts leave nothing behind here."""

    def live(self) -> set[str]:
        """See :meth:`FakeMachine.live`."""
        return self.machine.live()

    def complete(self, search_id: str) -> None:
        """See :meth:`FakeMachine.complete`."""
        self.machine.complete(search_id)

    def crash(self, search_id: str) -> None:
        """See :meth:`FakeMachine.crash`."""
        self.machine.crash(search_id)
