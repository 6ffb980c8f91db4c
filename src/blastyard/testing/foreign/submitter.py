"""A foreign program at work: one worker with an agenda, as a queue's single worker process has.

What it tells (``emit``) is one flat document for each deed, with the true time ``at``, its source
``who``, the deed ``what`` and the ``search``:

``accepted`` (``user``, ``level``); ``denied-busy`` (``holder``), ``denied-capacity`` (``count``);
``acquired`` (``holder``, ``version`` of the Lease); ``submitting``, ``submitted`` (``holder``;
``gate`` says whether it passed Gate A; ``ids`` are the labels of its objects; ``code``);
``releasing``, ``released`` (``holder``, ``version``), ``release-lost``; ``trouble`` (``detail``);
``ended`` (``outcome``: completed, cancelled, failed, gave-up).
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count as counted
from typing import Final

from blastyard.kube.wire import Wire
from blastyard.testing.foreign.api import Api, Forbidden, Unanswered
from blastyard.testing.foreign.command import Command, CommandFailed, Order
from blastyard.testing.foreign.count import count, list_jobs
from blastyard.testing.foreign.kind import Setup
from blastyard.testing.foreign.lease import Acquired, Busy, GateA
from blastyard.testing.foreign.time import Time

FAULTS: Final = 12
"""So often an API error or a lost command is tried again. Waits are not counted."""
_AGAIN_SECONDS: Final = 1.0

Emit = Callable[[dict[str, object]], None]


@dataclass(slots=True)
class _Search:
    order: Order
    number: int
    faults: int = 0
    deadlines: dict[str, float] = field(default_factory=dict)
    """Per reason of denial, until when it is waited; set at the first and never moved."""


class ForeignSubmitter:
    """Takes searches as they arrive, and brings each to its end."""

    def __init__(self, setup: Setup, wire: Wire, time: Time, emit: Emit) -> None:
        self._setup = setup
        self._time = time
        self._emit = emit
        self._chance = random.Random(f"{setup.source}/{setup.seed}")
        self._api = Api(wire, setup.namespace)
        self._gate = GateA(self._api, setup.rules, self._own_now)
        self._command = Command(self._api, time.now, time.wait)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = counted()
        began_at = time.now()
        for number in range(1, setup.searches + 1):
            self._take(number, began_at)

    def run(self) -> None:
        """Until every search has ended. What the time's ``wait`` raises ends it earlier."""
        while self._agenda:
            self.step()

    def step(self) -> None:
        """Wait for the next thing to do, and do it."""
        due, _, act = heapq.heappop(self._agenda)
        wait = due - self._time.now()
        if wait > 0:
            self._time.wait(wait)
        act()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return not self._agenda

    def _own_now(self) -> float:
        return self._time.now() + self._setup.clock_error

    def _scaled(self, seconds: float) -> float:
        return seconds * self._setup.pace.scale

    def _between(self, span: tuple[float, float]) -> float:
        return self._scaled(self._chance.uniform(*span))

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        due = self._time.now() + seconds
        heapq.heappush(self._agenda, (due, next(self._numbers), act))

    def _say(self, what: str, search: _Search, **more: object) -> None:
        self._emit(
            {
                "at": self._time.now(),
                "who": self._setup.source,
                "what": what,
                "search": search.order.id,
                **more,
            }
        )

    # -- waiting ---------------------------------------------------------------------------------

    def _take(self, number: int, began_at: float) -> None:
        name = f"job-{self._chance.getrandbits(128):032x}"
        order = Order(name, self._setup.blast_jobs, self._setup.kind.labels)
        search = _Search(order, number)
        arrives_at = began_at + self._scaled(self._setup.pace.arrival) * (number - 1)

        def arrive() -> None:
            self._say("accepted", search, user=self._setup.source, level=1)
            self._attempt(search)

        heapq.heappush(self._agenda, (arrives_at, next(self._numbers), arrive))

    def _attempt(self, search: _Search) -> None:
        """Both gates, the command, and the way out; or why not, and when again."""
        holder = f"{self._setup.source}-{self._chance.getrandbits(64):016x}"
        try:
            if not self._setup.kind.gate_a:
                return self._submit(search, "", gate=False)
            match self._gate.acquire(holder):
                case Busy(holder=other):
                    return self._denied(search, "denied-busy", holder=other)
                case Acquired(version=version):
                    self._say("acquired", search, holder=holder, version=version)
                    return self._inside(search, holder)
        except (Forbidden, Unanswered) as error:
            return self._trouble(search, f"{type(error).__name__}: {error}")

    def _inside(self, search: _Search, holder: str) -> None:
        """Holding the Lease. Whatever happens, it is let go."""
        running = self._setup.rules.ceiling
        failed = ""
        try:
            running = self._running()
            if running < self._setup.rules.ceiling:
                self._submit(search, holder, gate=True)
        except (Forbidden, Unanswered) as error:
            failed = f"{type(error).__name__}: {error}"
        self._leave(search, holder)
        if failed:
            self._trouble(search, failed)
        elif running >= self._setup.rules.ceiling:
            self._denied(search, "denied-capacity", count=running)

    def _running(self) -> int:
        if not self._setup.kind.gate_b:
            return 0
        found = count(list_jobs(self._api), self._own_now(), self._setup.rules.grace_seconds)
        return len(found.active)

    def _leave(self, search: _Search, holder: str) -> None:
        self._say("releasing", search, holder=holder)
        try:
            version = self._gate.release(holder, self._time.wait)
        except Forbidden:
            version = None
        if version is None:
            self._say("release-lost", search, holder=holder)
        else:
            self._say("released", search, holder=holder, version=version)

    def _denied(self, search: _Search, what: str, **more: object) -> None:
        self._say(what, search, **more)
        now, patience = self._time.now(), self._setup.pace.patience
        if patience is not None:
            deadline = search.deadlines.setdefault(what, now + self._scaled(patience))
            if now >= deadline:
                self._say("ended", search, outcome="gave-up")
                return
        self._retry(search)

    def _trouble(self, search: _Search, detail: str) -> None:
        search.faults += 1
        self._say("trouble", search, detail=detail)
        if search.faults > FAULTS:
            return self._say("ended", search, outcome="failed")
        return self._retry(search)

    def _retry(self, search: _Search) -> None:
        delay = self._scaled(self._setup.kind.retry(self._chance))
        self._later(delay, lambda: self._attempt(search))

    # -- running ---------------------------------------------------------------------------------

    def _submit(self, search: _Search, holder: str, *, gate: bool) -> None:
        ids = [search.order.id] if search.order.labels else []
        told = {"holder": holder, "gate": gate, "ids": ids}
        self._say("submitting", search, **told)
        try:
            self._command.submit(search.order, self._between(self._setup.pace.finalizer_delay))
        except CommandFailed as error:
            self._say("submitted", search, code=error.code, **told)
            self._say("ended", search, outcome="failed", detail=str(error))
            return
        except (Forbidden, Unanswered):
            self._say("submitted", search, code=8, **told)
            raise
        self._say("submitted", search, code=0, **told)
        life, merge = self._between(self._setup.pace.life), self._between(self._setup.pace.merge)
        every = self._setup.cancel_every
        if every and search.number % every == 0 and search.order.labels:
            self._later(life / 2, lambda: self._cancel(search))
        else:
            self._later(life, lambda: self._end_jobs(search, merge))

    def _end_jobs(self, search: _Search, merge: float) -> None:
        if self._done(lambda: self._command.end_jobs(search.order)):
            self._later(merge, lambda: self._end_finalizer(search))
        else:
            self._later(_AGAIN_SECONDS, lambda: self._end_jobs(search, merge))

    def _end_finalizer(self, search: _Search) -> None:
        if self._done(lambda: self._command.end_finalizer(search.order)):
            self._say("ended", search, outcome="completed")
        else:
            self._later(_AGAIN_SECONDS, lambda: self._end_finalizer(search))

    def _cancel(self, search: _Search) -> None:
        if self._done(lambda: self._command.cancel(search.order)):
            self._say("ended", search, outcome="cancelled")
        else:
            self._later(_AGAIN_SECONDS, lambda: self._cancel(search))

    @staticmethod
    def _done(act: Callable[[], None]) -> bool:
        try:
            act()
        except Unanswered:
            return False
        return True
