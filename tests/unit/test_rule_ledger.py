"""The text form of the ledger."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest
from admission_stage import NOW, new_ledger, queued, reserved
from hypothesis import given
from hypothesis import strategies as st

from blastyard.admission.hold import flag_cancelled
from blastyard.admission.ledger import (
    FORMAT,
    Change,
    Fence,
    Hold,
    HoldState,
    Ledger,
    Policy,
    Submitter,
    Ticket,
    decode_ledger,
    encode,
    families,
)
from blastyard.domain.errors import Unavailable

LARGEST = 256 * 1024

WORDS = st.text(max_size=12)
NAMES = WORDS.filter(bool)
NUMBERS = st.integers(0, 2**53)
INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
TICKETS = st.builds(
    Ticket,
    submitter=NAMES,
    user=NAMES,
    level=st.integers(0, 2),
    sequence=NUMBERS,
    ticketed_at=INSTANTS,
    family=st.none() | NAMES,
    parked_by=st.none() | NAMES,
    blocked=st.none() | NAMES,
    passed=st.integers(0, 3),
)
HOLDS = st.builds(
    Hold,
    ticket=TICKETS,
    submitter=NAMES,
    attempt=NUMBERS,
    fence=NUMBERS,
    state=st.sampled_from(HoldState),
    since=INSTANTS,
    cancelled=st.booleans(),
)
POLICIES = st.builds(
    Policy,
    ceiling=st.integers(0, 1000),
    user_cap=st.none() | st.integers(1, 9),
    ageing_seconds=st.integers(1, 10**6),
    version=NUMBERS,
    changes=st.lists(st.builds(Change, INSTANTS, WORDS, WORDS), max_size=2).map(tuple),
)
LEDGERS = st.builds(
    Ledger,
    uid=NAMES,
    policy=POLICIES,
    fence=NUMBERS,
    format=st.just(FORMAT),
    sequence=NUMBERS,
    holds=st.dictionaries(NAMES, HOLDS, max_size=3),
    tickets=st.dictionaries(NAMES, TICKETS, max_size=3),
    served=st.dictionaries(NAMES, NUMBERS, max_size=3),
    turn_at=st.none() | INSTANTS,
    last_ticketed_at=st.none() | INSTANTS,
    restored=st.none() | st.lists(NAMES, max_size=2).map(tuple),
)


@given(ledger=LEDGERS)
def test_a_ledger_reads_back_as_it_was_written(ledger: Ledger) -> None:
    assert decode_ledger(encode(ledger)) == ledger


@given(ledger=LEDGERS, cut=st.floats(0, 1, exclude_max=True))
def test_a_ledger_that_is_cut_off_is_no_ledger(ledger: Ledger, cut: float) -> None:
    """Faults A13 and B13."""
    body = encode(ledger)

    with pytest.raises(Unavailable) as caught:
        decode_ledger(body[: int(cut * len(body))])
    assert caught.value.code == "ledger_unreadable"


@given(body=st.binary(max_size=60))
def test_bytes_that_are_no_ledger_are_unreadable_and_nothing_else(body: bytes) -> None:
    """Fault B13."""
    with pytest.raises(Unavailable) as caught:
        decode_ledger(body)
    assert caught.value.code == "ledger_unreadable"
    assert "nothing is admitted" in caught.value.message
    assert caught.value.next_step


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"<html><h1>502 Bad Gateway</h1></html>",
        b'{"uid":"\xff","policy":{},"fence":1}',
        b'{"uid":"u","policy":{"ceiling":"many"},"fence":1}',
        b'{"uid":"u","policy":{},"fence":1,"holds":{"s":{}}}',
    ],
)
def test_an_answer_that_is_not_a_ledger_is_not_taken_for_an_empty_one(body: bytes) -> None:
    """Faults A13 and B13."""
    with pytest.raises(Unavailable) as caught:
        decode_ledger(body)
    assert caught.value.code == "ledger_unreadable"


@pytest.mark.parametrize("newer", [FORMAT + 1, FORMAT + 100])
def test_a_ledger_of_a_newer_format_is_refused_with_both_numbers(newer: int) -> None:
    """Fault B13."""
    body = encode(msgspec.structs.replace(new_ledger(), format=newer))

    with pytest.raises(Unavailable) as caught:
        decode_ledger(body)
    assert caught.value.code == "ledger_unreadable"
    assert f"format {newer}" in caught.value.message
    assert f"up to {FORMAT}" in caught.value.message


def test_a_field_that_this_version_does_not_know_does_not_make_a_ledger_unreadable() -> None:
    known = json.loads(encode(new_ledger(ceiling=7)))

    assert decode_ledger(json.dumps({**known, "colour": "red"}).encode()) == new_ledger(ceiling=7)


def test_a_ledger_is_whole_unless_claims_are_being_collected() -> None:
    assert new_ledger().is_whole
    assert not msgspec.structs.replace(new_ledger(), restored=()).is_whole


def test_a_thousand_waiting_searches_fit_into_256_kb() -> None:
    """Fault Q14."""
    at = NOW + timedelta(microseconds=123_456)
    users = [f"user-with-a-longish-name-{number:03}" for number in range(200)]
    submitter = "search-4194304-1844674407370"
    tickets = {
        str(UUID(int=2**127 + number)): Ticket(
            submitter, users[number % 200], 1, 100_000 + number, at, passed=number % 4
        )
        for number in range(1000)
    }
    hold = Hold(
        Ticket(submitter, users[0], 2, 99_999, at), submitter, 12, 10**13, HoldState.SUBMITTED, at
    )
    ledger = Ledger(
        uid=UUID(int=2**127).hex,
        policy=Policy(changes=tuple(Change(at, users[0], "ceiling 3 -> 4") for _ in range(20))),
        fence=10**13,
        sequence=101_000,
        holds={str(UUID(int=number)): hold for number in range(64)},
        tickets=tickets,
        served=dict.fromkeys(users, 10**13),
        turn_at=at,
        last_ticketed_at=at,
    )

    assert decode_ledger(encode(ledger)) == ledger
    assert len(encode(ledger)) < LARGEST


def test_what_is_not_said_is_not_written() -> None:
    plain = encode(queued(reserved(queued(new_ledger(), "s1"), "s1"), "s2"))

    for absent in (b"null", b"parked_by", b"blocked", b"cancelled", b"alias", b"restored"):
        assert absent not in plain
    cancelled = flag_cancelled(reserved(queued(new_ledger(), "s1"), "s1"), "s1")
    assert cancelled is not None
    assert b'"cancelled":true' in encode(cancelled)


def test_a_family_has_one_slot_and_a_search_without_one_its_own() -> None:
    ledger = reserved(queued(new_ledger(), "s1"), "s1")
    hold = ledger.holds["s1"]
    child = msgspec.structs.replace(hold, ticket=msgspec.structs.replace(hold.ticket, family="p"))

    assert families({"s1": hold}) == {"s1"}
    assert families({"s1": hold, "c1": child, "c2": child}) == {"s1", "p"}
    assert families({}) == frozenset()


def test_a_fence_of_one_ledger_is_not_that_of_another_with_the_same_number() -> None:
    """Fault B14."""
    assert Fence("uid-1", 7) == Fence("uid-1", 7)
    assert Fence("uid-1", 7) != Fence("uid-2", 7)


def test_a_submitter_keeps_the_policy_that_it_saw_last() -> None:
    me = Submitter("serve-1", "serve", 1000, policy=Policy(ceiling=5, version=9))

    assert msgspec.json.decode(encode(me), type=Submitter) == me
