"""Each rule of the cluster's admission, made wrong, is seen to be wrong by the simulator."""

from __future__ import annotations

import importlib

import pytest
from cluster_stage import seeds_of

from blastyard.testing.cluster.maker import make
from blastyard.testing.cluster.mutants import cluster_mutants
from blastyard.testing.cluster.simulator import run
from blastyard.testing.mutant import Mutant, applied

MOST_SEEDS = 40
QUICK_SEEDS = 8
QUICK = (
    "takeover without waiting",
    "trust for ever",
    "holds only",
    "fence from the beginning",
    "tended by nobody",
    "release without a holder check",
    "no stand-in before the command",
)

REDUNDANT = (
    "markers not asserted",  # the stand-in is up before any command, and a resumption recounts
    "failed for ever",  # its submitter is gone, so the hold is overdue soon afterwards
    "fence without uid",  # a new ledger counts from the server's milliseconds
)
"""Rules behind which another one stands, so that breaking one alone does no harm here."""
UNSEEN = (
    "no settle after a failure",
    "cancel unnoticed",
    "ledger before list",
    "swept while claims are collected",
    "no recount",
    "nobody is waited for",
)
"""Those that happen too rarely by chance to be seen in so few schedules."""


def _killed_after(mutant: Mutant, most: int) -> int | None:
    """How many schedules it took to see that the rule is wrong; ``None`` = it was not seen."""
    with applied(mutant):
        for number, seed in enumerate(seeds_of(mutant.habitat, most), start=1):
            if run(make(seed)).violation is not None:
                return number
    return None


@pytest.mark.parametrize("name", QUICK)
def test_a_wrong_rule_is_soon_seen(name: str) -> None:
    mutant = cluster_mutants()[name]
    assert _killed_after(mutant, QUICK_SEEDS) is not None, mutant.wrong


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", sorted(set(cluster_mutants()) - {*QUICK, *REDUNDANT, *UNSEEN}))
def test_a_wrong_rule_is_seen(name: str) -> None:
    mutant = cluster_mutants()[name]
    assert _killed_after(mutant, MOST_SEEDS) is not None, mutant.wrong


def test_a_mutant_leaves_nothing_behind() -> None:
    for mutant in cluster_mutants().values():
        module_name, _, path = mutant.swap.where.partition(":")
        module = importlib.import_module(f"blastyard.{module_name}")
        owner_name, _, attribute = path.rpartition(".")
        owner = getattr(module, owner_name) if owner_name else module
        before = vars(owner)[attribute]
        with applied(mutant):
            assert vars(owner)[attribute] is not before
        assert vars(owner)[attribute] is before


def test_each_mutant_says_what_is_wrong() -> None:
    assert len(cluster_mutants()) >= 25
    assert all(mutant.wrong for mutant in cluster_mutants().values())
