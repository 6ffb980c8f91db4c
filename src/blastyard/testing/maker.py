"""Drawing a schedule from a seed.

Swarm testing: each schedule has only some kinds of trouble, so that what one kind would cover up
another shows. A habitat makes one family of stories likely that would be rare otherwise.
"""

from __future__ import annotations

import random
from typing import Final, TypeVar

from blastyard.testing.schedule import (
    ON_ONE_MACHINE,
    Deed,
    Habitat,
    Intervention,
    Kind,
    Order,
    Role,
    Schedule,
    Trouble,
    order_name,
)

T = TypeVar("T")

_RATES: Final[dict[Trouble, tuple[float, ...]]] = {
    Trouble.LOST_REQUEST: (0.002, 0.01, 0.04),
    Trouble.LOST_ANSWER: (0.002, 0.01, 0.04),
    Trouble.CONFLICT: (0.002, 0.01, 0.05),
    Trouble.UNAVAILABLE: (0.002, 0.01, 0.04),
    Trouble.LATE: (0.002, 0.01),
    Trouble.DELAY: (0.002, 0.01, 0.03),
    Trouble.FREEZE: (0.0005, 0.002, 0.004),
    Trouble.CRASH: (0.0005, 0.002, 0.004),
}
_HABITAT_RATES: Final[dict[Habitat, dict[Trouble, float]]] = {
    Habitat.STALLS: {Trouble.DELAY: 0.004, Trouble.FREEZE: 0.008},
    Habitat.DELIVERIES: {Trouble.DELAY: 0.03, Trouble.FREEZE: 0.004, Trouble.LOST_ANSWER: 0.004},
    Habitat.DEATHS: {Trouble.CRASH: 0.001},
    Habitat.INTRUDERS: {Trouble.LOST_ANSWER: 0.006, Trouble.DELAY: 0.01, Trouble.FREEZE: 0.005},
    Habitat.LOSSES: {Trouble.LATE: 0.012, Trouble.DELAY: 0.015, Trouble.LOST_ANSWER: 0.004},
    Habitat.CLOCKS: {Trouble.CRASH: 0.004},
}
_HABITAT_DEEDS: Final[dict[Habitat, tuple[Deed, ...]]] = {
    Habitat.STALLS: (Deed.FREEZE, Deed.STOP),
    Habitat.DELIVERIES: (),
    Habitat.DEATHS: (Deed.CRASH, Deed.CRASH, Deed.LOSE_LEDGER),
    Habitat.INTRUDERS: (Deed.INTRUDER, Deed.CEILING, Deed.CEILING),
    Habitat.LOSSES: (Deed.LOSE_LEDGER,),
    Habitat.CLOCKS: (Deed.CLOCK, Deed.CRASH),
}
_DEED_VALUES: Final[dict[Deed, tuple[float, ...]]] = {
    Deed.CEILING: (0, 1, 1, 2, 3),
    Deed.CAP: (0, 1, 2),
    Deed.PARK: (1.0, 20.0),
    Deed.GARBLE_LEDGER: (1.0, 10.0),
    Deed.CLOCK: (4.0, -3.0, -30.0, -600.0),
    Deed.DOWN: (0.5, 5.0, 20.0, 50.0),
    Deed.FREEZE: (3.0, 15.0, 31.0, 60.0, 130.0),
    Deed.CRASH: (0.2, 2.0, 10.0, 40.0),
    Deed.COPY: (3.0, 30.0),
    Deed.FOREIGN: (2.0, 15.0, 60.0),
    Deed.INTRUDER: (4.0, 15.0, 40.0),
}
_ON_SLOTS: Final = frozenset({Deed.FREEZE, Deed.CRASH, Deed.STOP})
_SHORT: Final = (0.3, 2.0, 5.0, 12.0)
_LONG: Final = (0.3, 5.0, 50.0, 50.0)
_SINGLE: Final = frozenset({Kind.COMMAND, Kind.TWIN})


class _Maker:
    """Draws the parts of a schedule."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"schedule {seed}")
        self.habitat = self.one_of(*[Habitat.ANY] * 6, *Habitat)
        self.span = self.one_of(15.0, 30.0, 50.0)
        if self.habitat is not Habitat.ANY:
            self.span = 45.0
        self.users: tuple[str, ...] = ()
        self.levels: tuple[int, ...] = ()

    def one_of(self, *choices: T) -> T:
        return self.chance.choice(choices)

    def schedule(self, seed: int) -> Schedule:
        roles = self.roles()
        orders = self.orders(roles)
        return Schedule(
            seed=seed,
            habitat=self.habitat,
            picks=seed,
            stickiness=self.one_of(0.0, 0.5, 0.9),
            ceiling=self.one_of(*((2, 3) if self.habitat is Habitat.INTRUDERS else (1, 1, 2, 3))),
            cap=self.one_of(None, None, None, 1),
            ageing=self.one_of(10, 30, 3600),
            roles=roles,
            orders=orders,
            interventions=self.interventions(len(roles), len(orders)),
            trouble_until=self.span,
            rates=self.rates(),
            kill_delay=2.0 if self.habitat is Habitat.DEATHS else self.one_of(0.01, 0.5, 2.0),
            hard_of_hearing=self.one_of(0.0, 0.0, 0.0, 0.3, 1.0),
        )

    def roles(self) -> tuple[Role, ...]:
        kinds = [self.one_of(Kind.SERVE, Kind.SERVE, Kind.SEARCH)]
        for _ in range(self.one_of(0, 1, 1, 2, 2, 3)):
            kinds.append(self.one_of(Kind.SERVE, Kind.SEARCH, Kind.SEARCH, Kind.COMMAND))
        if self.habitat is Habitat.DELIVERIES:
            kinds = [self.one_of(Kind.SERVE, Kind.SEARCH), Kind.TWIN]
        elif self.habitat is Habitat.DEATHS:
            kinds = [Kind.SERVE, Kind.COMMAND, Kind.COMMAND, *kinds[1:2]]
        elif self.habitat is Habitat.INTRUDERS or self.chance.random() < 0.05:
            kinds.append(Kind.TWIN)
        return tuple(Role(kind, self.one_of(1, 1, 2), self._arrival()) for kind in kinds)

    def _arrival(self) -> float:
        return self.one_of(0.0, 0.0, 0.0, self.chance.uniform(0.0, self.span / 2))

    def orders(self, roles: tuple[Role, ...]) -> tuple[Order, ...]:
        self.users = ("ada", "bo", "cy")[: self.one_of(1, 2, 3)]
        self.levels = self.one_of((1,), (1,), (0, 1, 2), (0, 2))
        orders: list[Order] = []
        for slot, role in enumerate(roles):
            for _ in range(1 if role.kind in _SINGLE else self.one_of(1, 1, 2, 3, 4)):
                orders.append(self._order(order_name(len(orders)), slot, role))
        return tuple(orders)

    def _order(self, name: str, slot: int, role: Role) -> Order:
        has_long = self.habitat in (Habitat.STALLS, Habitat.DEATHS, Habitat.INTRUDERS)
        return Order(
            name=name,
            slot=slot,
            at=self.one_of(0.0, 0.0, self.chance.uniform(0, self.span / 2)),
            user=self.one_of(*self.users),
            level=self.one_of(*self.levels),
            seconds=self.one_of(*(_LONG if has_long else _SHORT)),
            fails=self.chance.random() < 0.08,
            patience=20.0 if self.chance.random() < 0.05 else None,
            posted=role.kind not in _SINGLE and self.chance.random() < 0.15,
        )

    def interventions(self, slots: int, orders: int) -> tuple[Intervention, ...]:
        deeds = [deed for deed in ON_ONE_MACHINE if self.chance.random() < 0.25]
        deeds += _HABITAT_DEEDS.get(self.habitat, ()) * 4
        if not deeds:
            return ()
        count = self.one_of(0, 1, 2, 3, 6) if self.habitat is Habitat.ANY else 6
        made = [self._intervention(self.one_of(*deeds), slots, orders) for _ in range(count)]
        return tuple(sorted(made, key=lambda one: one.at))

    def _intervention(self, deed: Deed, slots: int, orders: int) -> Intervention:
        at = self.span * self.chance.random() ** 2  # most happens early, so trouble comes early
        target = self.chance.randrange(slots if deed in _ON_SLOTS else orders)
        return Intervention(at, deed, target, self.one_of(*_DEED_VALUES.get(deed, (0.0,))))

    def rates(self) -> dict[Trouble, float]:
        if self.habitat is not Habitat.ANY:
            return dict(_HABITAT_RATES[self.habitat])
        if self.chance.random() < 0.08:
            return {}
        wanted = self.one_of(0.15, 0.35, 0.6)
        return {
            trouble: self.one_of(*rates)
            for trouble, rates in _RATES.items()
            if self.chance.random() < wanted
        }


def make(seed: int) -> Schedule:
    """The schedule of a seed."""
    return _Maker(seed).schedule(seed)
