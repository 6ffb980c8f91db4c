"""Each wrong rule must be seen by the simulator, or it proves nothing about the right ones."""

from __future__ import annotations

import importlib

import pytest
from model_stage import seeds_of

from blastyard.testing.maker import make
from blastyard.testing.mutant import Mutant, applied, mutants
from blastyard.testing.simulator import run

MOST_SEEDS = 4000
QUICK_SEEDS = 60
QUICK = (
    "census only",
    "conflict is success",
    "fence not raised",
    "hold left behind",
    "holds only",
    "lost hold",
    "never confirmed",
    "no ageing",
    "no idempotence",
    "no turn",
    "release without a holder check",
    "slot freed before the command is gone",
    "stamp from the future",
    "takeover without waiting",
    "trust for ever",
    "unreadable is empty",
    "waits are faults",
)


def _killed_after(mutant: Mutant, most: int) -> int | None:
    """How many schedules it took to see that the rule is wrong; ``None`` = it was not seen."""
    with applied(mutant):
        for number, seed in enumerate(seeds_of(mutant.habitat, most), start=1):
            if run(make(seed)).violation is not None:
                return number
    return None


@pytest.mark.parametrize("name", QUICK)
def test_a_wrong_rule_is_soon_seen(name: str) -> None:
    mutant = mutants()[name]
    assert _killed_after(mutant, QUICK_SEEDS) is not None, mutant.wrong


BY_POINTS = ("only older holds",)
"""Those that :mod:`test_every_point` has a scene for; by chance they are seen too rarely."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(mutants()) - set(QUICK) - set(BY_POINTS)))
def test_a_wrong_rule_is_seen(name: str) -> None:
    mutant = mutants()[name]
    assert _killed_after(mutant, MOST_SEEDS) is not None, mutant.wrong


def test_a_mutant_leaves_nothing_behind() -> None:
    for mutant in mutants().values():
        module_name, _, path = mutant.swap.where.partition(":")
        module = importlib.import_module(f"blastyard.{module_name}")
        owner_name, _, attribute = path.rpartition(".")
        owner = getattr(module, owner_name) if owner_name else module
        before = vars(owner)[attribute]
        with applied(mutant):
            assert vars(owner)[attribute] is not before
        assert vars(owner)[attribute] is before


def test_each_mutant_says_what_is_wrong() -> None:
    assert len(mutants()) >= 15
    assert all(mutant.wrong for mutant in mutants().values())
