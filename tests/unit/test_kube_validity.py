"""Until when a credential is good is read from itself, and nothing else is made of it."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_certificate import LATER, LATER_ENDS_AT, SOON, SOON_ENDS_AT

from blastyard.kube.validity import certificate_expires_at, token_expires_at


def jwt(claims: object) -> str:
    """A token nobody has signed."""
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{body}.c2ln"


def test_the_end_of_a_certificate_is_read_in_both_forms_of_time() -> None:
    assert certificate_expires_at(SOON) == SOON_ENDS_AT  # UTCTime
    assert certificate_expires_at(LATER) == LATER_ENDS_AT  # GeneralizedTime, from 2050 on


def test_of_a_chain_the_first_certificate_counts() -> None:
    assert certificate_expires_at(f"said by a program\n{LATER}{SOON}") == LATER_ENDS_AT


@pytest.mark.parametrize(
    "text", ["", "no certificate", SOON[:200], SOON.replace("MIIB", "MIIC"), SOON[400:] + SOON[:90]]
)
def test_what_is_no_certificate_has_no_end(text: str) -> None:
    assert certificate_expires_at(text) is None


@given(at=st.integers(40, 500), character=st.sampled_from("Aq/0"))
def test_a_damaged_certificate_is_read_or_not_but_never_fails(at: int, character: str) -> None:
    found = certificate_expires_at(SOON[:at] + character + SOON[at + 1 :])

    assert found is None or found.tzinfo is UTC


def test_the_end_of_a_token_is_its_claim() -> None:
    assert token_expires_at(jwt({"exp": 1_700_000_000})) == datetime(
        2023, 11, 14, 22, 13, 20, tzinfo=UTC
    )


@pytest.mark.parametrize(
    "token",
    ["", "opaque", "a.b.c", "a.!.c", jwt({}), jwt({"exp": "x"}), jwt({"exp": 1e30}), jwt(1)],
)
def test_a_token_that_does_not_say_has_no_end(token: str) -> None:
    assert token_expires_at(token) is None
