"""Each rule of the cluster's admission, made wrong, is seen to be wrong by the simulator."""

from __future__ import annotations

import pytest
from story_stage import staged
from verdict_stage import killing_seed, known_seeds, require_that_nothing_is_left_behind

from blastyard.testing.cluster.maker import make
from blastyard.testing.cluster.mutants import cluster_mutants
from blastyard.testing.cluster.simulator import run

KNOWN = known_seeds("cluster")
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

REDUNDANT = {
    "failed for ever": "its submitter is gone, so the hold is overdue soon afterwards",
}
"""Rules behind which another one stands, so that breaking one alone does no harm here."""
IN_SCENES = (
    "a clock of its own on the lease",
    "a denial starts the debt again",
    "a parent is shown by its parts",
    "a partial submission is adopted",
    "cancel unnoticed",
    "courtesy counted from the denial",
    "fence without uid",
    "ledger before list",
    "markers make nobody known",
    "markers not asserted",
    "markers say little",
    "no fence check",
    "no patient turn",
    "no pause after long use",
    "no recount",
    "no settle after a failure",
    "nobody is waited for",
    "resumed under its old fence",
    "submit job before the finalizer",
    "swept while claims are collected",
)
"""Those that a scene is told for; by chance they happen too rarely, or do no harm at once."""
BY_CHANCE = sorted(set(cluster_mutants()) - {*QUICK, *REDUNDANT, *IN_SCENES})


@pytest.mark.parametrize("name", QUICK)
def test_a_wrong_rule_is_soon_seen(name: str) -> None:
    mutant = cluster_mutants()[name]
    known = KNOWN.get(name)
    assert killing_seed(mutant, QUICK_SEEDS, make, run, known) is not None, mutant.wrong


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", BY_CHANCE)
def test_a_wrong_rule_is_seen(name: str) -> None:
    mutant = cluster_mutants()[name]
    known = KNOWN.get(name)
    assert killing_seed(mutant, MOST_SEEDS, make, run, known) is not None, mutant.wrong


def test_every_wrong_rule_is_seen_by_chance_in_a_scene_or_is_said_to_do_no_harm() -> None:
    assert set(IN_SCENES) == staged().keys()
    assert not {*IN_SCENES, *QUICK} & REDUNDANT.keys()
    assert {*QUICK, *BY_CHANCE, *IN_SCENES, *REDUNDANT} == cluster_mutants().keys()


def test_a_mutant_says_what_is_wrong_and_leaves_nothing_behind() -> None:
    assert len(cluster_mutants()) >= 25
    require_that_nothing_is_left_behind(cluster_mutants())
