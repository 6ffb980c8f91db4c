"""An installation with real processes, for tests that stop, kill and restart them.

::

    nursery = Nursery()                             # once; forks processes quickly
    installation = Installation(home, nursery, environment)
    service = installation.start("serve")           # a real process with a worker
    doomed = installation.start("serve", strike=Strike(Point("step:after:start:engine"), SIGKILL))
    doomed.wait_gone()

What happens in a process is heard line by line (:meth:`YardProcess.hear`); what happens in the
store, through its own watch (:meth:`Installation.until`). Nothing here sleeps.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from blastyard.admission.timing import Timings
from blastyard.bootstrap.gate import this_process
from blastyard.bootstrap.seam import Seam
from blastyard.bootstrap.yard import Yard, open_yard
from blastyard.domain.clock import SystemClock
from blastyard.domain.search import Event, Search
from blastyard.engine.process import Process
from blastyard.settings import read_settings
from blastyard.store.port import Filter
from blastyard.testing.forking import Forker
from blastyard.testing.nursery import Order, Request, timings_of

PATIENCE_SECONDS: Final = 40.0
"""How long a test waits for what must happen before it fails."""
SHORT: Final[Mapping[str, float]] = {
    "request_timeout": 0.2,
    "margin": 0.8,
    "beat": 0.3,
    "takeover": 2.0,
    "lapse": 1.5,
    "turn": 0.5,
    "patient_turn": 2.0,
    "command": 1.0,
    "skew": 0.2,
}
"""The protocol's relations at a tenth of its pace."""

T = TypeVar("T")


class Nursery:
    """The process that forks the others; ``prefix`` is a command that starts it (an account's)."""

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        self._forker = Forker("blastyard.testing.nursery", prefix)

    def start(self, order: Order) -> YardProcess:
        """Fork a process; it is there, and not yet ready, when this returns."""
        ours, theirs = socket.socketpair()
        with theirs:
            pid = self._forker.fork(msgspec.json.encode(order), [theirs.fileno()])
        return YardProcess(pid, ours)

    def close(self) -> None:
        """End the nursery; what it has forked lives on until its own line ends."""
        self._forker.close(PATIENCE_SECONDS)


class YardProcess:
    """One forked blastyard process. ``name`` is its submitter name, once it is ready."""

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self.name = ""
        self._line = line
        self._text = b""
        self._identity = Process.find(pid)

    def hear(self, *words: str) -> str:
        """The next line that begins with one of ``words``; a ``failed`` line fails the test."""
        until = SystemClock().monotonic() + PATIENCE_SECONDS
        while True:
            while b"\n" in self._text:
                line, _, self._text = self._text.partition(b"\n")
                said = line.decode()
                if said.startswith(words):
                    return said
                if said.startswith("failed"):
                    raise AssertionError(said)
            left = until - SystemClock().monotonic()
            if not select.select([self._line], [], [], max(0.0, left))[0]:
                raise AssertionError(f"process {self.pid} did not say {words}")
            more = self._receive()
            if not more:
                raise AssertionError(f"process {self.pid} ended without a word of {words}")
            self._text += more

    def _receive(self) -> bytes:
        try:
            return self._line.recv(4096)
        except ConnectionResetError:
            return b""

    def ready(self) -> YardProcess:
        """Wait until it has opened the data directory and works."""
        self.name = self.hear("ready").split()[1]
        return self

    def tell(self, line: str) -> None:
        """Give a command."""
        try:
            self._line.sendall(line.encode() + b"\n")
        except BrokenPipeError:
            return  # it is dead: whoever waits for an answer will hear so

    def ask_submit(self, request: Request) -> None:
        """Have it submit a search; the answer is heard as ``submitted <id> <created>``."""
        self.tell(f"submit {msgspec.json.encode(request).decode()}")

    def submit(self, request: Request) -> str:
        """Have it submit a search; the id."""
        self.ask_submit(request)
        return self.hear("submitted").split()[1]

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self._identity is not None:
            self._identity.send(number)

    def is_alive(self) -> bool:
        """Whether it has not ended; a stopped one is alive."""
        return self._identity is not None and self._identity.is_alive()

    def wait_gone(self) -> None:
        """Wait for its end."""
        if self._identity is not None and not self._identity.wait_gone(PATIENCE_SECONDS):
            raise AssertionError(f"process {self.pid} has not ended")

    def kill(self) -> None:
        """Kill it, as ``kill -9`` does, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self.wait_gone()

    def end(self) -> None:
        """Let it end in good order: hand over, sign off."""
        self.tell("end")
        self.hear("ended")
        self.wait_gone()

    def close(self) -> None:
        """Leave nothing of it."""
        self.kill()
        self._line.close()


class Installation:
    """A data directory, the processes on it, and a look at it from outside (``yard``)."""

    def __init__(
        self,
        home: Path,
        nursery: Nursery,
        environment: Mapping[str, str],
        timings: Mapping[str, float] = SHORT,
    ) -> None:
        self.home = home
        self.environment = {**environment, "BLASTYARD_HOME": str(home)}
        self._nursery = nursery
        self._timings = dict(timings)
        self.processes: list[YardProcess] = []
        seam = Seam(self.timings)
        self.yard: Yard = open_yard(
            read_settings(self.environment), this_process("command"), signed_on=False, seam=seam
        )

    @property
    def timings(self) -> Timings | None:
        """The pace of this installation."""
        return timings_of(self._timings)

    def order(self, kind: str = "serve", **words: Any) -> Order:
        """An order for a process here; ``words`` are fields of :class:`Order`."""
        words = {"log": os.fspath(self.home / "log"), **words}
        return Order(self.environment, kind, timings=self._timings, **words)

    def start(
        self, kind: str = "serve", nursery: Nursery | None = None, **words: Any
    ) -> YardProcess:
        """Start a process; not yet ready when this returns."""
        process = (nursery or self._nursery).start(self.order(kind, **words))
        self.processes.append(process)
        return process

    def until(self, condition: Callable[[], T | None], what: str = "it") -> T:
        """Wait until ``condition()`` is true, asking after every change of the store."""
        clock = SystemClock()
        end = clock.monotonic() + PATIENCE_SECONDS
        watch = self.yard.documents.watch()
        try:
            while not (found := condition()):
                if clock.monotonic() > end:
                    raise AssertionError(f"{what} did not come: {self.scene()}")
                watch.wait(0.2)
            return found
        finally:
            watch.close()

    def ended(self, search_id: str) -> Search:
        """Wait until a search has ended and nothing of it is left in the ledger."""

        def condition() -> Search | None:
            search = self.yard.store.get(search_id)
            ledger = self.yard.gate.ledger()
            left = search_id in ledger.holds or search_id in ledger.tickets
            return search if search.state.is_terminal and not left else None

        return self.until(condition, f"the end of {search_id}")

    def scene(self) -> str:
        """What the store shows now, and what the processes logged: for a test that fails."""
        view = self.yard.gate.view()
        lines = [str(view.gate), str(view.ledger), f"now {view.now}"]
        lines += [f"{name}: {seen}" for name, seen in view.submitters.items()]
        for search in self.yard.store.list(Filter()):
            lines.append(f"{search.id} {search.state} {search.attempt} {search.runner}")
            lines += [f"  {each.at} {each.state}: {each.reason}" for each in self._events(search)]
        return "\n".join([*lines, self.log()[-4000:]])

    def _events(self, search: Search) -> Sequence[Event]:
        return self.yard.store.events(search.id)

    def log(self) -> str:
        """What the processes wrote into their logs."""
        path = self.home / "log"
        return path.read_text() if path.exists() else ""

    def close(self) -> None:
        """Kill every process that is left."""
        for process in self.processes:
            process.close()
        self.yard.close()
