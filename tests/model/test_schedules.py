"""The real gate and services under thousands of schedules of faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from verdict_stage import digest, require_kept, seeds_of

from blastyard.testing.maker import make
from blastyard.testing.schedule import Habitat, repeated
from blastyard.testing.shared_store import sqlite_stores
from blastyard.testing.simulator import run

SHORT = 60
LONG = range(1000, 3400)
HASHED = """
from hashlib import sha256
from blastyard.testing.maker import make
from blastyard.testing.simulator import run
lines = [line for seed in range(6) for line in run(make(seed)).history.lines()]
print(sha256("\\n".join(lines).encode()).hexdigest())
"""


@pytest.mark.parametrize("habitat", [one for one in Habitat if one is not Habitat.ANY])
def test_a_few_schedules_of_each_habitat_keep_every_invariant(habitat: Habitat) -> None:
    require_kept(make, run, seeds_of(make, habitat, 4))


def test_some_schedules_keep_every_invariant() -> None:
    require_kept(make, run, range(SHORT))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_thousands_of_schedules_keep_every_invariant(part: int) -> None:
    require_kept(make, run, LONG[part::6])


def test_schedules_do_what_they_are_for() -> None:
    verdicts = [run(make(seed)) for seed in range(20)]
    assert sum(verdict.grants for verdict in verdicts) > 60
    assert sum(len(verdict.drawn) for verdict in verdicts) > 300
    text = "\n".join(line for verdict in verdicts for line in verdict.history.lines())
    for happening in ("KILLED", "freeze", "late by", "lost_answer", "conflict", "delay", "lease:"):
        assert happening in text


def test_the_same_schedule_makes_the_same_history() -> None:
    for seed in range(8):
        assert run(make(seed)).history.entries == run(make(seed)).history.entries


def test_a_run_repeats_from_the_record_of_its_faults() -> None:
    for seed in range(12):
        verdict = run(make(seed))
        again = run(repeated(verdict.schedule, verdict.drawn))
        assert again.history.entries == verdict.history.entries


def test_no_run_depends_on_the_order_of_hashes(tester_environment: dict[str, str]) -> None:
    digests = {digest(tester_environment, HASHED, seed) for seed in ("0", "1", "4711")}
    assert len(digests) == 1


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))]
)
def test_real_sqlite_stores_make_the_same_history_as_memory(seed: int, tmp_path: Path) -> None:
    in_memory = run(make(seed))
    in_file = run(make(seed), sqlite_stores(tmp_path))
    assert in_file.history.entries == in_memory.history.entries
    assert in_file.violation is None
