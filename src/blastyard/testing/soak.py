"""Runs simulated schedules: ``python -m blastyard.testing.soak --schedules 10000``.

Ends with exit code 1 at the first violation, and prints a shrunk schedule that shows it. With
``--cluster`` the schedules are those of a cluster; they are printed as they were found.
"""

# ruff: noqa: T201  (a command: printing is what it is for)
from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blastyard.domain.clock import SystemClock
from blastyard.testing.cluster import maker as cluster_maker
from blastyard.testing.cluster import simulator as cluster_simulator
from blastyard.testing.maker import make
from blastyard.testing.schedule import Schedule
from blastyard.testing.shrink import shrink
from blastyard.testing.simulation import Verdict
from blastyard.testing.simulator import run

_EVERY = 500
_LINES = 120

Play = Callable[[int], Verdict[Schedule]]
"""Runs the schedule of a seed."""


def on_one_machine(seed: int) -> Verdict[Schedule]:
    """A schedule of one machine."""
    return run(make(seed))


def on_a_cluster(seed: int) -> Verdict[Schedule]:
    """A schedule of a cluster."""
    return cluster_simulator.run(cluster_maker.make(seed))


@dataclass(slots=True)
class Tally:
    """What was run so far."""

    schedules: int = 0
    steps: int = 0
    faults: int = 0
    grants: int = 0
    virtual_seconds: float = 0.0

    def add(self, verdict: Verdict[Schedule]) -> None:
        """Count one more."""
        self.schedules += 1
        self.steps += verdict.steps
        self.faults += len(verdict.drawn)
        self.grants += verdict.grants
        self.virtual_seconds += verdict.seconds

    def __str__(self) -> str:
        return (
            f"{self.schedules} schedules, {self.steps} steps, {self.faults} faults, "
            f"{self.grants} grants, {self.virtual_seconds / 3600:.1f} virtual hours"
        )


def soak(
    first: int, count: int, say: Sequence[str] = (), play: Play = on_one_machine
) -> tuple[Tally, Verdict[Schedule] | None]:
    """Run the schedules of ``count`` seeds from ``first``; the first violation ends it."""
    tally = Tally()
    clock = SystemClock()
    began = clock.monotonic()
    for seed in range(first, first + count):
        verdict = play(seed)
        tally.add(verdict)
        if verdict.violation is not None:
            return tally, verdict
        if "progress" in say and tally.schedules % _EVERY == 0:
            print(f"{tally}; {clock.monotonic() - began:.0f} s", flush=True)
    return tally, None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000, metavar="N", help="how many")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first seed")
    parser.add_argument("--cluster", action="store_true", help="schedules of a cluster")
    parser.add_argument(
        "--no-shrink",
        dest="shrink",
        action="store_false",
        help="print a violation as it was found, however long it takes",
    )
    parser.add_argument(
        "--shrink", action="store_true", help="make a failing schedule smaller (the default)"
    )
    parser.add_argument("--history", action="store_true", help="print all that happened")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(arguments)
    play: Play = on_a_cluster if options.cluster else on_one_machine
    tally, failing = soak(options.seed, options.schedules, ("progress",), play)
    if failing is None:
        print(f"no violation in {tally}")
        return 0
    seed = failing.schedule.seed
    print(f"seed {seed}: {failing.violation}")
    habitat = "--cluster " if options.cluster else ""
    print(f"again: scripts/soak {habitat}--seed {seed} --schedules 1\n")
    if options.shrink and not options.cluster:
        failing = shrink(failing)
    print(failing.story(None if options.history else _LINES))
    return 1


if __name__ == "__main__":
    sys.exit(main())
