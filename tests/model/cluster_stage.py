"""What the tests of the simulated cluster share."""

from __future__ import annotations

from blastyard.testing.cluster.schedule import ClusterOrder, ClusterSchedule, Stranger
from blastyard.testing.schedule import Habitat, Kind, Role, order_name


def execution(number: int, seconds: float, *, at: float = 0.0) -> ClusterOrder:
    """A submit command whose search runs for so long."""
    return ClusterOrder(order_name(number), number, at, "ada", 1, seconds)


def calm(
    ceiling: int, orders: tuple[ClusterOrder, ...], strangers: tuple[Stranger, ...] = ()
) -> ClusterSchedule:
    """A schedule of submit commands in which nothing goes wrong."""
    return ClusterSchedule(
        seed=1,
        habitat=Habitat.ANY,
        picks=1,
        stickiness=0.5,
        ceiling=ceiling,
        cap=None,
        ageing=3600,
        roles=tuple(Role(Kind.EXEC, order.slot) for order in orders),
        orders=orders,
        interventions=(),
        trouble_until=1.0,
        strangers=strangers,
        marker_seconds=3600.0,
    )
