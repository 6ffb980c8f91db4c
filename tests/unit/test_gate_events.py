"""What happens at the gates is told to an observer."""

from __future__ import annotations

import msgspec
import pytest
from admission_stage import (
    ME,
    OTHER,
    TIMINGS,
    Script,
    Yard,
    inside,
    inside_with_ticket,
    new_ledger,
    queued,
    reserved,
    wish,
)
from metrics_stage import observed, reserve, watched

from blastyard.admission import observer as told
from blastyard.admission.hold import Attempt
from blastyard.admission.inside import LeaseLost
from blastyard.admission.ledger import HoldState, Ledger
from blastyard.admission.observer import Event, News
from blastyard.admission.outcome import Granted, Reason, Waiting
from blastyard.admission.port import LEASE
from blastyard.admission.tending import Tending
from blastyard.bootstrap.observing import Newly
from blastyard.domain.errors import Unavailable
from blastyard.testing.faulty import Fault

# -- what the gate tells ---------------------------------------------------------------------------


def test_an_admission_is_told_step_by_step() -> None:
    yard, gate, events = observed()
    gate.publish([wish("s1")])
    yard.clock.leap(7)
    stay = inside(gate, "s1")
    stay.reserve(Attempt("s1", 1, ME))
    yard.clock.leap(2)
    gate.leave(stay)

    holder = "blastyard-s1-1"
    granted = next(event for event in events if isinstance(event, told.Granted))
    assert events == [
        told.Entered(holder, taken_over=False),
        granted,
        told.Left(holder, 2.0),
    ]
    assert (granted.search, granted.waited, granted.at) == ("s1", 7.0, 7.0)


def test_a_denial_says_which_rule_with_its_inputs() -> None:
    _, gate, events = observed()
    gate.publish([wish("s1"), wish("s2")])
    reserve(gate, "s1")
    events.clear()

    gate.turn("s2")

    (denied,) = events
    assert isinstance(denied, told.Denied)
    assert (denied.search, denied.rule, denied.position) == ("s2", "capacity", 1)
    assert denied.inputs is not None
    assert (denied.inputs.ceiling, denied.inputs.holds, denied.inputs.waiting) == (1, 1, 1)


def test_a_denial_inside_gate_a_is_told_as_well() -> None:
    _, gate, events = observed()
    gate.publish([wish("s1"), wish("s2")])
    reserve(gate, "s1")
    events.clear()

    reserve(gate, "s2")
    reserve(gate, "s3")

    assert [each.rule for each in events if isinstance(each, told.Denied)] == [
        "capacity",
        "refused",
    ]


def test_who_finds_somebody_inside_gate_a_is_denied_by_the_lease() -> None:
    yard, gate, events = observed()
    inside_with_ticket(yard.gate(OTHER), "theirs")

    gate.enter("s1", 1)

    (denied,) = events
    assert isinstance(denied, told.Denied)
    assert (denied.rule, denied.inputs) == ("submit_slot", None)
    assert "blastyard-theirs-1" in denied.outcome.detail


def test_a_gate_that_cannot_be_told_is_no_denial_for_a_reason() -> None:
    script = Script()
    _, gate, events = observed(script)
    script.always("swap", LEASE, Fault.UNAVAILABLE)

    with pytest.raises(Unavailable):
        gate.enter("s1", 1)

    (undecided,) = events
    assert isinstance(undecided, told.Undecided)
    assert undecided.error.code == "store_unavailable"


def test_a_takeover_is_told_apart_from_a_lease_that_was_free() -> None:
    yard, gate, events = observed()
    inside(yard.gate(OTHER), "theirs")
    yard.clock.leap(TIMINGS.takeover.total_seconds())

    inside(gate, "s1")

    assert events == [told.Entered("blastyard-s1-1", taken_over=True)]


def test_a_renewal_is_told_with_every_beat() -> None:
    _, gate, events = observed()
    inside(gate, "s1")
    events.clear()

    gate.beat()
    gate.beat()

    assert events == [told.Renewed("blastyard-s1-1")] * 2


def test_a_lease_that_is_found_in_other_hands_is_lost_once_and_not_released() -> None:
    yard, gate, events = observed()
    stay = inside(gate, "s1")
    yard.clock.leap(TIMINGS.takeover.total_seconds())
    inside(yard.gate(OTHER), "theirs")
    events.clear()

    gate.beat()
    gate.beat()
    gate.leave(stay)

    assert events == [told.Lost("blastyard-s1-1")]


def test_a_stay_beyond_its_deadline_is_lost_before_it_reserves() -> None:
    yard, gate, events = observed()
    stay = inside_with_ticket(gate)
    yard.clock.leap(TIMINGS.takeover.total_seconds())
    events.clear()

    with pytest.raises(LeaseLost):
        stay.reserve(Attempt("s1", 1, ME))
    gate.leave(stay)

    assert events == [told.Lost("blastyard-s1-1")]


def test_a_command_that_outlasted_its_lease_has_lost_it() -> None:
    yard, gate, events = observed()
    stay = inside(gate, "s1")
    yard.clock.leap(TIMINGS.takeover.total_seconds())
    events.clear()

    gate.leave(stay)

    assert events == [told.Lost(stay.holder)]


def test_a_beat_beside_a_release_loses_nothing() -> None:
    yard, script, events = Yard(), Script(), []
    gate = watched(yard, events.append, plan=script)
    stay = inside(gate, "s1")

    stay.close()
    assert stay.renew() is False

    assert not [each for each in events if isinstance(each, told.Lost)]


def test_a_release_that_fails_is_told_for_every_try() -> None:
    yard, script, events = Yard(), Script(), []
    gate = watched(yard, events.append, plan=script)
    stay = inside(gate, "s1")
    script.always("swap", LEASE, Fault.LOST_REQUEST)

    gate.leave(stay)
    gate.beat()
    script.heal()
    gate.beat()

    holder = stay.holder
    releases = [each for each in events if isinstance(each, told.ReleaseFailed | told.Left)]
    assert releases == [
        told.ReleaseFailed(holder),
        told.ReleaseFailed(holder),
        told.Left(holder, 0),
    ]


def test_a_lease_that_is_left_to_lapse_is_told() -> None:
    _, gate, events = observed()
    stay = inside(gate, "s1")
    events.clear()

    stay.abandon()
    gate.leave(stay)

    assert events == [told.Abandoned(stay.holder)]


def test_a_resumed_search_has_waited_no_second_time() -> None:
    _, gate, events = observed()
    gate.publish([wish("s1")])
    reserve(gate, "s1")
    reserve(gate, "s1", attempt=2)

    assert [each.waited for each in events if isinstance(each, told.Granted)] == [0.0, None]


@pytest.mark.parametrize("by", ["a grant", "the upkeep"])
def test_what_the_census_shows_to_have_ended_is_told(by: str) -> None:
    yard, gate, events = observed()
    yard.write_ledger(_with_watched_hold())
    yard.clock.leap(TIMINGS.settle.total_seconds() + 1)
    events.clear()

    if by == "a grant":
        gate.publish([wish("s2")])
        assert isinstance(reserve(gate, "s2"), Granted)
    else:
        Tending(gate, lambda: "token", patience=0.0)()

    assert told.Retired(frozenset({"s1"})) in events


def _with_watched_hold() -> Ledger:
    ledger = reserved(queued(new_ledger(ceiling=1), "s1"), "s1")
    hold = msgspec.structs.replace(
        ledger.holds["s1"], state=HoldState.SUBMITTED, watched=True, marked=True
    )
    return msgspec.structs.replace(ledger, holds={"s1": hold})


# -- news ------------------------------------------------------------------------------------------


def test_a_denial_is_passed_on_once_for_each_change_of_its_rule() -> None:
    yard = Yard()
    heard: list[Event] = []
    gate = watched(yard, Newly([heard.append]))
    gate.publish([wish("s1"), wish("s2"), wish("s3")])
    reserve(gate, "s1")
    for _ in range(3):
        gate.turn("s2")
        gate.turn("s3")
    gate.park("s2", "ada")
    gate.turn("s2")
    gate.unpark("s2")
    gate.turn("s2")

    said = [(each.search, each.rule) for each in heard if isinstance(each, told.Denied)]
    assert said == [
        ("s2", "capacity"),
        ("s3", "capacity"),
        ("s2", "parked"),
        ("s2", "capacity"),
    ]


def test_what_cannot_be_told_is_passed_on_once_until_something_else_is_known() -> None:
    heard: list[Event] = []
    newly = Newly([heard.append])
    undecided = told.Undecided("s1", Unavailable("cluster_unavailable", "no answer"))
    denied = told.Denied("s1", Waiting(Reason.CAPACITY, "full"))

    for event in (undecided, undecided, denied, undecided):
        newly(event)

    assert heard == [undecided, denied, undecided]


def test_after_a_grant_the_same_denial_is_news() -> None:
    heard: list[Event] = []
    newly = Newly([heard.append])
    denied = told.Denied("s1", Waiting(Reason.CAPACITY, "full"))
    granted = told.Granted("s1", 101, 1.0, 0.0)

    for event in (denied, denied, granted, denied):
        newly(event)

    assert heard == [denied, granted, denied]


def test_only_the_searches_denied_last_are_remembered() -> None:
    news = News(kept=2)
    for search in ("a", "b", "c"):
        news(search, "capacity")

    assert not news("c", "capacity")
    assert not news("b", "capacity")
    assert news("a", "capacity")
