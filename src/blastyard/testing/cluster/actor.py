"""A simulated process on the cluster: the real client, informer, documents and gate."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from blastyard.admission.ledger import Submitter
from blastyard.admission.tending import Tending
from blastyard.testing import faulty
from blastyard.testing.actor import Actor
from blastyard.testing.cluster.gate import ClusterGate, Connection, gone
from blastyard.testing.cluster.wire import LENGTHS, ObservedWire, VirtualLine, wire_fault
from blastyard.testing.faulty_wire import FaultyWire
from blastyard.testing.schedule import Fault, Kind, Role, Trouble
from blastyard.testing.scheduler import Crashed
from blastyard.testing.wire_fault import FINE, Ailment, WireFault
from blastyard.testing.wire_fault import Trouble as WireTrouble

if TYPE_CHECKING:
    from blastyard.testing.cluster.world import ClusterWorld

_WRITES: Final = (
    "update",
    "create",
    "patch",
    "delete",
    "deletecollection",
    "add",
    "start",
    "cancel",
)
_RESOURCES: Final = ("leases", "configmaps", "jobs")
_DOWN: Final = WireFault(WireTrouble.REFUSED)


def _installation(role: Role, slot: int, number: int) -> str:
    """One without a store is an installation of its own."""
    return f"site{slot:02}" if role.kind is Kind.SERVE else f"lone{slot:02}n{number}"


class OnCluster(Actor):
    """Mixed into an actor, gives it admission on the cluster instead of this machine's."""

    world: ClusterWorld
    likeliest: ClassVar[float] = 0.3

    @staticmethod
    def _called(role: Role, slot: int, number: int) -> str:
        return f"{role.kind}-{slot}.{number}-{_installation(role, slot, number)}"

    def _connect(self) -> None:
        world = self.world
        self.installation = self.name.rpartition("-")[2]
        self.me = msgspec.structs.replace(self.me, installation=self.installation)
        self._wire_fault = FINE
        self._ears = Random(f"ears {world.schedule.seed} {self.name}")
        wire = FaultyWire(
            ObservedWire(world, self, "blastyard"), VirtualLine(world), self._wire_plan, self.reach
        )
        self.connection = Connection(wire, world.scheduler, world.clock.monotonic, self.name)
        self.documents = self.connection.documents
        self.store = faulty.FaultySearchStore(
            world.searches_of(self.installation), self._plan, self.reach
        )
        self.watch = self.documents.watch()  # type: ignore[assignment]
        self.gate = ClusterGate(self, self.connection, self._claims)
        self.tend = Tending(self.gate, world.new_uid, self.connection.informer.onlooker)

    def is_gone(self, submitter: Submitter) -> bool:
        """Whether a submitter has certainly ended, as far as this process can tell."""
        return gone(submitter, self.world.has_died, self.role.account, self.installation)

    def follow(self) -> None:
        """Run the informer's loops."""
        for loop in self.connection.informer.loops:
            self.world.scheduler.spawn(self, "informer", loop)

    def disconnect(self) -> None:
        """Let go of the streams."""
        self.connection.documents.close()

    # -- what goes wrong -----------------------------------------------------------------------

    def reach(self, at: str) -> None:
        """As on one machine, at the verbs of the API as well."""
        if self.dead:
            raise Crashed
        before = at[0] == "b"
        if not before and at.split(":", 2)[1] not in _WRITES:
            return
        fault = self._fault(at)
        if fault is not None:
            self._suffer(fault, at)
        elif before:
            self.world.scheduler.pause()

    def _drawn(self, at: str) -> Fault | None:
        fate = self.world.fate
        write = at.split(":", 2)[1] in _WRITES
        weight = (24 if write else 6) if self.inside > 0 else (6 if write else 1)
        if fate.random() * self._most >= min(self.likeliest, weight * self._rate):
            return None
        troubles = list(self._rates)
        trouble = fate.choices(troubles, [self._rates[one] for one in troubles])[0]
        return Fault(trouble, fate.choice(LENGTHS.get(trouble, (0.0,))))

    def _suffer(self, fault: Fault, at: str) -> None:
        on_wire = at.split(":", 2)[2].startswith(_RESOURCES)
        if fault.trouble in (Trouble.CRASH, Trouble.FREEZE) or not on_wire:
            super()._suffer(fault, at)
        elif at.startswith("before"):
            self.world.note(f"{fault.trouble} {fault.seconds or ''}: {at}")
            if fault.trouble is Trouble.DELAY:
                self.stalled_until = max(self.stalled_until, self.world.now + abs(fault.seconds))
            self._wire_fault = wire_fault(fault)

    def _wire_plan(self, verb: str, resource: str) -> WireFault:  # noqa: ARG002
        fault, self._wire_fault = self._wire_fault, FINE
        if self.world.now < self.world.down_until:
            return _DOWN
        if verb == "watch" and self.world.in_trouble and self.world.schedule.ailments:
            return WireFault(fault.trouble, fault.before, fault.after, lines=self._hear)
        return fault

    def _hear(self, index: int, line: bytes) -> Ailment:  # noqa: ARG002
        if not self.world.in_trouble:
            return Ailment.OK
        ailments = self.world.schedule.ailments
        drawn = self._ears.random()
        for ailment, rate in ailments.items():
            if drawn < rate:
                self.world.note(f"watch: {ailment}")
                return ailment
            drawn -= rate
        return Ailment.OK

    def crash(self, back_after: float) -> None:
        """Be killed; the guardians of submit commands end them as well."""
        delay = self.world.chance.uniform(0.0, self.world.schedule.kill_delay)
        self.world.scheduler.at(self.world.now + delay, lambda: self.world.end_commands_of(self))
        super().crash(back_after)
        self.disconnect()

    def end(self) -> None:
        """End in order."""
        super().end()
        self.disconnect()
        self.world.end_commands_of(self)
