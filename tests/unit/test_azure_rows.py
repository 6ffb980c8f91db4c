"""The keys and failures of the table store, without a table."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core import exceptions
from azure.data.tables import TableErrorCode, TableTransactionError

from blastyard.domain.job import State
from blastyard.domain.search import Priority
from blastyard.store.azure_tables import key
from blastyard.store.azure_tables.failure import ANY, Kind, read
from blastyard.testing import sample

FORBIDDEN = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f']")
TEXTS = ("", "a", "A", "ü", "a/b#c?d\\e", "\x00", "'", "\U0001f9ec" * 50)


def every_key(text: str) -> list[str]:
    search = replace(sample.search(user=text), id=text, runner=text, sequence=7)
    return [
        key.by_id(text),
        key.by_user(key.digest(text), 7),
        key.while_live(search),
        key.while_live(replace(search, state=State.RUNNING)),
        key.claim(text, text),
        key.database(text),
        key.event(7, 1),
        key.leftover(7),
        key.by_arrival(7),
    ]


@pytest.mark.parametrize("text", TEXTS)
def test_no_key_has_a_character_or_a_length_that_is_forbidden(text: str) -> None:
    for name in every_key(text):
        assert not FORBIDDEN.search(name)
        assert len(name) <= 512
        assert name < name[:2] + key.BEYOND


def test_digests_keep_texts_apart_that_look_alike_when_joined() -> None:
    assert key.digest("ab", "c") != key.digest("a", "bc")
    assert key.digest("a", "") != key.digest("a")
    assert key.digest("\ud800") != key.digest("?")


def test_a_spelled_text_begins_with_its_spelled_beginning() -> None:
    for text in TEXTS:
        for end in range(len(text)):
            assert key.spelled(text).startswith(key.spelled(text[:end]))


def test_live_searches_sort_by_priority_and_arrival_within_their_user() -> None:
    chance = random.Random(1)
    searches = [
        replace(
            sample.search(priority=chance.choice(list(Priority))),
            sequence=chance.randrange(10 ** chance.randint(1, 16)),
        )
        for _ in range(200)
    ]
    by_rule = sorted(searches, key=lambda one: (-one.request.priority.level, one.sequence))

    assert sorted(searches, key=key.while_live) == by_rule


@pytest.mark.parametrize("before", [-5, 0, 1, 10**15, 10**16, 10**20])
def test_arrivals_before_a_number_are_those_with_smaller_ones(before: int) -> None:
    keys = key.arrivals_before(before, None)
    for sequence in (1, 2, 10**15 - 1, 10**15, 10**15 + 1, 10**16 - 1):
        inside = keys.low <= key.by_arrival(sequence) < keys.high
        assert inside is (sequence < before)


def answered(status: int, code: object = None, **headers: str) -> exceptions.HttpResponseError:
    response: Any = SimpleNamespace(status_code=status, reason="", headers=headers)
    error = exceptions.HttpResponseError("secret", response=response)
    error.error_code = code  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, TableErrorCode.RESOURCE_NOT_FOUND, Kind.ABSENT),
        (409, TableErrorCode.ENTITY_ALREADY_EXISTS, Kind.EXISTS),
        (409, TableErrorCode.TABLE_BEING_DELETED, Kind.BUSY),
        (412, "UpdateConditionNotSatisfied", Kind.CHANGED),
        (401, None, Kind.REFUSED),
        (403, TableErrorCode.AUTHENTICATION_FAILED, Kind.REFUSED),
        (413, None, Kind.TOO_LARGE),
        (400, TableErrorCode.ENTITY_TOO_LARGE, Kind.TOO_LARGE),
        (400, TableErrorCode.INVALID_INPUT, Kind.WRONG),
        (429, None, Kind.BUSY),
        (503, TableErrorCode.SERVER_BUSY, Kind.BUSY),
        (503, None, Kind.LOST),
        (500, TableErrorCode.OPERATION_TIMED_OUT, Kind.LOST),
        (408, None, Kind.LOST),
        (502, None, Kind.LOST),
        (799, None, Kind.LOST),
    ],
)
def test_each_answer_of_the_service_has_a_kind(status: int, code: object, kind: Kind) -> None:
    trouble = read(answered(status, code))

    assert trouble.kind is kind
    assert "secret" not in trouble.unavailable("here").message


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("-1", None), ("nan", None), ("Mon, 1 Jan", None), ("", None)],
)
def test_a_time_to_come_back_is_read_when_it_is_one(header: str, seconds: float | None) -> None:
    error = answered(503, "ServerBusy", **{"Retry-After": header})

    assert read(error).unavailable("here").retry_after == seconds


def test_the_vendor_has_no_error_that_nobody_thought_of() -> None:
    known = {
        *("ClientAuthenticationError", "DecodeError", "HttpResponseError", "IncompleteReadError"),
        *("ODataV4Error", "ResourceExistsError", "ResourceModifiedError", "ResourceNotFoundError"),
        *("ResourceNotModifiedError", "ResponseNotReadError", "ServiceRequestError"),
        *("ServiceRequestTimeoutError", "ServiceResponseError", "ServiceResponseTimeoutError"),
        *("StreamClosedError", "StreamConsumedError", "TooManyRedirectsError", "AzureError"),
    }
    found = {
        name
        for name, each in vars(exceptions).items()
        if isinstance(each, type) and issubclass(each, exceptions.AzureError)
    }

    assert found == known
    assert issubclass(TableTransactionError, exceptions.HttpResponseError)
    for each in (exceptions.ServiceRequestError("x"), exceptions.AzureError("x"), OSError("x")):
        assert isinstance(each, ANY)
        assert read(each).kind is Kind.LOST
