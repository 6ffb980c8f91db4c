"""What comes over a simulation from outside: operators, clocks, hands in the store."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from blastyard.admission.lease import SubmitLease, format_time
from blastyard.admission.ledger import FORMAT, decode_ledger, encode
from blastyard.admission.port import LEASE, LEDGER
from blastyard.domain.errors import CallerMistake
from blastyard.domain.search import DatabaseState
from blastyard.testing.cast import Errand, Runner
from blastyard.testing.schedule import Deed, Intervention, Kind, Role, order_name

if TYPE_CHECKING:
    from blastyard.testing.actor import Actor
    from blastyard.testing.world import World

OPERATOR_SLOT: Final = 90
_FOREIGN_SECONDS: Final = 20.0
_TRIES: Final = 200
"""How often operators ask who put right what others have left."""


class Outside:
    """Does the interventions of a schedule, as far as they are the same everywhere."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._errands = 0
        self._under_way: list[Errand] = []

    def errand(self, account: int = 0) -> Errand:
        """A short process of an operator."""
        self._errands += 1
        errand = self._operator(Role(Kind.COMMAND, account), self._errands)
        self._world.everyone[errand.name] = errand
        self._under_way.append(errand)
        return errand

    def _operator(self, role: Role, number: int) -> Errand:
        return Errand(self._world, OPERATOR_SLOT, role, number)

    def put_right(self, ceiling: int) -> None:
        """What operators have not done by now they leave undone; nothing stays closed or parked."""
        for errand in self._under_way:
            if not errand.dead:
                errand.crash(0.0)
        self._under_way = []

        def open_up(errand: Errand) -> None:
            errand.gate.change_policy(errand.name, ceiling=ceiling)
            for name in self._world.orders:
                errand.gate.unpark(name)

        self.errand().run(open_up, tries=_TRIES)

    def do(self, deed: Intervention) -> None:
        """Do one, now."""
        self._world.note(f"{deed.deed} {deed.target} {deed.value}")
        self._do(deed)

    def _do(self, deed: Intervention) -> None:
        match deed.deed:
            case Deed.FREEZE | Deed.CRASH | Deed.STOP:
                self._to_process(deed)
            case Deed.CLOCK:
                self._set_clock(deed.value)
            case Deed.DOWN:
                self._world.down_until = self._world.now + deed.value
            case _:
                self.errand().run(lambda errand: self._ask(errand, deed))

    def _ask(self, errand: Errand, deed: Intervention) -> None:
        """Be an operator; here it is only the ceiling."""
        if deed.deed is not Deed.CEILING:
            raise NotImplementedError(deed.deed)
        errand.gate.change_policy(errand.name, ceiling=int(deed.value))

    def _to_process(self, deed: Intervention) -> None:
        actor = self._world.slots.get(deed.target)
        if actor is None or actor.dead:
            return
        if deed.deed is Deed.FREEZE:
            actor.frozen_until = max(actor.frozen_until, self._world.now + deed.value)
        elif deed.deed is Deed.CRASH:
            actor.crash(deed.value)
        else:
            self._stop(actor)

    def _stop(self, actor: Actor) -> None:
        actor.stop()

    def _set_clock(self, seconds: float) -> None:
        self._world.clock_was_set = True
        self._world.clock.offset += seconds


class MachineOutside(Outside):
    """The same with what happens on one machine only."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._garbled: bytes | None = None

    def _do(self, deed: Intervention) -> None:
        match deed.deed:
            case Deed.LOSE_LEDGER | Deed.GARBLE_LEDGER | Deed.COPY | Deed.FOREIGN:
                self._to_store(deed)
            case Deed.INTRUDER:
                self._world.intruders[f"intruder{deed.at}"] = self._world.now + deed.value
            case _:
                super()._do(deed)

    # -- operators -----------------------------------------------------------------------------

    def _ask(self, errand: Errand, deed: Intervention) -> None:
        name = order_name(deed.target)
        by = errand.name
        try:
            match deed.deed:
                case Deed.CAP:
                    errand.gate.change_policy(by, cap=int(deed.value))
                case Deed.PARK:
                    errand.searches.park(name, by)
                    self._unpark(deed.value, name)
                case Deed.CANCEL:
                    self._world.observer.cancelled.add(name)
                    errand.searches.cancel(name)
                case Deed.DELETE_ROW:
                    errand.store.delete(name)
                case _:
                    super()._ask(errand, deed)
        except CallerMistake as error:
            self._world.note(f"refused: {error}")

    def _unpark(self, seconds: float, name: str) -> None:
        def unpark(errand: Errand) -> None:
            errand.gate.unpark(name)

        self._world.scheduler.at(self._world.now + seconds, lambda: self.errand().run(unpark))

    # -- processes, stores and clocks ----------------------------------------------------------

    def _stop(self, actor: Actor) -> None:
        if isinstance(actor, Runner):
            super()._stop(actor)
            actor.on_crash(0.0)

    def _set_clock(self, seconds: float) -> None:
        if seconds > 0:
            if self._world.observer.gate_a.forward:
                return  # the margin of the protocol covers one small step
            self._world.observer.gate_a.forward = seconds
        super()._set_clock(seconds)

    def _to_store(self, deed: Intervention) -> None:
        world = self._world
        if deed.deed is Deed.LOSE_LEDGER:
            world.documents.outside(LEDGER, None)
        elif deed.deed is Deed.COPY:
            self._set_database(DatabaseState.COPYING)
            world.scheduler.at(
                world.now + deed.value, lambda: self._set_database(DatabaseState.READY)
            )
        elif deed.deed is Deed.GARBLE_LEDGER:
            self._garble(deed.value)
        else:
            self._go_inside(deed.value)

    def _set_database(self, state: DatabaseState) -> None:
        store = self._world.searches
        store.update_database(replace(store.get_database("nt"), state=state))
        self._world.documents.notify()

    def _garble(self, seconds: float) -> None:
        documents = self._world.documents
        body = documents.read(LEDGER).body
        if body is None or self._garbled is not None:
            return
        self._garbled = body
        newer = msgspec.structs.replace(decode_ledger(body), format=FORMAT + 1)
        garbage = encode(newer) if self._errands % 2 else b'{"uid":"trunc'
        documents.outside(LEDGER, garbage)
        self._world.scheduler.at(self._world.now + seconds, lambda: self._mend(garbage))

    def _mend(self, garbage: bytes) -> None:
        body, self._garbled = self._garbled, None
        if self._world.documents.read(LEDGER).body == garbage:
            self._world.documents.outside(LEDGER, body)

    def _go_inside(self, seconds: float) -> None:
        """Somebody who is no blastyard takes the lease if it is free, by a clock of his own."""
        world = self._world
        snapshot = world.documents.read(LEASE)
        if (
            snapshot.body is not None
            and msgspec.json.decode(snapshot.body, type=SubmitLease).holder_identity
        ):
            return
        skew = timedelta(seconds=world.chance.uniform(-25.0, 25.0))
        at = format_time(snapshot.now + skew)
        lease = SubmitLease("elb-somebody", int(_FOREIGN_SECONDS), at, at)
        world.documents.swap(LEASE, snapshot.version, encode(lease))
        inside = min(seconds, _FOREIGN_SECONDS)
        world.observer.gate_a.foreign_until = world.now + inside
        world.observer.gate_a.check()
        if seconds <= _FOREIGN_SECONDS:
            world.scheduler.at(world.now + seconds, self._come_out)

    def clear_foreign(self) -> None:
        """Whoever is no blastyard lets the lease go."""
        self._world.observer.gate_a.foreign_until = 0.0
        self._come_out()

    def _come_out(self) -> None:
        snapshot = self._world.documents.read(LEASE)
        lease = msgspec.json.decode(snapshot.body or b"{}", type=SubmitLease)
        if lease.holder_identity == "elb-somebody":
            self._world.documents.swap(LEASE, snapshot.version, encode(SubmitLease()))
        self._world.observer.gate_a.foreign_until = 0.0
