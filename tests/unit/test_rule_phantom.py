"""Finalizers that nothing stands behind."""

from __future__ import annotations

from datetime import timedelta

import pytest
from admission_stage import NOW, TIMINGS, new_ledger, seconds
from shared_stage import census, merging, running, watched

from blastyard.admission.census import (
    KEPT_LONE,
    Census,
    counted,
    forget,
    noted,
    phantoms,
    room,
)
from blastyard.admission.ledger import Ledger, encode

HOURS = TIMINGS.forgotten


def aware(ledger: Ledger, found: Census, at: timedelta = timedelta(0)) -> Ledger:
    return noted(ledger, found, NOW + at, TIMINGS)


def test_a_lone_finalizer_counts_until_it_has_been_alone_for_2_h() -> None:
    """Faults B2 and B3; clause: a phantom only after 2 h alone."""
    found = census(merging("f"))
    ledger = aware(new_ledger(), found)

    almost = NOW + HOURS - seconds(1)
    assert counted(ledger, found, almost, TIMINGS).families == {"f"}
    assert counted(ledger, found, NOW + HOURS, TIMINGS).families == frozenset()
    assert "f" in counted(ledger, found, NOW + HOURS, TIMINGS).sightings, "shown all the same"
    assert room(ledger, counted(ledger, found, NOW + HOURS, TIMINGS)) == 3


def test_a_merging_finalizer_without_companions_counts() -> None:
    """Fault B2; clause: a finalizer that merges for ten minutes has no companions, and is real."""
    found = census(merging("f"), deserted=["other"], finished=["other"])
    ledger = aware(new_ledger(), found)

    assert phantoms(ledger, found, NOW + timedelta(minutes=10), TIMINGS) == frozenset()


def test_a_finalizer_whose_companions_were_seen_deleted_unfinished_is_a_phantom_at_once() -> None:
    """Fault B3; clause: a peer's cancel leaves the finalizer's pod running."""
    found = census(merging("f"), deserted=["f"])
    ledger = aware(new_ledger(), found)

    assert counted(ledger, found, NOW, TIMINGS).families == frozenset()
    late = aware(aware(new_ledger(), census(merging("f"))), found, seconds(9))
    assert phantoms(late, found, NOW + seconds(9), TIMINGS) == {"f"}


def test_what_was_noted_of_a_deserted_finalizer_is_not_noted_again_and_again() -> None:
    found = census(merging("f"), deserted=["f"])
    ledger = aware(new_ledger(), found)

    assert aware(ledger, found, seconds(30)) is ledger
    assert aware(ledger, census(merging("f")), seconds(30)) is ledger, (
        "others need not have seen it"
    )


def test_what_has_companions_again_begins_to_be_alone_anew() -> None:
    """Fault B2."""
    ledger = aware(new_ledger(), census(merging("f")))
    ledger = aware(ledger, census(running("f"), deserted=["f"]), HOURS)
    assert ledger.lone == {}

    found = census(merging("f"))
    assert phantoms(aware(ledger, found, HOURS), found, NOW + HOURS, TIMINGS) == frozenset()


@pytest.mark.parametrize("alias", [None, "f"])
def test_what_a_hold_covers_is_never_a_phantom(alias: str | None) -> None:
    """Fault B2; clause: a phantom only if it is not in the ledger."""
    found = census(merging("f"), deserted=["f"])
    ledger = aware(new_ledger(1), found)
    covering = watched(ledger, "s1" if alias else "f", alias=alias)

    assert phantoms(covering, found, NOW + HOURS, TIMINGS) == frozenset()
    assert counted(covering, found, NOW + HOURS, TIMINGS) is found
    assert aware(covering, found).lone == {}
    assert room(covering, counted(covering, found, NOW + HOURS, TIMINGS)) == 0


def test_an_operator_can_say_that_a_lone_finalizer_counts_no_more() -> None:
    """Fault B3."""
    found = census([*merging("f"), *running("g")])
    ledger = aware(new_ledger(), found)

    after = forget(ledger, "f", NOW, TIMINGS)

    assert after is not None
    assert counted(after, found, NOW, TIMINGS).families == {"g"}
    assert forget(after, "f", NOW, TIMINGS) is None
    assert forget(ledger, "g", NOW, TIMINGS) is None
    assert aware(after, found, seconds(60)) is after


def test_only_those_that_are_seen_alone_now_are_remembered() -> None:
    ledger = new_ledger()
    for number in range(300):
        ledger = aware(ledger, census(merging(f"f{number}")), seconds(number))

    assert list(ledger.lone) == ["f299"]
    assert aware(ledger, census()).lone == {}


def test_however_many_are_alone_the_ledger_stays_small_and_the_rest_counts() -> None:
    """The oldest are kept, so that each has its time."""
    first = aware(new_ledger(), census(merging("old")))
    names = [f"elb-{number:05}-{'x' * 50}" for number in range(3000)]
    found = census(merging("old", *names))

    ledger = aware(first, found, seconds(1))

    assert len(ledger.lone) == KEPT_LONE
    assert "old" in ledger.lone
    assert len(encode(ledger)) < 32 * 1024
    assert aware(ledger, found, seconds(2)) is ledger
    assert len(counted(ledger, found, NOW + HOURS, TIMINGS).families) == 3000


def test_a_clock_that_was_put_back_makes_no_phantom() -> None:
    found = census(merging("f"))
    ledger = aware(new_ledger(), found)

    assert phantoms(ledger, found, NOW - timedelta(hours=3), TIMINGS) == frozenset()
    assert aware(ledger, found, -timedelta(hours=3)).lone == {"f": NOW}
