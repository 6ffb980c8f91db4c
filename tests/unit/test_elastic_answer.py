"""What came of a submit command is told from how it ended and what it said last."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blastyard.domain.errors import CODES
from blastyard.engine.command import Ending
from blastyard.engine.elastic_blast.answer import outcome
from blastyard.engine.elastic_blast.said import (
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    said_last,
    seconds_to_wait,
    worded,
)
from blastyard.engine.remote import Failed, NoAnswer, Outcome, Retryable, Submitted

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
PROGRESS = "\x1b[33m[1/5] Writing configuration\x1b[0m\n 10 %\r 50 %\r100 %\r\n"
ACCEPTED: dict[str, Any] = {
    "kind": "submit_result",
    "decision": "accepted",
    "correlation_id": "the-id",
    "cluster_name": "c",
    "message": "submission accepted",
    "retry_after_seconds": None,
    "details": {},
}


def came(
    code: int | None = 0,
    said: dict[str, Any] | None = None,
    *,
    before: str = PROGRESS,
    after: str = "\n",
    stderr: str = "",
    ended_by: str = "itself",
) -> Outcome:
    line = "" if said is None else json.dumps(said)
    signal = None if code is not None else 9
    ending = Ending(code, signal, ended_by, stderr=stderr)
    return outcome(ending, f"{before}{line}{after}".encode(), NOW)


def error(category: str, **more: Any) -> dict[str, Any]:
    return {"kind": "error", "category": category, "message": "m", "details": {}, **more}


def failure_code(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed | NoAnswer)
    return outcome.failure.code


# -- reading -------------------------------------------------------------------------------------


def test_the_answer_stands_on_the_last_line_after_progress_with_escape_codes() -> None:
    assert came(said=ACCEPTED) == Submitted(("the-id",), "accepted")


@pytest.mark.parametrize("after", ["", "\n", "\r\n", "\n\n \n", "\x1b[0m\n", "\nclean-up done\n"])
def test_line_ends_escape_codes_and_chatter_after_the_answer_do_not_matter(after: str) -> None:
    assert came(said=ACCEPTED, after=after) == Submitted(("the-id",), "accepted")


@pytest.mark.parametrize("before", ["\x1b[32m", "\x1b]0;title\x07", "100 %\r", "\x1b[2K\r"])
def test_the_answer_may_follow_an_escape_code_on_its_line(before: str) -> None:
    assert came(said=ACCEPTED, before=before) == Submitted(("the-id",), "accepted")


def test_of_several_answers_the_last_counts() -> None:
    first = json.dumps(error("transient"))

    assert isinstance(came(said=ACCEPTED, before=f"{first}\n"), Submitted)


def test_objects_that_tools_print_are_no_answers() -> None:
    chatter = json.dumps({"id": "/subscriptions/1", "provisioningState": "Succeeded"})

    assert came(said=ACCEPTED, after=f"\n{chatter}\n") == Submitted(("the-id",), "accepted")


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"submit_result","decision":"acc',
        "[1,2]",
        "{}",
        '{"decision":NaN}',
        "null",
        "{" * 90,
    ],
)
def test_what_is_cut_off_or_no_object_is_no_answer(line: str) -> None:
    assert said_last(f"{PROGRESS}{line}\n".encode()) is None
    assert outcome(Ending(0, None, "itself"), line.encode(), NOW) == Submitted()


def test_only_what_can_be_an_id_is_taken_for_one() -> None:
    said = {**ACCEPTED, "correlation_id": "a b", "ids": ["x-1", 7, "-", "x-1"], "elb_job_id": "y"}

    assert came(said=said) == Submitted(("x-1", "y"), "accepted")


@given(st.binary(max_size=600), st.integers(0, 255), st.text(max_size=200))
def test_any_bytes_and_any_exit_code_come_to_one_outcome(
    out: bytes, code: int, stderr: str
) -> None:
    came = outcome(Ending(code, None, "itself", stderr=stderr), out, NOW)

    assert isinstance(came, Submitted) <= (code == 0)
    if isinstance(came, Failed | NoAnswer):
        assert came.failure.code in CODES
        assert came.failure.message.isprintable()
        assert came.failure.next_step


@given(st.binary(max_size=300), st.booleans())
def test_what_stands_before_the_answer_does_not_change_it(before: bytes, crlf: bool) -> None:
    end = b"\r\n" if crlf else b"\n"
    line = json.dumps(ACCEPTED).encode()

    assert outcome(Ending(0, None, "itself"), before + end + line + end, NOW) == Submitted(
        ("the-id",), "accepted"
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    st.sampled_from([*sorted(ACCEPTED), "category", "retry_after", "ids", "elb_job_id"]),
)
def test_fields_of_any_kind_come_to_an_outcome(value: Any, key: str) -> None:
    came(0, {**ACCEPTED, key: value})
    came(8, {**error("transient"), key: value})


# -- exit codes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (1, "submit_input"),
        (2, "submit_database"),
        (3, "submit_failed"),
        (4, "submit_memory"),
        (6, "submit_permission"),
        (7, "submit_dependency"),
        (9, "terminal_exec_unavailable"),
        (126, "dependency_missing"),
        (127, "dependency_missing"),
        (137, "terminal_exec_unavailable"),
        (143, "terminal_exec_unavailable"),
        (255, "terminal_exec_unavailable"),
        (77, "submit_failed"),
    ],
)
def test_each_exit_code_has_a_meaning(code: int, name: str) -> None:
    found = came(code, stderr="ERROR: the cause\n")

    assert failure_code(found) == name
    assert isinstance(found, Failed | NoAnswer)
    assert found.failure.message.endswith("It said: ERROR: the cause")


@pytest.mark.parametrize(("code", "reason"), [(5, "timeout"), (8, "cluster"), (10, "not_ready")])
def test_some_exit_codes_ask_to_come_again(code: int, reason: str) -> None:
    found = came(code)

    assert isinstance(found, Retryable)
    assert (found.reason, found.retry_after) == (reason, None)


@pytest.mark.parametrize("ended_by", ["deadline", "end", "owner_gone", "guardian_gone"])
def test_a_command_that_was_ended_has_not_answered(ended_by: str) -> None:
    found = came(None, ACCEPTED, ended_by=ended_by)

    assert isinstance(found, NoAnswer)
    assert (found.failure.code, found.detail) == ("terminal_exec_unavailable", "submit_exec_error")


def test_a_command_that_was_killed_from_elsewhere_has_not_answered() -> None:
    found = came(None)

    assert isinstance(found, NoAnswer)
    assert "signal 9" in found.failure.message


def test_two_live_ids_with_the_same_tail_are_named() -> None:
    found = came(7, stderr='jobs.batch "elb-finalizer-abcd1234" already exists\n')

    assert failure_code(found) == "submit_name_taken"


def test_same_tails_are_not_worth_a_retry_even_if_the_command_thinks_so() -> None:
    said = error("transient", message="Subprocess failed: spec.template: field is immutable")

    assert failure_code(came(7, said)) == "submit_name_taken"


@pytest.mark.parametrize(
    "words",
    [
        'Memory limit "200G" exceeds memory available on the selected machine type',
        "BLAST database memory requirements exceed memory available on selected machine type",
    ],
)
def test_a_search_too_large_for_the_machines_is_about_memory(words: str) -> None:
    assert failure_code(came(1, stderr=f"ERROR: {words}\n")) == "submit_memory"


def test_a_crash_of_the_command_is_not_the_users_mistake() -> None:
    text = "Traceback (most recent call last):\n  File x\nKeyError: 'y'\n"

    assert failure_code(came(1, stderr=text)) == "submit_failed"


def test_success_that_ends_badly_is_left_to_the_cluster_to_tell() -> None:
    assert isinstance(came(255, ACCEPTED), NoAnswer)


# -- its own answer ------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 7, 8, 255])
@pytest.mark.parametrize("category", ["transient", "capacity", "conflict"])
def test_what_it_calls_passing_is_tried_again_whatever_its_exit_code(
    code: int, category: str
) -> None:
    found = came(code, error(category, retry_after_seconds=15))

    assert isinstance(found, Retryable)
    assert (found.reason, found.retry_after) == (category, 15.0)


@pytest.mark.parametrize(
    ("code", "name"), [(2, "submit_database"), (4, "submit_memory"), (6, "submit_permission")]
)
@pytest.mark.parametrize("category", ["transient", "invalid", "permanent", "internal"])
def test_some_exit_codes_say_what_is_wrong_whatever_is_said_beside(
    code: int, name: str, category: str
) -> None:
    assert failure_code(came(code, error(category, retry_after_seconds=60))) == name


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("invalid", "submit_input"),
        ("not_found", "submit_input"),
        ("auth", "submit_permission"),
        ("permanent", "submit_dependency"),
        ("internal", "submit_failed"),
    ],
)
@pytest.mark.parametrize("code", [0, 1, 8, 10, 255])
def test_what_it_calls_final_is_final_whatever_its_exit_code(
    category: str, name: str, code: int
) -> None:
    assert failure_code(came(code, error(category))) == name


@pytest.mark.parametrize(
    ("decision", "kind"),
    [
        ("resumed", Submitted),
        ("already_done", Submitted),
        ("queued", Retryable),
        ("rejected_capacity", Retryable),
        ("rejected_invalid", Failed),
        ("rejected_permanent", Failed),
    ],
)
def test_each_decision_is_understood(decision: str, kind: type) -> None:
    assert isinstance(came(0, {**ACCEPTED, "decision": decision}), kind)


def test_a_search_that_has_ended_before_says_how() -> None:
    said = {**ACCEPTED, "decision": "already_done", "details": {"terminal": "FAILURE"}}

    assert came(0, said) == Submitted(("the-id",), "already_done", "FAILURE")


def test_secrets_are_not_repeated() -> None:
    said = error("auth", message="403 for https://a/b?sv=1&sig=abc%2F1 with account_key: hunter2")
    found = came(7, said)

    assert isinstance(found, Failed)
    assert "abc" not in found.failure.message
    assert "hunter2" not in found.failure.message


# -- retry_after ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        (30, 30.0),
        (1.5, 1.5),
        ("45", 45.0),
        ("Tue, 01 Dec 2026 12:01:00 GMT", 60.0),
        ("Tue, 01 Dec 2026 12:01:00 -0000", 60.0),
        ("Mon, 30 Nov 2026 12:00:00 GMT", SHORTEST_SECONDS),
        (0, SHORTEST_SECONDS),
        (-5, SHORTEST_SECONDS),
        (10**400, None),
        (1e9, LONGEST_SECONDS),
        ("inf", LONGEST_SECONDS),
        ("nan", None),
        ("soon", None),
        (True, None),
        (None, None),
        ([], None),
    ],
)
def test_a_time_to_wait_is_a_number_or_a_date_within_bounds(
    told: object, seconds: float | None
) -> None:
    assert seconds_to_wait(told, NOW) == seconds


@given(st.text() | st.floats() | st.integers() | st.datetimes().map(str))
def test_a_time_to_wait_never_leaves_its_bounds(told: object) -> None:
    seconds = seconds_to_wait(told, NOW)

    assert seconds is None or SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS


def test_the_time_to_wait_may_stand_in_the_details() -> None:
    found = came(10, {**ACCEPTED, "decision": "rejected_capacity", "details": {"retry_after": "7"}})

    assert isinstance(found, Retryable)
    assert found.retry_after == 7.0


@given(st.text())
def test_words_for_a_person_are_one_short_printable_line(text: str) -> None:
    assert worded(text).isprintable()
    assert len(worded(text)) <= 301
