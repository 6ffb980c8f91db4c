"""A violation is made small enough to read, and told by the command."""

from __future__ import annotations

import pytest
from verdict_stage import seeds_of

from blastyard.testing.maker import make
from blastyard.testing.mutant import applied, mutants
from blastyard.testing.schedule import Schedule
from blastyard.testing.shrink import shrink
from blastyard.testing.simulation import Verdict
from blastyard.testing.simulator import run
from blastyard.testing.soak import main


def _first_failure(name: str) -> Verdict[Schedule]:
    for seed in seeds_of(make, mutants()[name].habitat, 200):
        verdict = run(make(seed))
        if verdict.violation is not None:
            return verdict
    raise AssertionError(f"{name} was not seen")


@pytest.mark.slow
def test_a_failing_schedule_shrinks_to_a_smaller_one_with_the_same_violation() -> None:
    with applied(mutants()["takeover without waiting"]):
        failing = _first_failure("takeover without waiting")
        small = shrink(failing)
    assert failing.violation is not None
    assert small.violation is not None
    assert small.violation.rule == failing.violation.rule
    assert len(small.schedule.faults or {}) < len(failing.drawn)
    assert len(small.schedule.orders) <= len(failing.schedule.orders)


def test_what_was_shrunk_repeats() -> None:
    with applied(mutants()["fence not raised"]):
        small = shrink(_first_failure("fence not raised"))
        assert run(small.schedule).violation == small.violation


def test_a_run_without_a_violation_cannot_be_shrunk() -> None:
    with pytest.raises(ValueError, match="only a failing schedule"):
        shrink(run(make(0)))


def test_the_command_counts_what_it_ran(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--schedules", "5"]) == 0
    assert "no violation in 5 schedules" in capsys.readouterr().out


def test_the_command_tells_a_violation_and_how_to_see_it_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with applied(mutants()["fence not raised"]):
        assert main(["--schedules", "20"]) == 1
        said = capsys.readouterr().out
        seed = said.partition("--seed ")[2].split()[0]
        assert main(["--schedules", "1", "--seed", seed, "--no-shrink"]) == 1
    assert "fence not raised at " in said
    assert "fault" in said or "order" in said
