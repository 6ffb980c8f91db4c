"""The chart in docs/states.md is the table of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blastyard.domain.job import (
    TERMINAL,
    TRANSITIONS,
    IllegalTransition,
    Phase,
    State,
    check_transition,
)

PAGE = Path(__file__).parents[2] / "docs" / "states.md"


def test_the_chart_has_exactly_the_moves_of_the_table() -> None:
    moves = re.findall(r"^(\w+) +-> (\w+)", PAGE.read_text(), re.MULTILINE)
    drawn = {(State(before), State(after)) for before, after in moves}
    assert drawn == {(before, after) for before, ends in TRANSITIONS.items() for after in ends}


def test_every_phase_is_explained() -> None:
    explained = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(explained) == sorted(phase.value for phase in Phase)


@pytest.mark.parametrize("end", sorted(TERMINAL))
def test_nothing_leaves_an_end(end: State) -> None:
    for after in set(State) - {end}:
        with pytest.raises(IllegalTransition):
            check_transition(end, after)


def test_every_state_is_reached_from_queued() -> None:
    reached = {State.QUEUED}
    while new := {after for state in reached for after in TRANSITIONS[state]} - reached:
        reached |= new
    assert reached == set(State)
