"""Each wrong rule must be seen by the simulator, or it proves nothing about the right ones."""

from __future__ import annotations

import pytest
from verdict_stage import killing_seed, known_seeds, require_that_nothing_is_left_behind

from blastyard.testing.maker import make
from blastyard.testing.mutant import mutants
from blastyard.testing.simulator import run

KNOWN = known_seeds("one machine")
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


@pytest.mark.parametrize("name", QUICK)
def test_a_wrong_rule_is_soon_seen(name: str) -> None:
    mutant = mutants()[name]
    known = KNOWN.get(name)
    assert killing_seed(mutant, QUICK_SEEDS, make, run, known) is not None, mutant.wrong


BY_POINTS = ("only older holds",)
"""Those that :mod:`test_every_point` has a scene for; by chance they are seen too rarely."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(mutants()) - set(QUICK) - set(BY_POINTS)))
def test_a_wrong_rule_is_seen(name: str) -> None:
    mutant = mutants()[name]
    known = KNOWN.get(name)
    assert killing_seed(mutant, MOST_SEEDS, make, run, known) is not None, mutant.wrong


def test_a_mutant_says_what_is_wrong_and_leaves_nothing_behind() -> None:
    assert len(mutants()) >= 15
    require_that_nothing_is_left_behind(mutants())
