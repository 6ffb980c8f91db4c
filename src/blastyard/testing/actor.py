"""One simulated process: the real gate and services, over stores that a schedule makes fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from blastyard.admission.ledger import Submitter
from blastyard.admission.port import DocumentStore
from blastyard.admission.restoration import Claim
from blastyard.domain.errors import Unavailable
from blastyard.engine.port import Limits
from blastyard.results.files import SearchFiles
from blastyard.service.task import Tasks
from blastyard.testing import faulty
from blastyard.testing.observed import ObservedGate
from blastyard.testing.schedule import Fault, Role, Trouble
from blastyard.testing.scheduler import Crashed, Process, VirtualWatch
from blastyard.testing.simulated_engine import ActorEngine

if TYPE_CHECKING:
    from blastyard.testing.world import World

R = TypeVar("R")

_WRITES: Final = frozenset({"swap", "update", "add", "start", "cancel", "extend"})
_AFTER_WRITES: Final = tuple(f"after:{operation}:" for operation in sorted(_WRITES))
_WEIGHTS: Final = {(False, False): 1, (True, False): 6, (False, True): 6, (True, True): 24}
"""How much likelier fate strikes, by whether it is a write, and whether it is inside Gate A."""
_MOST: Final = max(_WEIGHTS.values())
_LIKELIEST: Final = 0.3
_LENGTHS: Final[dict[Trouble, tuple[float, ...]]] = {
    Trouble.DELAY: (0.02, 0.4, 2.0, 4.5, 12.0, 24.0, 35.0),
    Trouble.LATE: (0.1, 3.0, 15.0, 40.0),
    Trouble.FREEZE: (3.0, 15.0, 23.0, 31.0, 40.0, 60.0, 130.0),
    Trouble.CRASH: (0.2, 2.0, 10.0, 40.0),
}
_IN_CALL: Final = {
    Trouble.LOST_REQUEST: faulty.Fault.LOST_REQUEST,
    Trouble.LOST_ANSWER: faulty.Fault.LOST_ANSWER,
    Trouble.CONFLICT: faulty.Fault.CONFLICT,
    Trouble.UNAVAILABLE: faulty.Fault.UNAVAILABLE,
}
_TIME_TAKEN: Final = frozenset({Trouble.DELAY, Trouble.FREEZE, Trouble.CRASH})


class Actor(Process):
    """A process in a slot of the schedule; what it does all its life is its subclass's matter."""

    def __init__(self, world: World, slot: int, role: Role, number: int) -> None:
        super().__init__(self._called(role, slot, number))
        self.world = world
        self.slot = slot
        self.role = role
        self.inside = 0
        """How many of its tasks are inside Gate A, or think so."""
        self.stalled_until = 0.0
        """Until when some call of it is known to take."""
        self.late = 0.0
        """By how many seconds the write that is under way is late."""
        self.on_crash: Callable[[float], None] = lambda _: None
        self._pending: faulty.Fault = faulty.Fault.OK
        self._rates = world.schedule.rates
        self._rate = sum(self._rates.values())
        self._most = min(_LIKELIEST, _MOST * self._rate)
        self.me = Submitter(self.name, role.kind, role.account, label=self.name)
        self.engine = ActorEngine(self)
        self._connect()
        files = SearchFiles(Path("/simulated"))
        self.tasks = Tasks(_Programs(), self.store, files, threads=1, limits=Limits())

    @staticmethod
    def _called(role: Role, slot: int, number: int) -> str:
        return f"{role.kind}{slot}.{number}"

    def _connect(self) -> None:
        """Reach the stores, and what is built on them."""
        shared: DocumentStore = self.world.documents
        self.documents: DocumentStore = faulty.FaultyDocumentStore(shared, self._plan, self.reach)
        self.store = faulty.FaultySearchStore(self.world.searches, self._plan, self.reach)
        self.watch: VirtualWatch = self.world.documents.subscribe(self)
        self.gate = ObservedGate(self, self._claims)

    def begin(self, live: Callable[[], None]) -> None:
        """Let it live, from now on."""
        self.world.scheduler.spawn(self, "main", live)

    def live(self) -> None:
        """What it does all its life."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop in order, if it can."""

    @property
    def has_orders(self) -> bool:
        """Whether it has yet to submit something."""
        return False

    def _claims(self) -> Sequence[Claim]:
        return ()

    # -- what goes wrong -----------------------------------------------------------------------

    def reach(self, at: str) -> None:
        """A point where others can act, and where this process can meet its fate.

        Others act before each call; what they could do after one, they can do before the next. Fate
        strikes after writes as well, since time may pass there and the process may end.
        """
        if self.dead:
            raise Crashed
        before = at[0] == "b"
        if not before and not at.startswith(_AFTER_WRITES):
            return
        fault = self._fault(at)
        if fault is not None:
            self._suffer(fault, at)
        elif before:
            self.world.scheduler.pause()

    def _fault(self, at: str) -> Fault | None:
        world = self.world
        world.points[self.slot] = count = world.points.get(self.slot, 0) + 1
        if world.schedule.faults is not None:
            return world.schedule.faults.get((self.slot, count))
        if not world.in_trouble or world.fate.random() >= self._most:
            return None
        fault = self._drawn(at)
        if fault is not None:
            world.drawn[self.slot, count] = fault
        return fault

    def _drawn(self, at: str) -> Fault | None:
        fate = self.world.fate
        weight = _WEIGHTS[at.split(":", 2)[1] in _WRITES, self.inside > 0]
        if fate.random() * self._most >= min(_LIKELIEST, weight * self._rate):
            return None
        troubles = list(self._rates)
        trouble = fate.choices(troubles, [self._rates[one] for one in troubles])[0]
        return Fault(trouble, fate.choice(_LENGTHS.get(trouble, (0.0,))))

    def _suffer(self, fault: Fault, at: str) -> None:
        scheduler = self.world.scheduler
        before = at.startswith("before")
        if fault.trouble in _TIME_TAKEN:
            self.world.note(f"{fault.trouble} {fault.seconds} at {at}")
        match fault.trouble:
            case Trouble.CRASH:
                self.crash(fault.seconds)
                raise Crashed
            case Trouble.FREEZE:
                self.frozen_until = max(self.frozen_until, scheduler.now + fault.seconds)
                scheduler.sleep(fault.seconds)
            case Trouble.DELAY:
                self.stalled_until = max(self.stalled_until, scheduler.now + fault.seconds)
                scheduler.sleep(fault.seconds)
            case Trouble.LATE if before and at.split(":", 2)[1] in ("swap", "update"):
                self.world.note(f"late by {fault.seconds}: {at}")
                self.late = fault.seconds
            case trouble if before and trouble in _IN_CALL:
                self.world.note(f"{trouble}: {at}")
                self._pending = _IN_CALL[trouble]

    def _plan(self, operation: str, name: str) -> faulty.Fault:  # noqa: ARG002
        if self.world.now < self.world.down_until:
            return faulty.Fault.UNAVAILABLE
        pending, self._pending = self._pending, faulty.Fault.OK
        return pending

    def refuse_if_planned(self, what: str) -> None:
        """For calls that are no store's: whatever the fault, they come to nothing."""
        pending, self._pending = self._pending, faulty.Fault.OK
        if pending is not faulty.Fault.OK:
            raise Unavailable("internal", f"{what} came to nothing: {pending}")

    def crash(self, back_after: float) -> None:
        """Be killed. The guardians end the commands within the schedule's delay."""
        world = self.world
        world.history.note(world.now, self.name, "KILLED")
        world.scheduler.kill(self)
        delay = world.chance.uniform(0.0, world.schedule.kill_delay)
        world.scheduler.at(world.now + delay, lambda: world.machine.kill_owner(self.name))
        self.on_crash(back_after)

    def end(self) -> None:
        """End in order: nothing of this process is left."""
        self.world.note("ends")
        self.dead = True
        self.world.machine.kill_owner(self.name)


class _Programs:
    def program(self, name: str) -> object:
        return f"/simulated/{name}"
