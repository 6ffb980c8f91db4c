"""Points in the life of a process at which a test may stop or kill it.

A point is named ``<thread>:<before|after>:<operation>:<subject>``. The thread is ``step`` (makes
the steps of searches), ``plan`` (sweeps and decides what is due), ``heart`` (signs of life) or
``main``; ids of searches and submitters are left out, so that two runs of the same story name their
points alike.
"""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Condition, current_thread, get_ident
from typing import Final, TypeVar

import msgspec

from blastyard.admission.port import DocumentStore
from blastyard.admission.timing import Timings
from blastyard.bootstrap.seam import Seam
from blastyard.domain.search import Run
from blastyard.engine.port import Engine, Output, RunState, Task
from blastyard.store.port import SearchStore
from blastyard.testing.faulty import Checkpoint, FaultyDocumentStore, FaultySearchStore

WRITES: Final = frozenset(
    ("add", "update", "delete", "swap", "start", "extend", "cancel", "collect", "discard")
)
"""The operations that change something; between two of them nobody else can see a difference."""

_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=submitter/).+|[a-z]+-\d+-\d+$")
_THREADS: Final = {"step": "step", "worker": "plan", "heartbeat": "heart"}

_CALM_SECONDS: Final = 10.0

T = TypeVar("T")


class Point(msgspec.Struct, frozen=True):
    """The ``count``-th time (from 1) that a process comes to a point."""

    name: str
    count: int = 1

    @property
    def is_write(self) -> bool:
        """Whether the operation at this point changes something."""
        return self.name.split(":")[2] in WRITES


class Strike(msgspec.Struct, frozen=True):
    """A signal that a process sends itself at a point."""

    point: Point
    signal: int


class Checkpoints:
    """Counts the points as they are passed, notes them, and strikes at one of them."""

    def __init__(
        self,
        strike: Strike | None = None,
        record: Path | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._strike = strike
        self._record = record
        self._say = say
        self._passed: Counter[str] = Counter()
        self._calm = Condition()
        self._inside: set[int] = set()
        self._striking = False

    def __call__(self, at: str) -> None:
        """Pass a point. ``at`` is ``<before|after>:<operation>:<what it is about>``."""
        name = f"{_thread()}:{_ID.sub('', at)}"
        with self._calm:
            self._calm.wait_for(lambda: not self._striking or get_ident() in self._inside)
            self._passed[name] += 1
            point = Point(name, self._passed[name])
            if self._record is not None:
                with self._record.open("ab") as file:
                    file.write(msgspec.json.encode(point) + b"\n")
            self._follow(at)
            if self._strike is not None and self._strike.point == point:
                self._strike_at(name, self._strike.signal)

    def _follow(self, at: str) -> None:
        """Know which threads are inside a call."""
        if at.startswith("before:"):
            self._inside.add(get_ident())
        else:
            self._inside.discard(get_ident())
            self._calm.notify_all()

    def _strike_at(self, name: str, number: int) -> None:
        if number == signal.SIGSTOP:
            # a process that stands still inside a transaction keeps everybody from writing, which
            # is SQLite's nature; the other threads come out first
            self._striking = True
            self._calm.wait_for(lambda: not self._inside - {get_ident()}, _CALM_SECONDS)
        self._say(f"striking {name}")
        # to this thread: sent to the process, it may be taken by another while this one goes on
        signal.pthread_kill(get_ident(), number)
        self._striking = False
        self._calm.notify_all()

    def seam(self, timings: Timings | None) -> Seam:
        """An installation whose every store and engine call is such a point, before and after."""

        def documents(inner: DocumentStore) -> DocumentStore:
            return FaultyDocumentStore(inner, checkpoint=self)

        def store(inner: SearchStore) -> SearchStore:
            return FaultySearchStore(inner, checkpoint=self)

        def engine(inner: Engine) -> Engine:
            return CheckedEngine(inner, self)

        return Seam(timings, documents, store, engine)


def recorded(record: Path) -> list[Point]:
    """The points that a process passed, in order."""
    return [msgspec.json.decode(line, type=Point) for line in record.read_bytes().splitlines()]


def _thread() -> str:
    name = current_thread().name
    return next((role for begin, role in _THREADS.items() if name.startswith(begin)), "main")


class CheckedEngine:
    """An ``Engine`` around ``inner``, with a checkpoint before and after every call."""

    def __init__(self, inner: Engine, checkpoint: Checkpoint) -> None:
        self._inner = inner
        self._checkpoint = checkpoint

    def start(self, task: Task, deadline: float | None, on_exit: Callable[[], None]) -> Run:
        """See the port, as for every operation below."""
        return self._call("start", lambda: self._inner.start(task, deadline, on_exit))

    def extend(self, ref: Run, deadline: float | None) -> None:
        self._call("extend", lambda: self._inner.extend(ref, deadline))

    def poll(self, task: Task, ref: Run) -> RunState:
        return self._call("poll", lambda: self._inner.poll(task, ref))

    def cancel(self, ref: Run) -> None:
        self._call("cancel", lambda: self._inner.cancel(ref))

    def collect(self, task: Task, ref: Run) -> Output:
        return self._call("collect", lambda: self._inner.collect(task, ref))

    def discard(self, task: Task) -> None:
        self._call("discard", lambda: self._inner.discard(task))

    def _call(self, operation: str, answer: Callable[[], T]) -> T:
        self._checkpoint(f"before:{operation}:engine")
        try:
            return answer()
        finally:
            self._checkpoint(f"after:{operation}:engine")
