"""What the tests of the simulated cluster share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice

from blastyard.testing.cluster.maker import make
from blastyard.testing.cluster.schedule import (
    ClusterOrder,
    ClusterSchedule,
    Stranger,
    described,
)
from blastyard.testing.cluster.simulator import Verdict
from blastyard.testing.schedule import Habitat, Kind, Role, order_name


def seeds_of(habitat: Habitat, number: int) -> Iterator[int]:
    """The first seeds whose schedules live in this habitat; ``ANY`` takes all seeds."""
    fitting = (seed for seed in count() if habitat is Habitat.ANY or make(seed).habitat is habitat)
    return islice(fitting, number)


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


def story(verdict: Verdict) -> str:
    """What to show of a run that must not have ended like this."""
    again = f"again: scripts/soak --cluster --seed {verdict.schedule.seed} --schedules 1"
    lines = [str(verdict.violation), again, *described(verdict.schedule)]
    return "\n".join([*lines, *verdict.history.lines(60)])
