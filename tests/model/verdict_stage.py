"""What tests of simulated schedules share, whatever is simulated: seeds, stories, mutants."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

from blastyard.testing.cluster.schedule import ClusterSchedule
from blastyard.testing.mutant import Mutant, applied
from blastyard.testing.schedule import Habitat, Schedule
from blastyard.testing.simulation import Verdict

Make = Callable[[int], Schedule]
SEEDS_FILE: Final = Path(__file__).with_name("killing_seeds.json")


def seeds_of(make: Make, habitat: Habitat, number: int) -> Iterator[int]:
    """The first seeds whose schedules live in this habitat; ``ANY`` takes all seeds."""
    fitting = (seed for seed in count() if habitat is Habitat.ANY or make(seed).habitat is habitat)
    return islice(fitting, number)


def story(verdict: Verdict[Schedule]) -> str:
    """What to show of a run that must not have ended like this."""
    schedule = verdict.schedule
    which = "--cluster " if isinstance(schedule, ClusterSchedule) else ""
    again = f"again: scripts/soak {which}--seed {schedule.seed} --schedules 1"
    return f"{verdict.violation}\n{again}\n{verdict.story(60)}"


def require_kept(make: Make, run: Callable[[Any], Verdict[Schedule]], seeds: Iterable[int]) -> None:
    """No schedule of these seeds breaks an invariant."""
    for seed in seeds:
        verdict = run(make(seed))
        assert verdict.violation is None, story(verdict)


def digest(environment: Mapping[str, str], program: str, hash_seed: str) -> bytes:
    """What a program prints under an order of hashes."""
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
    ).stdout


def killing_seed(
    mutant: Mutant,
    most: int,
    make: Make,
    run: Callable[[Any], Verdict[Schedule]],
    known: int | None = None,
) -> int | None:
    """A seed whose schedule shows that the rule is wrong, if one of so many does.

    ``known``: the seed that showed it last; it is tried first.
    """
    first = [] if known is None else [known]
    with applied(mutant):
        for seed in [*first, *seeds_of(make, mutant.habitat, most)]:
            if run(make(seed)).violation is not None:
                return seed
    return None


def known_seeds(simulated: str) -> Mapping[str, int]:
    """By mutant, the seeds that ``find_seeds.py`` found for what is ``simulated``."""
    found: Mapping[str, int] = json.loads(SEEDS_FILE.read_text())[simulated]
    return found


def require_that_nothing_is_left_behind(mutants: Mapping[str, Mutant]) -> None:
    """Each mutant says what is wrong, makes something wrong, and right again."""
    for mutant in mutants.values():
        assert mutant.wrong
        module_name, _, path = mutant.swap.where.partition(":")
        module = importlib.import_module(f"blastyard.{module_name}")
        owner_name, _, attribute = path.rpartition(".")
        owner = getattr(module, owner_name) if owner_name else module
        before = vars(owner)[attribute]
        with applied(mutant):
            assert vars(owner)[attribute] is not before
        assert vars(owner)[attribute] is before
