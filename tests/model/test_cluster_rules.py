"""The table of rules in docs/reliability.md is what the tests really see."""

from __future__ import annotations

import re
from pathlib import Path

from story_stage import staged
from test_cluster_mutants import BY_CHANCE, QUICK
from test_mutants import BY_POINTS

from blastyard.testing.cluster.mutants import cluster_mutants
from blastyard.testing.mutant import mutants

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
RULES = 25
BESIDE = {"no fence check"}
"""Staged, and no marked rule of its own: a scene of one shows it sooner than chance does."""


def _rows() -> list[tuple[str, str, str]]:
    table = PAGE.read_text().split("| Rule | Made wrong | Seen by |\n|---|---|---|\n")[1]
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", table.split("\n\n")[0], re.MULTILINE)
    return [(rule, wrong, seen.strip("`")) for rule, wrong, seen in rows]


def test_each_rule_says_by_which_schedules_or_scene_it_is_seen_to_be_needed() -> None:
    seen = dict.fromkeys({*QUICK, *BY_CHANCE} & cluster_mutants().keys(), "schedules")
    seen |= dict.fromkeys(mutants().keys() - {*BY_POINTS} - seen.keys(), "schedules of one machine")
    seen |= staged()
    for rule, wrong, by in _rows():
        assert seen.get(wrong) == by, rule


def test_no_rule_is_left_out_and_every_scene_is_of_one() -> None:
    told = [wrong for _, wrong, _ in _rows()]
    assert len(told) == len(set(told)) == RULES
    assert staged().keys() - BESIDE <= set(told)
    assert set(staged().values()) <= {by for _, _, by in _rows()}
