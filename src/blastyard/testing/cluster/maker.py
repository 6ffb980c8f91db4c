"""Drawing a schedule of a cluster from a seed. Swarm testing, as on one machine."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from blastyard.testing.cluster.schedule import (
    ClusterOrder,
    ClusterSchedule,
    Script,
    Stranger,
)
from blastyard.testing.foreign.kind import DASHBOARD, RUDE, SERVICE
from blastyard.testing.foreign.kind import Kind as ProgramKind
from blastyard.testing.schedule import (
    IN_A_CLUSTER,
    Deed,
    Habitat,
    Intervention,
    Kind,
    Role,
    Trouble,
    order_name,
)
from blastyard.testing.wire_fault import Ailment

T = TypeVar("T")

_RATES: Final[dict[Trouble, tuple[float, ...]]] = {
    Trouble.LOST_REQUEST: (0.002, 0.01, 0.04),
    Trouble.LOST_ANSWER: (0.002, 0.01, 0.04),
    Trouble.CONFLICT: (0.002, 0.01),
    Trouble.UNAVAILABLE: (0.002, 0.01, 0.04),
    Trouble.BUSY: (0.002, 0.01, 0.04),
    Trouble.GATEWAY: (0.002, 0.01),
    Trouble.TRUNCATED: (0.002, 0.01),
    Trouble.LATE: (0.002, 0.01, 0.02),
    Trouble.DELAY: (0.002, 0.01, 0.03),
    Trouble.FREEZE: (0.0005, 0.002, 0.006),
    Trouble.CRASH: (0.0005, 0.002, 0.006),
}
_AILMENTS: Final[dict[Ailment, tuple[float, ...]]] = {
    Ailment.DROPPED: (0.01, 0.1),
    Ailment.BROKEN: (0.01, 0.1),
    Ailment.ENDED: (0.01, 0.1),
    Ailment.SILENT: (0.01, 0.05),
    Ailment.GARBLED: (0.01, 0.05),
}
_VALUES: Final[dict[Deed, tuple[float, ...]]] = {
    Deed.CEILING: (0, 1, 1, 2, 3),
    Deed.CLOCK: (-3.0, -30.0, -200.0),
    Deed.DOWN: (0.5, 5.0, 20.0, 50.0),
    Deed.FREEZE: (3.0, 15.0, 31.0, 60.0, 130.0),
    Deed.CRASH: (0.2, 2.0, 10.0, 40.0),
    Deed.DROP: (1, 2, 5),
    Deed.STRANGER_FREEZE: (5.0, 60.0, 300.0, 1000.0),
    Deed.STRANGER_CRASH: (1.0, 20.0),
}
_SCRIPTS: Final = (
    *[Script.COMPLETE] * 8,
    Script.SLOW,
    Script.SLOW,
    Script.MINT,
    Script.MINT,
    Script.PAIR,
    Script.FAIL,
    Script.FAIL,
    Script.NOTHING,
    Script.LATER,
    Script.HANG,
)


@dataclass(frozen=True, slots=True)
class _Habitat:
    """What makes one family of stories likely."""

    rates: dict[Trouble, float]
    deeds: tuple[Deed, ...] = ()
    scripts: tuple[Script, ...] = ()
    strangers: tuple[ProgramKind, ...] = ()


_HABITATS: Final[dict[Habitat, _Habitat]] = {
    Habitat.STALLS: _Habitat(
        {Trouble.FREEZE: 0.012, Trouble.DELAY: 0.01},
        (Deed.FREEZE,) * 4,
        (Script.SLOW, Script.SLOW, Script.COMPLETE, Script.HANG),
    ),
    Habitat.DELIVERIES: _Habitat(
        {Trouble.CRASH: 0.006, Trouble.LOST_ANSWER: 0.01, Trouble.LATE: 0.005},
        (Deed.CRASH, Deed.STOP),
        (Script.COMPLETE, Script.SLOW, Script.FAIL),
    ),
    Habitat.DEATHS: _Habitat(
        {Trouble.CRASH: 0.012},
        (Deed.CRASH, Deed.STRANGER_CRASH, Deed.PEER_CANCEL),
        (Script.COMPLETE, Script.SLOW),
        (SERVICE,),
    ),
    Habitat.INTRUDERS: _Habitat(
        {Trouble.LOST_ANSWER: 0.005, Trouble.CRASH: 0.003},
        (Deed.CEILING,) * 3,
        (Script.COMPLETE, Script.FAIL, Script.FAIL, Script.HANG),
        (RUDE, RUDE),
    ),
    Habitat.LOSSES: _Habitat(
        {Trouble.LATE: 0.01, Trouble.DELAY: 0.012, Trouble.LOST_ANSWER: 0.004},
        (Deed.LOSE_LEDGER, Deed.LOSE_LEDGER, Deed.LOSE_LEASE),
        (),
        (SERVICE,),
    ),
    Habitat.CLOCKS: _Habitat(
        {Trouble.CRASH: 0.004}, (Deed.CLOCK, Deed.CRASH), (Script.SLOW, Script.COMPLETE)
    ),
}


class _Maker:
    """Draws the parts of a schedule."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(f"cluster {seed}")
        habitats = list(_HABITATS)
        self.habitat = self.one_of(*[Habitat.ANY] * 6, *habitats)
        self.special = _HABITATS.get(self.habitat, _Habitat({}))
        self.span = self.one_of(30.0, 60.0, 120.0)
        self.ceiling = self.one_of(1, 1, 2, 2, 3)
        self.users = ("ada", "bo", "cy")[: self.one_of(1, 2, 3)]
        self.levels = self.one_of((1,), (1,), (0, 1, 2))

    def one_of(self, *choices: T) -> T:
        return self.chance.choice(choices)

    def schedule(self) -> ClusterSchedule:
        roles = self.roles()
        orders = self.orders(roles)
        strangers = self.strangers()
        return ClusterSchedule(
            seed=self.seed,
            habitat=self.habitat,
            picks=self.seed,
            stickiness=self.one_of(0.0, 0.5, 0.9),
            ceiling=self.ceiling,
            cap=self.one_of(None, None, None, 1),
            ageing=self.one_of(30, 3600),
            roles=roles,
            orders=orders,
            trouble_until=self.span,
            rates=self.rates(),
            kill_delay=self.one_of(0.01, 0.5, 2.0),
            strangers=strangers,
            interventions=self.interventions(len(roles), len(orders)),
            ailments=self.ailments(),
            page_size=self.one_of(None, None, 2),
            command_faults=self.one_of(
                *((0.15, 0.3) if self.habitat is Habitat.LOSSES else (0.0, 0.0, 0.02, 0.1))
            ),
        )

    def roles(self) -> tuple[Role, ...]:
        kinds = [Kind.EXEC] * self.one_of(1, 2, 3, 4)
        kinds += [Kind.SERVE] * self.one_of(0, 0, 1, 1, 2)
        machines = self.one_of(1, 2, 8)
        return tuple(
            Role(kind, slot % machines, self._arrival()) for slot, kind in enumerate(kinds)
        )

    def _arrival(self) -> float:
        return self.one_of(0.0, 0.0, self.chance.uniform(0.0, self.span / 2))

    def orders(self, roles: tuple[Role, ...]) -> tuple[ClusterOrder, ...]:
        orders: list[ClusterOrder] = []
        for slot, role in enumerate(roles):
            for _ in range(1 if role.kind is Kind.EXEC else self.one_of(1, 2, 3)):
                orders.append(self._order(order_name(len(orders)), slot))
        if self.habitat is Habitat.DELIVERIES and len(roles) > 1 and roles[1].kind is Kind.EXEC:
            # the same command line twice, side by side
            orders[1] = replace(orders[0], slot=1, at=self.one_of(orders[0].at, orders[1].at))
        return tuple(orders)

    def _order(self, name: str, slot: int) -> ClusterOrder:
        return ClusterOrder(
            name=name,
            slot=slot,
            at=self.one_of(0.0, 0.0, self.chance.uniform(0, self.span / 2)),
            user=self.one_of(*self.users),
            level=self.one_of(*self.levels),
            seconds=self.one_of(2.0, 10.0, 40.0, 100.0, self.one_of(100.0, 400.0)),
            fails=self.chance.random() < 0.05,
            script=self.one_of(*(self.special.scripts or _SCRIPTS)),
            merge=self.one_of(1.0, 20.0, 100.0),
            again=self.habitat is Habitat.DELIVERIES or self.chance.random() < 0.5,
        )

    def strangers(self) -> tuple[Stranger, ...]:
        made = []
        kinds = [
            self.one_of(SERVICE, SERVICE, DASHBOARD, DASHBOARD, RUDE)
            for _ in range(self.one_of(0, 0, 1, 1, 2))
        ]
        for number, kind in enumerate([*self.special.strangers, *kinds][:2]):
            made.append(
                Stranger(
                    f"elb{number}",
                    kind,
                    self.one_of(1, 2, 3),
                    self.ceiling,
                    self.one_of(0.0, 0.0, 60.0, -60.0, 200.0),
                    self._arrival(),
                    cancel_every=0 if kind is RUDE else self.one_of(0, 0, 2),
                )
            )
        return tuple(made)

    def interventions(self, slots: int, orders: int) -> tuple[Intervention, ...]:
        deeds = [deed for deed in IN_A_CLUSTER if self.chance.random() < 0.2]
        deeds += [*self.special.deeds] * 4
        if not deeds:
            return ()
        made = [
            self._intervention(self.one_of(*deeds), slots, orders)
            for _ in range(4 if self.special.deeds else self.one_of(0, 1, 2, 3, 6))
        ]
        return tuple(sorted(made, key=lambda one: one.at))

    def _intervention(self, deed: Deed, slots: int, orders: int) -> Intervention:
        at = self.span * self.chance.random()
        target = self.chance.randrange(orders if deed is Deed.PARK else slots)
        return Intervention(at, deed, target, self.one_of(*_VALUES.get(deed, (0.0,))))

    def rates(self) -> dict[Trouble, float]:
        if self.special.rates:
            return dict(self.special.rates)
        if self.chance.random() < 0.1:
            return {}
        wanted = self.one_of(0.1, 0.25, 0.5)
        return {
            trouble: self.one_of(*rates)
            for trouble, rates in _RATES.items()
            if self.chance.random() < wanted
        }

    def ailments(self) -> dict[Ailment, float]:
        if self.chance.random() < 0.6:
            return {}
        return {
            ailment: self.one_of(*rates)
            for ailment, rates in _AILMENTS.items()
            if self.chance.random() < 0.4
        }


def make(seed: int) -> ClusterSchedule:
    """The schedule of a seed."""
    return _Maker(seed).schedule()
