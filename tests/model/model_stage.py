"""What the simulator's tests share: seeds of a kind, and how to show a run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice

from blastyard.testing.maker import make
from blastyard.testing.schedule import Habitat, Order, Role, Schedule, described
from blastyard.testing.simulator import Verdict


def seeds_of(habitat: Habitat, number: int) -> Iterator[int]:
    """The first seeds whose schedules live in this habitat; ``ANY`` takes all seeds."""
    fitting = (seed for seed in count() if habitat is Habitat.ANY or make(seed).habitat is habitat)
    return islice(fitting, number)


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


def story(verdict: Verdict) -> str:
    """What to show of a run that must not have ended like this."""
    seed = verdict.schedule.seed
    again = f"again: scripts/soak --seed {seed} --schedules 1"
    lines = [str(verdict.violation), again, *described(verdict.schedule)]
    return "\n".join([*lines, *verdict.history.lines(60)])
