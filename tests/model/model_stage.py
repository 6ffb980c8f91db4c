"""What the simulator's tests share: seeds of a kind, and how to show a run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice

from blastyard.testing.maker import make
from blastyard.testing.schedule import Habitat, described
from blastyard.testing.simulator import Verdict


def seeds_of(habitat: Habitat, number: int) -> Iterator[int]:
    """The first seeds whose schedules live in this habitat; ``ANY`` takes all seeds."""
    fitting = (seed for seed in count() if habitat is Habitat.ANY or make(seed).habitat is habitat)
    return islice(fitting, number)


def story(verdict: Verdict) -> str:
    """What to show of a run that must not have ended like this."""
    seed = verdict.schedule.seed
    again = f"again: scripts/soak --seed {seed} --schedules 1"
    lines = [str(verdict.violation), again, *described(verdict.schedule)]
    return "\n".join([*lines, *verdict.history.lines(60)])
