"""The ledger as people and other versions read it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from admission_stage import NOW, new_ledger, queued, reserved, wish
from hypothesis import given
from hypothesis import strategies as st

from blastyard.admission.census import KEPT_LONE
from blastyard.admission.hold import KEPT_USERS
from blastyard.admission.ledger import (
    FORMAT,
    Change,
    Courtesy,
    Hold,
    HoldState,
    Ledger,
    Policy,
    Submitter,
    Ticket,
    decode_ledger,
    encode,
    fence_text,
)
from blastyard.domain.errors import Unavailable

LARGEST = 256 * 1000
AT = NOW + timedelta(microseconds=123_456)
ODD = 'a "b"\\c\n{d}: é\u2028,'
INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
HOLDS = st.builds(
    Hold,
    ticket=st.builds(
        Ticket, NAMES, NAMES, st.integers(0, 2), st.integers(0, 9), INSTANTS, family=NAMES
    ),
    submitter=NAMES,
    attempt=st.integers(0, 9),
    fence=st.integers(0, 2**45),
    state=st.sampled_from(HoldState),
    since=INSTANTS,
    alias=st.none() | NAMES,
    watched=st.booleans(),
    marked=st.booleans(),
    failed_at=st.none() | INSTANTS,
)
LEDGERS = st.builds(
    Ledger,
    uid=NAMES,
    policy=st.just(Policy()),
    fence=st.integers(0, 2**45),
    holds=st.dictionaries(NAMES, HOLDS, max_size=3),
    tickets=st.dictionaries(
        NAMES,
        st.builds(Ticket, NAMES, NAMES, st.integers(0, 2), st.integers(0, 9), INSTANTS),
        max_size=3,
    ),
    courtesy=st.builds(
        Courtesy,
        owed_at=st.none() | INSTANTS,
        slot_at=st.none() | INSTANTS,
        paid=st.integers(0, 2**45),
        used_since=st.none() | INSTANTS,
        used_at=st.none() | INSTANTS,
    ),
    lone=st.dictionaries(NAMES, INSTANTS, max_size=3),
    begun_at=st.none() | INSTANTS,
    restored=st.none() | st.lists(NAMES, max_size=2).map(tuple),
)


@given(ledger=LEDGERS)
def test_each_entry_has_a_line_of_its_own_whatever_it_says(ledger: Ledger) -> None:
    body = encode(ledger)
    lines = body.decode().split("\n")

    assert decode_ledger(body) == ledger
    assert json.loads(body)["format"] == FORMAT
    lists = [entries for entries in (ledger.holds, ledger.tickets) if entries]
    assert len(lines) == 1 + sum(len(entries) + 2 for entries in lists)


def test_a_line_names_its_search_and_is_json_but_for_its_comma() -> None:
    ledger = reserved(queued(new_ledger(), "s1", wish(ODD, "eve\n"), "s3"), "s1")
    first, *lines = encode(ledger).decode().split("\n")

    assert json.loads(first.rstrip(",") + "}")["uid"] == ledger.uid
    assert [lines[at] for at in (0, 2, 3, 6)] == ['"holds":{', "},", '"tickets":{', "}}"]
    entries = [json.loads("{" + lines[at].rstrip(",") + "}") for at in (1, 4, 5)]
    assert [next(iter(each)) for each in entries] == ["s1", ODD, "s3"]


def test_the_format_is_said_first() -> None:
    assert encode(new_ledger()).startswith(b'{"format":2,')


def test_other_documents_have_one_line() -> None:
    me = Submitter("serve-1", "serve", 1000, policy=Policy(version=3))

    assert b"\n" not in encode(me)
    assert msgspec.json.decode(encode(me), type=Submitter) == me


# -- other versions --------------------------------------------------------------------------------


FORMAT_1 = """
{"uid":"uid-1","policy":{"version":2,"ceiling":4},"fence":17,"sequence":5,
"holds":{"s1":{"ticket":{"submitter":"serve-1","user":"ada","level":1,"sequence":4,
"ticketed_at":"2024-05-06T07:08:09Z"},"submitter":"serve-1","attempt":2,"fence":17,
"state":"submitted","since":"2024-05-06T07:08:09Z"}},
"tickets":{"s2":{"submitter":"serve-1","user":"ada","level":1,"sequence":5,
"ticketed_at":"2024-05-06T07:08:09Z"}},"served":{"ada":17},"turn_at":"2024-05-06T07:08:09Z"}
"""


@pytest.mark.parametrize("said", ["", '"format":1,'], ids=["not said", "said"])
def test_format_1_is_read_and_written_as_format_2(said: str) -> None:
    """A reader of format 1 must refuse what it would otherwise cut: watches, marks, debts."""
    body = FORMAT_1.strip().replace("{", "{" + said, 1).encode()

    ledger = decode_ledger(body)

    hold = ledger.holds["s1"]
    assert (hold.state, hold.watched, hold.marked, hold.alias) == (
        HoldState.SUBMITTED,
        False,
        False,
        None,
    )
    assert (ledger.fence, ledger.policy.ceiling, list(ledger.tickets)) == (17, 4, ["s2"])
    assert ledger.courtesy == Courtesy()
    assert json.loads(encode(ledger))["format"] == 2
    assert decode_ledger(encode(ledger)) == ledger


def test_a_newer_format_is_refused_and_says_so_in_its_first_line() -> None:
    """Fault B13."""
    newer = encode(msgspec.structs.replace(new_ledger(), format=3))
    assert json.loads(newer)["format"] == 3

    with pytest.raises(Unavailable) as caught:
        decode_ledger(newer)

    assert caught.value.code == "ledger_unreadable"
    assert "format 3" in caught.value.message
    assert caught.value.next_step


def test_half_a_text_is_refused_wherever_a_line_ends() -> None:
    """Fault B13."""
    body = encode(reserved(queued(new_ledger(), "s1", "s2", "s3"), "s1"))

    lines = body.split(b"\n")
    for kept in range(len(lines)):
        with pytest.raises(Unavailable):
            decode_ledger(b"\n".join(lines[:kept]))


# -- size ------------------------------------------------------------------------------------------


def test_a_thousand_tickets_and_all_else_that_is_kept_are_under_256_kb() -> None:
    """Fault Q14."""
    submitter = "serve-4194304-1844674407370"
    users = [f"someone.{number:04}" for number in range(KEPT_USERS)]
    tickets = {
        f"job-{number:032x}": Ticket(submitter, users[number], 1, 10**6 + number, AT, passed=3)
        for number in range(1000)
    }
    hold = Hold(
        Ticket(submitter, users[0], 2, 10**6, AT),
        submitter,
        12,
        10**13,
        HoldState.SUBMITTED,
        AT,
        alias="job-" + "f" * 32,
        watched=True,
        marked=True,
    )
    ledger = Ledger(
        uid="f" * 32,
        policy=Policy(changes=tuple(Change(AT, users[0], "ceiling 3 -> 4") for _ in range(20))),
        fence=10**13,
        holds={f"job-{number:032x}": hold for number in range(2000, 2016)},
        tickets=tickets,
        served=dict.fromkeys(users, 10**13),
        courtesy=Courtesy(AT, AT, 10**13, AT, AT),
        lone={f"job-{number:032x}": AT for number in range(KEPT_LONE)},
    )

    assert len(encode(ledger)) < LARGEST
    assert decode_ledger(encode(ledger)) == ledger


# -- the fence -------------------------------------------------------------------------------------


def test_a_fence_as_a_word_names_ledger_and_number() -> None:
    """Clause: a fence is the pair (ledger uid, number) and is compared as such."""
    ledger = new_ledger()

    assert fence_text(ledger) == "uid-1/100"
    assert fence_text(reserved(queued(ledger, "s1"), "s1")) == "uid-1/101"
    assert fence_text(msgspec.structs.replace(ledger, uid="uid-2")) == "uid-2/100"
