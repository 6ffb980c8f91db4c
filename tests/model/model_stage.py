"""What the tests of the simulated machine share."""

from __future__ import annotations

from blastyard.testing.schedule import Habitat, Order, Role, Schedule


def calm(ceiling: int, roles: tuple[Role, ...], orders: tuple[Order, ...]) -> Schedule:
    """A schedule in which nothing goes wrong."""
    return Schedule(
        seed=1,
        habitat=Habitat.ANY,
        picks=1,
        stickiness=0.5,
        ceiling=ceiling,
        cap=None,
        ageing=3600,
        roles=roles,
        orders=orders,
        interventions=(),
        trouble_until=1.0,
    )
