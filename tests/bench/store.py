"""Ten thousand searches in the store, and a thousand waiting for their turn."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from figure import Figure, Setting, median

from blastyard.bootstrap.gate import this_process
from blastyard.bootstrap.yard import Yard, open_yard
from blastyard.domain.job import State
from blastyard.domain.program import Program
from blastyard.domain.search import Database, Event, Query, Request, Run, Search
from blastyard.engine.port import Limits, Task
from blastyard.service.advance import Advance, Stages
from blastyard.service.attempt import Attempts
from blastyard.service.ending import Endings
from blastyard.service.searches import Searches
from blastyard.service.sweep import Sweep
from blastyard.service.task import Tasks
from blastyard.service.view import queue_shape
from blastyard.service.window import Window
from blastyard.settings import Settings
from blastyard.store.port import Filter
from blastyard.testing.engine import FakeEngine
from blastyard.worker.inprocess import Work, Worker

KEPT = 10_000
WAITING = 1_000


def measure(setting: Setting) -> list[Figure]:
    """Looking at a full store, and draining a full queue."""
    setting.root.mkdir(parents=True)
    kept, waiting = (1000, 100) if setting.quick else (KEPT, WAITING)
    return [*_looking(setting, kept), *_draining(setting, waiting)]


def _yard(home: Path) -> Yard:
    yard = open_yard(Settings(home=str(home)), this_process("serve"))
    now = datetime.now(UTC)
    yard.store.add_database(Database("small", "nucl", "/nowhere/small", "", 1, 1, False, now))
    return yard


def _search(number: int, runner: str) -> Search:
    request = Request(Program.BLASTN, "small", (), "6", f"user{number % 7}", tags=("bench",))
    now = datetime.now(UTC)
    query = Query(1, 100, 100, 104, "0" * 64)
    return Search(str(uuid.uuid4()), request, query, 0, now, runner=runner)


def _looking(setting: Setting, count: int) -> list[Figure]:
    yard = _yard(setting.root / "looking")
    try:
        for number in range(count):
            search = yard.store.add(_search(number, yard.gate.me.name), Event(State.QUEUED))
            if number >= count // 10:
                yard.store.update(_cancelled(search))
        for search in yard.store.waiting(yard.gate.me.name, per_user=20):
            yard.searches._desk.window.offer(search)
        one = yard.searches.matching(Filter(limit=1))[0].id
        calls: dict[str, Callable[[], object]] = {
            "list": lambda: yard.searches.shapes(yard.searches.matching(Filter(limit=100))),
            "status": lambda: yard.searches.shape(yard.searches.get(one)),
            "gate status": lambda: _gate_status(yard.searches),
        }
        runs = setting.runs(15)
        return [
            Figure(f"{name}, {count:,} stored", _milliseconds(call, runs), "ms", "< 100", runs)
            for name, call in calls.items()
        ]
    finally:
        yard.store.close()


def _gate_status(searches: Searches) -> object:
    view = searches.queue()
    return queue_shape(view, searches.behind(view))


def _cancelled(search: Search) -> Search:

    return replace(search, state=State.CANCELLED)


def _milliseconds(call: Callable[[], object], runs: int) -> float:
    spans = []
    for _ in range(runs):
        begun = time.perf_counter()
        call()
        spans.append((time.perf_counter() - begun) * 1000)
    return median(spans)


def _draining(setting: Setting, count: int) -> list[Figure]:
    rates = [_rate(setting.root / f"draining{run}", count) for run in range(setting.runs(5))]
    return [
        Figure(f"admissions, {count:,} waiting", median(rates), "1/s", ">= 100", len(rates)),
    ]


def _rate(home: Path, count: int) -> float:
    yard = _yard(home)
    try:
        for number in range(count):
            yard.store.add(_search(number, yard.gate.me.name), Event(State.QUEUED))
        worker = _instant_worker(yard)
        begun = time.perf_counter()
        worker.run(until=lambda: not yard.store.runners())
        return count / (time.perf_counter() - begun)
    finally:
        yard.store.close()


class InstantEngine(FakeEngine):
    """Ends every search as soon as it has begun."""

    def start(self, task: Task, deadline: float | None, on_exit: Callable[[], None]) -> Run:
        """Start, and end."""
        run = super().start(task, deadline, on_exit)
        self.complete(task.search_id)
        return run


def _instant_worker(yard: Yard) -> Worker:
    """A worker whose searches end as soon as they have begun."""
    engine = InstantEngine()
    tasks = Tasks(yard.toolchain, yard.store, yard.files, threads=1, limits=Limits())
    endings = Endings(yard.store, lambda: "none")
    window = Window(yard.store, yard.gate, yard.clock.monotonic)
    workers: list[Worker] = []

    def woken(search_id: str) -> None:
        workers[0].wake(search_id)

    attempts = Attempts(yard.store, yard.gate, engine, tasks, woken)
    stages = Stages(yard.store, yard.gate, engine, tasks, attempts, window, endings)
    sweep = Sweep(yard.store, yard.gate, engine, tasks, endings)
    watch = yard.documents.watch()
    workers.append(
        Worker(
            Work(Advance(stages), sweep, yard.gate, watch, lambda _: True, window.refill),
            yard.clock,
        )
    )
    return workers[0]
