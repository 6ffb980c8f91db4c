"""The time limits of a team installation, one against the other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blastyard.bootstrap.team import assert_coordination_invariants, time_limits
from blastyard.domain.errors import Misconfigured
from blastyard.settings import Settings, read_settings
from blastyard.worker.coordination import TimeLimits, violations

GOOD = TimeLimits(600, 900, "3300", "3600")


def test_the_defaults_fit_each_other() -> None:
    assert violations(time_limits(Settings())) == []


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"submit_exec": 3300}, "SUBMIT_EXEC_TIMEOUT_SECONDS"),
        ({"soft": "3600"}, "CELERY_TASK_SOFT_TIME_LIMIT"),
        ({"lease": 600}, "BLAST_SUBMIT_LEASE_TTL_SECONDS"),
        ({"hard": "7200"}, "visibility"),
        ({"visibility": 3600}, "visibility"),
        ({"countdown": 7200}, "countdown"),
    ],
)
def test_each_relation_that_does_not_hold_is_named(wrong: dict[str, object], named: str) -> None:
    assert any(named in sentence for sentence in violations(replace(GOOD, **wrong)))


def test_all_of_them_are_named_at_once() -> None:
    assert len(violations(TimeLimits(5000, 900, "4000", "3000", visibility=2000))) == 4


@given(st.text(alphabet="0123456789 _+-x.", max_size=6))
def test_limits_are_read_as_the_worker_reads_them(text: str) -> None:
    """A bare ``int``: nothing is clamped, ``1_0`` is ten, and ``3300.0`` is an error."""
    found = violations(replace(GOOD, soft=text))
    try:
        number = int(text)
    except ValueError:
        assert "whole numbers" in found[0]
    else:
        assert (found == []) == (600 < number < 3600)


def test_with_the_cluster_a_process_refuses_to_start() -> None:
    settings = read_settings(
        {"BLAST_COORD_BACKEND": "k8s", "CELERY_TASK_TIME_LIMIT": "8000", "PATH": "/bin"}
    )
    with pytest.raises(Misconfigured, match="visibility"):
        assert_coordination_invariants(settings)


def test_elsewhere_it_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    settings = read_settings({"CELERY_TASK_TIME_LIMIT": "8000", "PATH": "/bin"})

    assert_coordination_invariants(settings)

    assert "visibility" in caplog.text
