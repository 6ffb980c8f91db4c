"""Going inside Gate A and out of it, when answers are lost and processes stand still."""

from __future__ import annotations

from threading import Event

import msgspec
import pytest
from admission_stage import (
    ME,
    OTHER,
    TIMINGS,
    Clock,
    Script,
    Yard,
    inside,
    inside_with_ticket,
    queued,
    scripted,
    seconds,
    wish,
)

from blastyard.admission.hold import Attempt
from blastyard.admission.inside import LeaseLost
from blastyard.admission.lease import SubmitLease, format_time
from blastyard.admission.ledger import HoldState, encode
from blastyard.admission.memory import MemoryDocumentStore
from blastyard.admission.outcome import Granted, Reason, Refused, Waiting
from blastyard.admission.port import LEASE, LEDGER, Snapshot
from blastyard.admission.record import CONFLICTS, LOST_ANSWERS
from blastyard.domain.errors import Unavailable
from blastyard.testing.faulty import Fault


def holder(yard: Yard) -> str:
    return msgspec.json.decode(yard.lease_body(), type=SubmitLease).holder_identity


def refused_entry(outcome: object) -> Waiting:
    assert isinstance(outcome, Waiting)
    assert outcome.reason is Reason.SUBMIT_SLOT
    return outcome


class Resending(MemoryDocumentStore):
    """Behind a client library that sends some requests twice and tells the second answer."""

    resends = 0

    def swap(self, name: str, version: int, body: bytes | None) -> Snapshot | None:
        done = super().swap(name, version, body)
        if self.resends:
            self.resends -= 1
            done = super().swap(name, version, body)
            assert done is None
        return done


# -- lost answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [1, LOST_ANSWERS])
def test_a_claim_whose_answer_was_lost_is_found_and_adopted(lost: int) -> None:
    """Fault A1."""
    yard, script, gate = scripted()
    script.then("swap", LEASE, *[Fault.LOST_ANSWER] * lost)

    stay = inside(gate, "s1")

    assert stay.is_trusted
    assert holder(yard) == stay.holder == "blastyard-s1-1"


def test_a_claim_that_could_not_be_told_is_adopted_by_asking_again() -> None:
    """Fault A1."""
    yard, script, gate = scripted()
    script.then("swap", LEASE, *[Fault.LOST_ANSWER] * (LOST_ANSWERS + 1))

    with pytest.raises(Unavailable):
        gate.enter("s1", 1)
    assert holder(yard) == "blastyard-s1-1"

    assert inside(gate, "s1").is_trusted


def test_a_claim_that_could_not_be_told_does_not_keep_the_next_search_out() -> None:
    """Faults A1 and A9."""
    yard, script, gate = scripted()
    script.then("swap", LEASE, *[Fault.LOST_ANSWER] * (LOST_ANSWERS + 1))
    with pytest.raises(Unavailable):
        gate.enter("s1", 1)

    assert inside(gate, "s2").holder == holder(yard) == "blastyard-s2-1"


def test_a_slot_whose_answer_was_lost_is_the_one_that_is_told() -> None:
    """Fault A1."""
    _, script, gate = scripted()
    stay = inside_with_ticket(gate)
    script.then("swap", LEDGER, Fault.LOST_ANSWER, Fault.CONFLICT)

    outcome = stay.reserve(Attempt("s1", 1, ME))

    assert isinstance(outcome, Granted)
    (hold,) = gate.ledger().holds.values()
    assert (hold.fence, hold.attempt) == (outcome.fence.number, 1)
    script.then("swap", LEDGER, Fault.LOST_ANSWER)
    assert stay.confirm("s1", outcome.fence)
    assert gate.ledger().holds["s1"].state is HoldState.SUBMITTED


def test_a_claim_whose_answer_was_lost_knows_since_when_gate_a_had_been_free() -> None:
    """Faults A1 and Q3."""
    yard, script = Yard(), Script()
    gate, ahead = yard.gate(plan=script), yard.gate(OTHER)
    for one, search in ((ahead, "first"), (gate, "second")):
        one.beat()
        one.publish([wish(search)])
    stay = inside(ahead, "elsewhere")
    yard.clock.leap(10.0)
    ahead.leave(stay)
    script.then("swap", LEASE, Fault.LOST_ANSWER)

    told = inside(gate, "second").reserve(Attempt("second", 1, ME))

    assert isinstance(told, Waiting)
    assert told.until == yard.clock.now() + TIMINGS.turn


def test_a_claim_found_again_later_knows_that_gate_a_was_free_until_it_was_made() -> None:
    """Faults A1 and Q3."""
    yard, script = Yard(), Script()
    gate, ahead = yard.gate(plan=script), yard.gate(OTHER)
    for one, search in ((ahead, "first"), (gate, "second")):
        one.beat()
        one.publish([wish(search)])
    yard.clock.leap(10.0)
    made_at = yard.clock.now()
    script.then("swap", LEASE, *[Fault.LOST_ANSWER] * (LOST_ANSWERS + 1))
    with pytest.raises(Unavailable):
        gate.enter("second", 1)
    yard.clock.leap(0.3)

    told = inside(gate, "second").reserve(Attempt("second", 1, ME))

    assert isinstance(told, Waiting)
    assert told.until == made_at + TIMINGS.turn


def test_a_conflict_after_a_request_sent_twice_is_read_again_and_found_to_be_ours() -> None:
    """Fault A2."""
    clock = Clock()
    documents = Resending(clock.now)
    yard = Yard(documents=documents)
    gate = yard.gate()
    gate.publish([wish("s1")])

    documents.resends = 1
    stay = inside(gate, "s1")
    documents.resends = 1
    outcome = stay.reserve(Attempt("s1", 1, ME))
    documents.resends = 1
    confirmed = isinstance(outcome, Granted) and stay.confirm("s1", outcome.fence)
    documents.resends = 1
    gate.leave(stay)

    assert confirmed
    assert documents.resends == 0
    assert gate.ledger().fence == gate.ledger().holds["s1"].fence
    assert holder(yard) == ""


def test_a_conflict_with_somebody_else_is_read_again_and_found_to_be_lost() -> None:
    """Fault A2."""
    yard = Yard()
    first, second = yard.gate(), yard.gate(OTHER)

    inside(first, "s1")

    assert refused_entry(second.enter("s2", 1)).detail == "blastyard-s1-1 is submitting"


# -- stores that do not answer ---------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["read", "swap"])
@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.LOST_REQUEST])
def test_a_store_that_does_not_answer_admits_nobody_and_is_asked_a_few_times(
    operation: str, fault: Fault
) -> None:
    """Fault A13."""
    yard, script, gate = scripted()
    gate.publish([wish("s1")])
    script.always(operation, LEASE, fault)

    with pytest.raises(Unavailable) as caught:
        gate.enter("s1", 1)

    assert caught.value.code == "store_unavailable"
    assert script.calls[operation, LEASE] == LOST_ANSWERS + 1
    assert yard.lease_body() == b""
    assert gate.ledger().holds == {}


def test_a_ledger_that_cannot_be_reached_grants_no_slot() -> None:
    """Fault A13."""
    _, script, gate = scripted()
    stay = inside_with_ticket(gate)
    script.always("swap", LEDGER, Fault.UNAVAILABLE)

    with pytest.raises(Unavailable):
        stay.reserve(Attempt("s1", 1, ME))

    script.heal()
    assert gate.ledger().holds == {}
    assert isinstance(stay.reserve(Attempt("s1", 1, ME)), Granted)


def test_a_document_that_never_stands_still_is_given_up_after_a_while() -> None:
    """Fault A13."""
    yard, script = Yard(), Script()
    script.always("swap", LEASE, Fault.CONFLICT)

    with pytest.raises(Unavailable, match=f"changed {CONFLICTS} times"):
        yard.gate(plan=script).enter("s1", 1)
    assert script.calls["swap", LEASE] == CONFLICTS


@pytest.mark.parametrize(
    "body", [b"<html><h1>502 Bad Gateway</h1></html>", b'{"holderIdentity":"blasty', b"\xff", b""]
)
def test_a_lease_that_cannot_be_read_is_held_said_and_left_as_it_is(body: bytes) -> None:
    """Faults A4 and A13."""
    yard = Yard()
    gate = yard.gate()
    yard.write(LEASE, body)
    yard.clock.leap(10**6)

    told = refused_entry(gate.enter("s1", 1))

    assert "cannot be read, so it counts as held" in told.detail
    assert yard.lease_body() == body


# -- silence and clocks ----------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 60.0, -600.0])
def test_a_silent_holder_is_followed_by_the_clock_of_the_store_alone(offset: float) -> None:
    """Fault A5."""
    yard = Yard()
    gone = yard.gate()
    contender = yard.gate(OTHER, monotonic=lambda: yard.clock.seconds + offset)
    inside(gone, "s1")

    yard.clock.leap(29.9)
    told = refused_entry(contender.enter("s2", 1))
    assert told.until == yard.clock.now() + seconds(0.1)
    yard.clock.leap(0.1)

    assert inside(contender, "s2").is_trusted


def test_a_holder_that_gives_signs_of_life_stays_inside() -> None:
    """Fault A15."""
    yard = Yard()
    first, second = yard.gate(), yard.gate(OTHER)
    stay = inside(first, "s1")

    for _ in range(12):
        yard.clock.leap(TIMINGS.beat.total_seconds())
        first.beat()
        refused_entry(second.enter("s2", 1))
    assert stay.is_trusted


@pytest.mark.parametrize("left_by", ["blastyard-s0-1", "dashboard-7"])
def test_a_lease_that_ended_hours_ago_is_taken_at_once(left_by: str) -> None:
    """Fault A6."""
    yard = Yard()
    at = format_time(yard.clock.now())
    yard.write(LEASE, encode(SubmitLease(left_by, 900, at, at)))
    yard.clock.leap(3 * 3600)

    assert inside(yard.gate(), "s1").is_trusted


def test_a_stay_trusts_itself_no_longer_than_nobody_can_have_followed() -> None:
    """Fault A10."""
    yard = Yard()
    gate = yard.gate()
    stay = inside_with_ticket(gate)
    assert stay.deadline == 22.0

    yard.clock.leap(22.0)

    assert not stay.is_trusted
    with pytest.raises(LeaseLost):
        stay.reserve(Attempt("s1", 1, ME))
    assert gate.ledger().holds == {}


def test_an_old_holder_touches_nothing_that_its_successor_has() -> None:
    """Fault A10."""
    yard = Yard()
    slow, quick = yard.gate(), yard.gate(OTHER)
    old = inside(slow, "s1")
    yard.clock.leap(30.0)
    new = inside(quick, "s2")
    before = yard.documents.read(LEASE)

    assert not old.renew()
    assert not old.is_trusted
    slow.beat()
    slow.leave(old)
    slow.beat()

    assert yard.documents.read(LEASE).version == before.version
    assert new.is_trusted


def test_a_lease_whose_stamp_is_in_the_future_is_waited_for_no_longer_than_any_other() -> None:
    """Fault A5."""
    yard = Yard()
    inside(yard.gate(), "s1")
    yard.clock.leap(-3600.0)
    other = yard.gate(OTHER)

    other.beat()
    yard.clock.leap(30.0)

    assert inside(other, "s2").is_trusted


# -- leaving ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        [Fault.CONFLICT, Fault.CONFLICT],
        [Fault.UNAVAILABLE, Fault.LOST_REQUEST],
        [Fault.LOST_ANSWER],
        [Fault.UNAVAILABLE, Fault.CONFLICT, Fault.LOST_ANSWER],
    ],
)
def test_a_release_is_tried_again_until_the_lease_is_free(faults: list[Fault]) -> None:
    """Fault A9."""
    yard, script, gate = scripted()
    stay = inside(gate, "s1")
    script.then("swap", LEASE, *faults)

    gate.leave(stay)

    assert holder(yard) == ""


@pytest.mark.parametrize("by", ["beat", "claim"])
def test_a_release_that_failed_is_made_good_with_the_next_beat_or_claim(by: str) -> None:
    """Fault A9."""
    yard, script, gate = scripted()
    stay = inside(gate, "s1")
    script.always("swap", LEASE, Fault.UNAVAILABLE)
    gate.leave(stay)
    assert holder(yard) == "blastyard-s1-1"
    script.heal()

    if by == "beat":
        gate.beat()
        assert holder(yard) == ""
    else:
        assert inside(gate, "s2").holder == holder(yard)


def test_a_late_release_does_not_clear_the_claim_of_a_later_attempt() -> None:
    """Fault A9."""
    yard, script, gate = scripted()
    stay = inside(gate, "s1")
    script.always("swap", LEASE, Fault.UNAVAILABLE)
    gate.leave(stay)
    script.heal()

    again = inside(gate, "s1")
    gate.beat()

    assert holder(yard) == again.holder
    assert again.is_trusted


def test_a_claim_is_not_made_under_a_name_that_is_just_being_released() -> None:
    """Fault A9."""
    yard, script = Yard(), Script()
    met: list[object] = []
    releasing = Event()

    def meanwhile(at: str) -> None:
        if at == "before:swap:lease" and releasing.is_set():
            releasing.clear()
            met.append(gate.enter("s1", 1))

    gate = yard.gate(plan=script, checkpoint=meanwhile)
    stay = inside(gate, "s1")
    script.always("swap", LEASE, Fault.UNAVAILABLE)
    gate.leave(stay)
    script.heal()

    releasing.set()
    gate.beat()

    assert refused_entry(met[0]).detail == "its earlier claim is just being released"
    assert holder(yard) == ""
    assert inside(gate, "s1").is_trusted


def test_a_stay_whose_command_may_still_act_is_left_to_lapse() -> None:
    """Fault A8."""
    yard = Yard()
    gate = yard.gate()
    stay = inside(gate, "s1")

    stay.abandon()
    gate.leave(stay)
    yard.clock.leap(29.0)
    gate.beat()

    assert holder(yard) == "blastyard-s1-1"
    yard.clock.leap(1.0)
    assert inside(yard.gate(OTHER), "s2").is_trusted


# -- two deliveries --------------------------------------------------------------------------------


def test_two_attempts_at_one_search_are_never_inside_together() -> None:
    """Fault A14."""
    yard = Yard()
    one, two = yard.gate(), yard.gate()
    one.publish([wish("s1")])
    first = inside(one, "s1", 1)

    refused_entry(two.enter("s1", 2))
    granted = first.reserve(Attempt("s1", 1, ME))
    assert isinstance(granted, Granted)
    yard.clock.leap(30.0)
    second = inside(two, "s1", 2)
    again = second.reserve(Attempt("s1", 2, ME))

    assert isinstance(again, Granted)
    assert again.fence.number > granted.fence.number
    assert not first.confirm("s1", granted.fence)
    assert second.confirm("s1", again.fence)
    assert not first.renew()
    third = Attempt("s1", 3, ME)
    assert isinstance(second.reserve(third), Refused)


def test_a_search_cancelled_while_it_waits_takes_no_slot_though_it_is_inside() -> None:
    """Fault Q11."""
    yard = Yard()
    gate = yard.gate()
    yard.write_ledger(queued(gate.ledger(), "s1"))
    stay = inside(gate, "s1")

    yard.gate(OTHER).withdraw("s1")

    assert isinstance(stay.reserve(Attempt("s1", 1, ME)), Refused)
    ledger = gate.ledger()
    assert (ledger.tickets, ledger.holds) == ({}, {})
