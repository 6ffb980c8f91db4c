"""A namespace in memory, in which a test moves every hand: who acts, when, and what is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Final

from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt, Submission
from blastyard.admission.kubernetes.codec import place
from blastyard.admission.kubernetes.marker_job import MARKER, SEARCH_ID
from blastyard.admission.ledger import Policy, Submitter
from blastyard.admission.outcome import Granted, Refused, Waiting
from blastyard.admission.outlook import GateSettings, Surroundings
from blastyard.admission.restoration import Claim
from blastyard.admission.stay import Stay
from blastyard.admission.tending import Tending
from blastyard.admission.ticket import Wish
from blastyard.admission.timing import Timings
from blastyard.domain.errors import Unavailable
from blastyard.testing.cluster.gate import Connection
from blastyard.testing.cluster.wire import NAMESPACE
from blastyard.testing.faulty_wire import FaultyWire
from blastyard.testing.foreign.api import Api
from blastyard.testing.foreign.command import JOBS, Command, Order
from blastyard.testing.foreign.count import count as counted
from blastyard.testing.foreign.count import is_terminal, list_jobs
from blastyard.testing.foreign.kind import Rules
from blastyard.testing.foreign.lease import Busy, GateA
from blastyard.testing.line import VirtualLine
from blastyard.testing.memory_api import MemoryApi
from blastyard.testing.scheduler import Process, Scheduler
from blastyard.testing.wire_fault import FINE, Trouble, WireFault

EPOCH: Final = datetime(2031, 5, 1, 12, tzinfo=UTC)
TIMINGS: Final = Timings()
STAND_IN: Final = "jobs/blastyard-r-"
"""How the names of a stand-in's Jobs begin."""
_STEP: Final = 5.0


class Died(BaseException):
    """Its process was killed in the midst of a call."""


class Scene:
    """The namespace, and time."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.clock_error = 0.0
        """Seconds by which the API server's clock is ahead of what it was at first."""
        self.scheduler = Scheduler(Random(1))
        self.line = VirtualLine(self.scheduler)
        self.api = MemoryApi(
            self.now,
            self.line.monotonic,
            signal=self.line.signal,
            namespaces=(NAMESPACE,),
            seed=1,
        )
        self.hand = Api(self.api.client("kubectl"), NAMESPACE)
        """Somebody with kubectl, and submit commands."""
        self.command = Command(self.hand, self.true_time, self.scheduler.sleep)
        self.dead: set[str] = set()
        self._uids = count(1)

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.scheduler.now + self.clock_error)

    def true_time(self) -> float:
        return EPOCH.timestamp() + self.scheduler.now

    def new_uid(self) -> str:
        return f"uid-{next(self._uids)}"

    def yard(self, name: str, claims: Callable[[], Sequence[Claim]] = tuple) -> Yard:
        """One more blastyard, which has signed on and follows the namespace."""
        yard = Yard(self, name, claims)
        yard.lives()
        self.pass_time(1.0)
        return yard

    def pass_time(self, seconds: float, *alive: Yard) -> None:
        """Let time pass; these do meanwhile what processes do now and then."""
        until = self.scheduler.now + seconds
        while self.scheduler.now < until:
            self.scheduler.sleep(min(_STEP, until - self.scheduler.now))
            self.api.tick()
            for yard in alive:
                yard.lives()

    def kill(self, yard: Yard) -> None:
        """End a process, whatever it is doing."""
        self.dead.add(yard.name)
        self.scheduler.kill(yard)

    # -- what runs -------------------------------------------------------------------------------

    def complete(self, search: str, *apps: str) -> None:
        """Have Jobs of a search end well; all but its markers if none are named."""
        for name, job in self.api.documents("jobs", NAMESPACE).items():
            labels = job["metadata"].get("labels", {})
            wanted = labels.get("app") in apps or not apps
            if labels.get(SEARCH_ID) == search and MARKER not in labels and wanted:
                self.api.complete(NAMESPACE, name)

    def running(self) -> set[str]:
        """The searches of which something other than a marker lives."""
        live = [
            job["metadata"].get("labels", {})
            for job in self.api.documents("jobs", NAMESPACE).values()
            if not is_terminal(job)
        ]
        return {
            labels[SEARCH_ID] for labels in live if SEARCH_ID in labels and MARKER not in labels
        }

    def makes(self, search: str) -> None:
        """A submit command makes all Jobs of a search."""
        self.command.submit(Order(search, 1), 0.0)

    def delete(self, selector: str) -> None:
        """Somebody deletes all Jobs that a selector finds, by hand."""
        self._deleted(JOBS, {"labelSelector": selector})

    def lose(self, document: str) -> None:
        """Somebody deletes one of admission's documents by hand."""
        where = place(NAMESPACE, document)
        kind = where.resource
        self._deleted(f"{kind.group or 'core'}/{kind.version}/{kind.plural}/{where.name}", {})

    def _deleted(self, what: str, query: dict[str, str]) -> None:
        status, found = self.hand.ask("DELETE", what, query=query)
        assert status == 200, found


class Yard(Process):
    """A blastyard. ``meets`` says what happens when it comes to a point of its calls, once."""

    def __init__(self, scene: Scene, name: str, claims: Callable[[], Sequence[Claim]]) -> None:
        super().__init__(name)
        self.meets: dict[tuple[str, ...], Callable[[], object]] = {}
        self.is_cut_off = False
        self._scene = scene
        self._beaten_at = float("-inf")
        wire = FaultyWire(scene.api.client(name), scene.line, self._plan, self._reach)
        monotonic = scene.line.monotonic
        connection = Connection(wire, scene.scheduler, monotonic, name)
        around = Surroundings(
            monotonic,
            lambda submitter: submitter.name in scene.dead,
            connection.census,
            scene.new_uid,
            claims,
            connection.markers(TIMINGS.marker),
        )
        settings = GateSettings(Policy(scene.ceiling), TIMINGS, shared=True)
        me = Submitter(name, name.partition("-")[0], 1000, installation=name)
        self.gate = Gate(connection.documents, me, settings, around)
        self.tend = Tending(self.gate, scene.new_uid, connection.informer.onlooker)
        for loop in connection.informer.loops:
            scene.scheduler.spawn(self, "informer", loop)

    def lives(self) -> None:
        """A sign of life when it is time, and the upkeep."""
        now = self._scene.scheduler.now
        if now - self._beaten_at >= TIMINGS.beat.total_seconds():
            self._beaten_at = now
            self.gate.beat()
        self.tend()

    def cut_off(self) -> None:
        """Have none of its requests arrive, from the one that it makes now on."""
        self.is_cut_off = True

    def admit(self, search: str, **wish: str) -> tuple[Stay, Granted]:
        """Queue, go inside Gate A and reserve; the caller leaves."""
        self.gate.publish([Wish(search, "ada", 1, **wish)])
        stay = self.gate.enter(search, 1)
        assert isinstance(stay, Stay), stay
        try:
            granted = stay.reserve(Attempt(search, 1, self.name))
        except Unavailable:
            self.gate.leave(stay)
            raise
        assert isinstance(granted, Granted), granted
        return stay, granted

    def ask(self, search: str, number: int = 1) -> Granted | Waiting | Refused:
        """Ask for a slot inside Gate A, whatever a glance says, and leave. New searches queue."""
        self.gate.publish([Wish(search, "ada", 1)])
        stay = self.gate.enter(search, number)
        if isinstance(stay, Waiting):
            return stay
        try:
            return stay.reserve(Attempt(search, number, self.name))
        finally:
            self.gate.leave(stay)

    def submits(self, search: str, **wish: str) -> None:
        """A search whose command makes its Jobs, which go on without us; peers see them."""
        stay, granted = self.admit(search, **wish)
        self._scene.makes(search)
        made = Submission(marked=True)
        self.gate.marking.companions(search, self.gate.ledger().holds[search], made)
        assert stay.confirm(search, granted.fence, made)
        self.gate.marking.drop_stand_in(search)
        self.gate.leave(stay)

    def computes(self, search: str) -> None:
        """A search that runs on a machine of its own, so that only its stand-in shows it."""
        stay, granted = self.admit(search)
        assert stay.confirm(search, granted.fence)
        self.gate.leave(stay)

    def _plan(self, verb: str, resource: str) -> WireFault:
        return WireFault(Trouble.LOST_REQUEST) if self.is_cut_off else FINE

    def _reach(self, at: str) -> None:
        if self.dead:
            raise Died
        for points in list(self.meets):
            if at.startswith(points):
                self.meets.pop(points)()


class Peer:
    """A program that is no blastyard, and does what such programs do."""

    def __init__(self, scene: Scene, ceiling: int = 1) -> None:
        self._scene = scene
        self._api = Api(scene.api.client("elb"), NAMESPACE)
        self._rules = Rules(ceiling)
        self.gate = GateA(self._api, self._rules, scene.true_time)

    def counts(self) -> frozenset[str]:
        """The searches that it counts."""
        jobs = list_jobs(self._api)
        return counted(jobs, self._scene.true_time(), self._rules.grace_seconds).active

    def tries(self, search: str) -> bool:
        """Go inside Gate A, count, and submit if there is room."""
        holder = f"elb-{search}"
        if isinstance(self.gate.acquire(holder), Busy):
            return False
        has_room = len(self.counts()) < self._rules.ceiling
        if has_room:
            self._scene.makes(search)
        self.gate.release(holder, self._scene.scheduler.sleep)
        return has_room

    def cancels(self, search: str) -> None:
        """Cancel a search as such programs do, whoever's it is."""
        self._scene.delete(f"app in (blast,submit),elb-job-id={search}")
