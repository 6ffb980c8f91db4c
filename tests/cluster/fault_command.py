"""Submit commands of a lab's test: behind both gates in a thread, or as real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

from fault_jobs import make
from fault_stage import Yard
from gate_stage import Lab
from waiting_stage import CLOCK, PATIENCE

from blastyard.admission.outcome import Waiting
from blastyard.admission.port import Watch
from blastyard.admission.ticket import Wish
from blastyard.engine.command import Ending
from blastyard.service.entrance import Entrance, Patience
from blastyard.service.passage import FLOOR
from blastyard.service.submitting import Fate, Result, Submitting


@dataclass
class Program:
    """A submit command: ``make`` is what it does, told of its end; what it returns is its code."""

    make: Callable[[Event], int]
    begun: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)
    _code: Future[int] = field(default_factory=Future)

    def start(self, deadline: float) -> Program:
        Thread(target=self._run, daemon=True).start()
        return self

    def _run(self) -> None:
        self.begun.set()
        self._code.set_result(self.make(self.ended))

    def extend(self, deadline: float | None) -> None:
        """It ends by itself."""

    def end(self) -> None:
        self.ended.set()

    def wait(self, timeout: float | None = None) -> Ending | None:
        try:
            code = self._code.result(timeout)
        except TimeoutError:
            return None
        by = "end" if self.ended.is_set() else "itself"
        return Ending(None, 9, by) if by == "end" else Ending(code, None, by)


class OnlyBells:
    """A watch that does not end with the floor: who waits is woken by an event, or not at all."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.wake, self.close = watch.wake, watch.close

    def wait(self, timeout_seconds: float) -> bool:
        return self._watch.wait(PATIENCE if timeout_seconds >= FLOOR else timeout_seconds)


class Command:
    """One command behind both gates, in a thread of its own. ``floor=False``: it looks only when an
    event wakes it, or when it knows that something is due."""

    def __init__(
        self, yard: Yard, search: str, make: Callable[[Event], int], *, floor: bool = True
    ) -> None:
        self.program = Program(make)
        self.error: BaseException | None = None
        self.told: list[Waiting] = []
        watch = yard.opened.documents.watch()
        watch = watch if floor else OnlyBells(watch)
        entrance = Entrance(yard.gate, watch, CLOCK.monotonic, lambda: None)
        self.passage = Submitting(
            entrance,
            Wish(search, "ada", 1),
            Patience(),
            lambda waiting, _: self.told.append(waiting),
            limit=yard.gate.timings.command,
            watched=True,
        )
        self._thread = Thread(target=self._run, name=f"exec-{search}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self.passage:
                self.passage.admit(self.program.start)
        except BaseException as error:
            self.error = error

    def result(self) -> Result | None:
        """Wait for its end."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "it did not end"
        return self.passage.result


def submitted(lab: Lab, yard: Yard, search: str) -> None:
    """Have a search of ours running, submitted by a command; the test ends it."""

    def submits(_: Event) -> int:
        make(lab, search, "submit", "blast", "finalizer")
        return 0

    result = Command(yard, search, submits).result()
    assert result is not None
    assert result.fate is Fate.COMPLETE


@contextmanager
def started(lab: Lab, *words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A blastyard command as a process; nothing of it is left in the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "blastyard", *words],
        env={**lab.environment, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
