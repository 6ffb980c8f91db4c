"""The real cluster gate, informers and submit commands under hundreds of schedules of faults."""

from __future__ import annotations

import itertools

import pytest
from cluster_stage import calm, execution
from verdict_stage import digest, require_kept, story

from blastyard.testing.cluster.maker import make
from blastyard.testing.cluster.schedule import Stranger
from blastyard.testing.cluster.simulator import run
from blastyard.testing.foreign.kind import DASHBOARD, SERVICE
from blastyard.testing.soak import main

SHORT = 6
LONG = range(SHORT, 200)
BEATS_IN_300_SECONDS = 30
LISTS_IN_300_SECONDS = 3
HASHED = """
from hashlib import sha256
from blastyard.testing.cluster.maker import make
from blastyard.testing.cluster.simulator import run
lines = [line for seed in range(6) for line in run(make(seed)).history.lines()]
print(sha256("\\n".join(lines).encode()).hexdigest())
"""


def test_some_schedules_keep_every_invariant() -> None:
    require_kept(make, run, range(SHORT))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_hundreds_of_schedules_keep_every_invariant(part: int) -> None:
    require_kept(make, run, LONG[part::4])


@pytest.mark.slow
def test_schedules_do_what_they_are_for() -> None:
    verdicts = [run(make(seed)) for seed in range(30)]
    assert sum(verdict.grants for verdict in verdicts) > 60
    assert sum(len(verdict.drawn) for verdict in verdicts) > 300
    text = "\n".join(line for verdict in verdicts for line in verdict.history.lines())
    happenings = (
        "KILLED",
        "freeze",
        "late ",
        "lost_answer",
        "delay",
        "watch: ",
        "killed: deadline",
    )
    for happening in (*happenings, "acquired job", "denied-busy", "denied-capacity", "lose_ledger"):
        assert happening in text, happening


@pytest.mark.slow
def test_the_same_schedule_makes_the_same_history() -> None:
    for seed in range(4):
        assert run(make(seed)).history.entries == run(make(seed)).history.entries


@pytest.mark.slow
def test_no_run_depends_on_the_order_of_hashes(tester_environment: dict[str, str]) -> None:
    digests = {digest(tester_environment, HASHED, seed) for seed in ("0", "4711")}
    assert len(digests) == 1


def _requests_while_waiting(seconds: float) -> int:
    """Requests of a submit command that waits for so long behind another one's search."""
    verdict = run(calm(1, (execution(0, seconds), execution(1, 1.0, at=2.0))))
    assert verdict.violation is None, story(verdict)
    assert dict(verdict.outcomes) == {"search00": "complete", "search01": "complete"}
    return verdict.calls[1]


def test_a_waiting_command_costs_no_requests_but_its_signs_of_life() -> None:
    """Fault Q9. Its streams hear of everything; a list of each kind now and then repairs them."""
    more = _requests_while_waiting(400.0) - _requests_while_waiting(100.0)
    assert more <= BEATS_IN_300_SECONDS + LISTS_IN_300_SECONDS + 1


def test_a_free_slot_is_used_at_once() -> None:
    """Fault Q2."""
    verdict = run(calm(1, tuple(execution(number, 5.0) for number in range(6))))
    assert verdict.violation is None, story(verdict)
    entries = verdict.history.entries
    starts = [at for at, _, what in entries if what.startswith("START")]
    ends = [at for at, _, what in entries if what.startswith("job elb-finalizer")]
    assert len(starts) == 6
    waits = [start - end for end, start in zip(ends[:-1], starts[1:], strict=True)]
    assert max(waits) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", [SERVICE, DASHBOARD])
def test_a_program_that_polls_finds_a_slot_beside_a_queue(kind: object) -> None:
    """Fault B17."""
    orders = tuple(execution(number, 10.0) for number in range(24))
    assert kind in (SERVICE, DASHBOARD)
    stranger = Stranger("elb0", SERVICE if kind is SERVICE else DASHBOARD, 2, 1, arrives_at=5.0)
    verdict = run(calm(1, orders, (stranger,)))
    assert verdict.violation is None, story(verdict)
    entries = verdict.history.entries
    accepted = [at for at, who, what in entries if what.startswith("accepted")]
    submitted = [at for at, who, what in entries if what.startswith("submitted")]
    waits = [after - before for before, after in zip(accepted, submitted, strict=True)]
    ours = [at for at, _, what in entries if what.startswith("START")]
    assert submitted[-1] < ours[-1]
    assert max(waits) < 300.0


def test_searches_that_wait_begin_in_order_of_arrival() -> None:
    orders = tuple(execution(number, 5.0, at=0.1 * number) for number in range(6))
    verdict = run(calm(2, orders))
    assert verdict.violation is None, story(verdict)
    started = [what.split()[1] for _, _, what in verdict.history.entries if "START" in what]
    assert all(before < after for before, after in itertools.pairwise(started))


def test_the_command_runs_schedules_of_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cluster", "--schedules", "3"]) == 0
    assert "no violation in 3 schedules" in capsys.readouterr().out
