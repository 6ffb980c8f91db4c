"""The constants of the protocol, and the relations without which it would not hold."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from admission_stage import seconds

from blastyard.admission.timing import Timings
from blastyard.domain.errors import Misconfigured


def test_the_defaults_are_those_of_the_protocol() -> None:
    given = {
        field.name: value.total_seconds() if isinstance(value, timedelta) else value
        for field in fields(Timings)
        for value in [getattr(Timings(), field.name)]
    }

    assert given == {
        "request_timeout": 5,
        "margin": 8,
        "beat": 10,
        "takeover": 30,
        "lapse": 45,
        "wire": 900,
        "skew": 30,
        "command": 600,
        "ending": 5,
        "turn": 1,
        "patient_turn": 45,
        "passes": 3,
        "forgotten": 7200,
        "settle": 60,
        "courtesy": 45,
        "unbroken_use": 600,
        "marker": 3 * 24 * 3600,
    }


@pytest.mark.parametrize(
    ("wrong", "relation"),
    [
        ({"request_timeout": 8}, "request_timeout < margin < takeover < wire"),
        ({"margin": 5}, "request_timeout < margin < takeover < wire"),
        ({"margin": 30}, "request_timeout < margin < takeover < wire"),
        ({"takeover": 8}, "request_timeout < margin < takeover < wire"),
        ({"takeover": 900}, "request_timeout < margin < takeover < wire"),
        ({"beat": 22}, "beat < takeover - margin"),
        ({"lapse": 10}, "beat < lapse"),
        ({"command": 900}, "command < wire"),
    ],
)
def test_a_relation_that_does_not_hold_is_refused(wrong: dict[str, int], relation: str) -> None:
    in_seconds: dict[str, Any] = {name: seconds(value) for name, value in wrong.items()}

    with pytest.raises(Misconfigured, match=relation) as caught:
        replace(Timings(), **in_seconds)
    assert caught.value.code == "settings_invalid"


@pytest.mark.parametrize("name", [field.name for field in fields(Timings)])
def test_what_is_not_positive_is_refused_by_name(name: str) -> None:
    nothing: Any = 0 if name == "passes" else timedelta(0)

    with pytest.raises(Misconfigured, match=f"{name} must be positive"):
        replace(Timings(), **{name: nothing})


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(Misconfigured) as caught:
        Timings(turn=seconds(-1), skew=seconds(0), command=seconds(1000))
    for part in ("turn must be positive", "skew must be positive", "command < wire"):
        assert part in caught.value.message
