"""Many processes in one thread, in virtual time, in an order that a seed decides.

A task is a greenlet of a simulated process. It runs until it reaches a point where others could
act (:meth:`Scheduler.pause`), sleeps, or waits; the scheduler then picks, at random, whose turn it
is. Time passes only when nobody is ready. Nothing here depends on the real clock, on hash seeds or
on threads, so the same seed makes the same run.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Final

from greenlet import getcurrent, greenlet

HOT: Final = 4000
"""So many steps without time passing are an endless loop."""


TICK: Final = 0.0005
"""Seconds that any sleep lasts at least: looking at the clock and sleeping takes time."""


class Crashed(BaseException):
    """Goes through the tasks of a process that was killed; nothing may catch it."""


class HotLoop(Exception):
    """Tasks go on and on, and time does not."""


class Process:
    """What tasks belong to: it is killed, or stopped, as a whole."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        self.frozen_until = 0.0
        self.threads: list[Task] = []


class Task:
    """One thread of a simulated process."""

    __slots__ = ("awaited", "done", "epoch", "glet", "name", "process")

    def __init__(self, process: Process, name: str, glet: greenlet) -> None:
        self.process = process
        self.name = name
        self.glet = glet
        self.epoch = 0
        self.done = False
        self.awaited: Signal | None = None


class Scheduler:
    """Runs tasks. ``stickiness`` is how likely a task goes on where others could act."""

    def __init__(self, chance: random.Random, stickiness: float = 0.0) -> None:
        self.now = 0.0
        self.steps = 0
        self.current: Task | None = None
        self._random = chance.random
        self._stickiness = stickiness
        self._ready: list[Task] = []
        self._timers: list[tuple[float, int, Task | None, int, Callable[[], None] | None]] = []
        self._processes: dict[int, Process] = {}
        self._count = 0
        self._hub = getcurrent()
        self._moved_at = 0

    # -- from outside --------------------------------------------------------------------------

    def spawn(self, process: Process, name: str, call: Callable[[], object]) -> Task:
        """Begin a task."""

        def body() -> None:
            try:
                call()
            except Crashed:
                pass
            finally:
                task.done = True

        task = Task(process, name, greenlet(body, self._hub))
        self._processes[id(process)] = process
        process.threads = [other for other in process.threads if not other.done]
        process.threads.append(task)
        self._ready.append(task)
        return task

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Call back at a moment, outside of all processes."""
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, None, 0, call))

    def kill(self, process: Process) -> None:
        """End a process at once; its tasks get no chance to touch anything outside."""
        process.dead = True
        self.at(self.now, lambda: self._throw_into(process))

    def run(self, stop: Callable[[], bool], limit: float) -> None:
        """Let tasks act until ``stop()``, or until ``limit``, or until nothing is left to do."""
        while not stop():
            task = self._next(limit)
            if task is None:
                return
            self.steps += 1
            if self.steps - self._moved_at > HOT:
                raise HotLoop(f"{task.process.name}: {task.name}")
            self.current = task
            task.glet.switch()
            self.current = None

    def end(self) -> None:
        """Unwind everything that still waits."""
        for process in self._processes.values():
            process.dead = True
            self._throw_into(process)
        self._ready.clear()
        self._timers.clear()

    # -- from within a task --------------------------------------------------------------------

    def pause(self) -> None:
        """Let others act, if it so happens."""
        if self._random() < self._stickiness:
            return
        task = self._me()
        self._ready.append(task)
        self._switch(task)

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        task = self._me()
        self._arm(task, self.now + seconds)
        self._switch(task)

    def wait(self, signal: Signal, timeout: float | None) -> bool:
        """Wait until ``signal`` is set; false when the time was over first."""
        task = self._me()
        if not signal.is_set():
            if timeout is not None:
                self._arm(task, self.now + max(0.0, timeout))
            task.awaited = signal
            signal.waiting.append(task)
            self._switch(task)
        return signal.is_set()

    def wake(self, task: Task) -> None:
        """Make a waiting task ready."""
        task.epoch += 1
        task.awaited = None
        self._ready.append(task)

    # -- inside --------------------------------------------------------------------------------

    def _me(self) -> Task:
        task = self.current
        if task is None:
            raise RuntimeError("only a task can wait")
        if task.process.dead:
            raise Crashed
        return task

    def _arm(self, task: Task, when: float) -> None:
        self._count += 1
        when = max(when, self.now + TICK)
        heapq.heappush(self._timers, (when, self._count, task, task.epoch, None))

    def _switch(self, task: Task) -> None:
        self._hub.switch()
        if task.process.dead:
            raise Crashed

    def _next(self, limit: float) -> Task | None:
        while True:
            while self._timers and self._timers[0][0] <= self.now:
                self._fire()
            if not self._ready:
                if not self._timers or self._timers[0][0] > limit:
                    self.now = max(self.now, limit)
                    return None
                self.now = self._timers[0][0]
                self._moved_at = self.steps
                continue
            index = int(self._random() * len(self._ready))
            task = self._ready[index]
            self._ready[index] = self._ready[-1]
            self._ready.pop()
            if task.done or task.process.dead:
                continue
            if task.process.frozen_until > self.now:
                self._arm(task, task.process.frozen_until)
                continue
            return task

    def _fire(self) -> None:
        _, _, task, epoch, call = heapq.heappop(self._timers)
        if call is not None:
            call()
        elif task is not None and task.epoch == epoch:
            task.epoch += 1
            if task.awaited is not None:
                task.awaited.waiting.remove(task)
                task.awaited = None
            self._ready.append(task)

    def _throw_into(self, process: Process) -> None:
        for task in process.threads:
            if not task.done and task.glet:
                self.current = task
                task.glet.throw(Crashed)
                self.current = None
        process.threads = []


class Signal:
    """An event of virtual time; what ``threading.Event`` is to threads."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._set = False
        self.waiting: list[Task] = []

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._set

    def set(self) -> None:
        """Wake all that wait, now and later."""
        self._set = True
        waiting, self.waiting = self.waiting, []
        for task in waiting:
            self._scheduler.wake(task)

    def clear(self) -> None:
        """Make later waits wait again."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it; whether it is set."""
        return self._scheduler.wait(self, timeout)


class VirtualWatch:
    """A watch of a document store, in virtual time."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._signal = Signal(scheduler)

    def wait(self, timeout_seconds: float) -> bool:
        """See the port."""
        changed = self._signal.wait(timeout_seconds)
        self._signal.clear()
        return changed

    def wake(self) -> None:
        """See the port."""
        self._signal.set()

    def close(self) -> None:
        """See the port."""
        self.wake()


class VirtualThread:
    """A task that can be started and joined, as ``threading.Thread``."""

    def __init__(self, scheduler: Scheduler, process: Process, call: Callable[[], object]) -> None:
        self._scheduler = scheduler
        self._process = process
        self._call = call
        self._ended = Signal(scheduler)

    def start(self) -> None:
        """Begin."""
        self._scheduler.spawn(self._process, "thread", self._run)

    def join(self) -> None:
        """Wait until it has ended."""
        self._ended.wait()

    def _run(self) -> None:
        try:
            self._call()
        finally:
            self._ended.set()
