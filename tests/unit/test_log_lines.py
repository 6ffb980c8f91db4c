"""Events as log lines, for people and for programs."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from admission_stage import (
    NOW,
    Yard,
    wish,
)
from metrics_stage import PAGE, reserve, watched

from blastyard.admission import observer as told
from blastyard.admission.outcome import Reason, Refused, Waiting
from blastyard.bootstrap.observing import Log, Newly
from blastyard.domain.errors import Unavailable
from blastyard.logline import JsonLines, note


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[dict[str, object]]]]:
    """The log lines so far, as JSON makes them."""
    caplog.set_level(logging.INFO)
    formatter = JsonLines()

    def read() -> list[dict[str, object]]:
        texts = [formatter.format(record) for record in caplog.records]
        assert not any("\n" in text for text in texts)
        return [json.loads(text) for text in texts]

    return read


def test_a_denial_on_the_cluster_is_an_event_with_its_code_rule_and_inputs(
    lines: Callable[[], list[dict[str, object]]],
) -> None:
    gate = watched(Yard(), Newly([Log(on_cluster=True)]))
    gate.publish([wish("s1"), wish("s2")])
    reserve(gate, "s1")
    gate.turn("s2")
    gate.turn("s2")

    (denied,) = [line for line in lines() if line.get("event") == "k8s_gate_deny"]
    expected = {
        "level": "info",
        "search": "s2",
        "code": "blast_submit_gate_unavailable",
        "rule": "capacity",
        "phase": "waiting_for_capacity",
        "position": 1,
        "ceiling": 1,
        "holds": 1,
        "seen": 0,
        "until": None,
        "detail": "1 running of at most 1",
    }
    assert denied.items() >= expected.items()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("cluster_unavailable", "blast_submit_lease_api_error"),
        ("store_unavailable", "store_unavailable"),
    ],
)
def test_what_cannot_be_told_has_the_code_that_somebody_is_called_for(
    lines: Callable[[], list[dict[str, object]]], code: str, expected: str
) -> None:
    Log(on_cluster=True)(told.Undecided("s1", Unavailable(code, "no answer")))

    (line,) = lines()
    assert (line["event"], line["level"], line["code"]) == ("k8s_gate_deny", "warning", expected)


def test_as_words_an_event_begins_with_its_name(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    detail = 'it is "busy"\nand more'
    Log(on_cluster=False)(told.Denied("s1", Waiting(Reason.TURN, detail, 3, NOW)))

    assert caplog.messages == [
        "gate_deny search=s1 code=blast_submit_gate_unavailable rule=turn "
        "phase=waiting_for_submit_slot position=3 until=2024-05-06T07:08:09.000Z "
        r'detail="it is \"busy\"\nand more"'
    ]


def test_the_other_events_that_are_logged_are_those_in_the_page(
    lines: Callable[[], list[dict[str, object]]],
) -> None:
    log = Log(on_cluster=False)
    for event in (
        told.Denied("s", Refused("it was cancelled")),
        told.Granted("s", 1, 2.0, 0.0),
        told.Retired(frozenset({"s"})),
        told.Entered("h", taken_over=True),
        told.Entered("h", taken_over=False),
        told.Renewed("h"),
        told.Lost("h"),
        told.Left("h", 1.0),
        told.ReleaseFailed("h"),
        told.Abandoned("h"),
    ):
        log(event)

    documented = set(re.findall(r"^\| `((?:gate|lease)_\w+)` \|", PAGE, re.MULTILINE))
    assert {str(line["event"]) for line in lines()} == documented - {"gate_passed"}


def test_a_traceback_stays_on_its_line(lines: Callable[[], list[dict[str, object]]]) -> None:
    try:
        json.loads("[1,\n")
    except ValueError:
        logging.getLogger("blastyard.test").exception("it broke")

    (line,) = lines()
    assert line["message"] == "it broke"
    assert "JSONDecodeError" in str(line["exception"])
    assert "\n" in str(line["exception"])


def test_fields_cannot_pass_for_what_every_line_has(
    lines: Callable[[], list[dict[str, object]]],
) -> None:
    note(logging.getLogger("blastyard.test"), logging.INFO, "some_event", message="x", level="y")

    (line,) = lines()
    assert (line["level"], line["event"]) == ("info", "some_event")


def test_an_event_below_the_level_costs_no_words() -> None:
    class Costly:
        def __str__(self) -> str:
            raise AssertionError("nobody reads it")

    with suppress(AttributeError):
        note(logging.getLogger("blastyard.quiet"), logging.DEBUG, "some_event", field=Costly())
