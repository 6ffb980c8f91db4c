"""A ledger that is damaged, newer, or gone; and who is known to submit."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from admission_stage import (
    ME,
    OTHER,
    TIMINGS,
    Yard,
    inside,
    inside_with_ticket,
    scripted,
    seconds,
    wish,
)

from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt
from blastyard.admission.ledger import FORMAT, HoldState, encode
from blastyard.admission.outcome import Granted, Reason, Waiting
from blastyard.admission.port import LEASE, LEDGER, SUBMITTER
from blastyard.admission.restoration import Claim
from blastyard.domain.errors import Unavailable
from blastyard.testing.faulty import Fault


def running(gate: Gate, *searches: str) -> None:
    """Give each search a submitted hold."""
    gate.publish([wish(search) for search in searches])
    for search in searches:
        stay = inside(gate, search)
        granted = stay.reserve(Attempt(search, 1, gate.me.name))
        assert isinstance(granted, Granted), granted
        assert stay.confirm(search, granted.fence)
        gate.leave(stay)


def claimed(*searches: str, owner: str = ME) -> Callable[[], list[Claim]]:
    claims = [Claim(name, "ada", 1, 1, HoldState.SUBMITTED, owner) for name in searches]
    return lambda: claims


def why_waiting(gate: Gate, search: str) -> Reason:
    outcome = gate.turn(search)
    assert isinstance(outcome, Waiting), outcome
    return outcome.reason


# -- restarts --------------------------------------------------------------------------------------


def test_a_process_that_starts_anew_counts_what_others_left_running() -> None:
    """Fault B12."""
    yard = Yard(ceiling=3)
    running(yard.gate(), "s1", "s2", "s3")

    fresh = yard.gate("serve-9")
    fresh.beat()
    fresh.publish([wish("s4")])

    assert why_waiting(fresh, "s4") is Reason.CAPACITY
    assert fresh.due().searches == ()


# -- a ledger that cannot be read ------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"not a ledger", b'{"uid":"uid-1","pol'])
def test_an_unreadable_ledger_admits_nobody_and_is_left_as_it_is(body: bytes) -> None:
    """Fault B13."""
    yard = Yard()
    gate = yard.gate(claims=claimed("s1"))
    stay = inside_with_ticket(gate)
    yard.write(LEDGER, body)

    for ask in (
        gate.due,
        gate.view,
        gate.ledger,
        gate.beat,
        lambda: gate.publish([wish("s2")]),
        lambda: gate.end("s1"),
        lambda: gate.change_policy("root", ceiling=9),
        lambda: stay.reserve(Attempt("s1", 1, ME)),
    ):
        with pytest.raises(Unavailable) as caught:
            ask()
        assert caught.value.code == "ledger_unreadable"
    assert yard.ledger_body() == body


def test_a_ledger_of_a_newer_blastyard_admits_nobody_and_is_left_as_it_is() -> None:
    """Fault B13."""
    yard = Yard()
    gate = yard.gate()
    newer = msgspec.structs.replace(gate.ledger(), format=FORMAT + 1)
    yard.write_ledger(newer)

    for ask in (gate.due, lambda: gate.publish([wish("s1")])):
        with pytest.raises(Unavailable, match=f"format {FORMAT + 1}"):
            ask()
    assert yard.ledger_body() == encode(newer)


def test_an_unreadable_ledger_does_not_keep_a_holder_from_staying_inside() -> None:
    """Faults A15 and B13."""
    yard = Yard()
    gate = yard.gate()
    stay = inside(gate, "s1")
    gate.ledger()
    yard.write(LEDGER, b"damaged")
    yard.clock.leap(10.0)

    with pytest.raises(Unavailable):
        gate.beat()

    assert stay.deadline == 32.0
    assert yard.documents.read(SUBMITTER + ME).body is not None


# -- a ledger that is gone -------------------------------------------------------------------------


def test_a_ledger_deleted_by_hand_comes_back_with_all_that_runs() -> None:
    """Fault B14."""
    yard = Yard(ceiling=2)
    gate = yard.gate(claims=claimed("s1", "s2"))
    running(gate, "s1", "s2")
    before = gate.ledger()
    yard.write(LEDGER, None)

    gate.publish([wish("s3")])

    after = gate.ledger()
    assert set(after.holds) == {"s1", "s2"}
    assert after.uid != before.uid
    assert why_waiting(gate, "s3") is Reason.CAPACITY


def test_nobody_is_admitted_until_all_who_live_have_brought_their_claims() -> None:
    """Fault B14."""
    yard = Yard(ceiling=2)
    first = yard.gate(claims=claimed("s1"))
    second = yard.gate(OTHER, claims=claimed("s2", owner=OTHER))
    for gate, search in ((first, "s1"), (second, "s2")):
        gate.beat()
        running(gate, search)
    first.publish([wish("s3")])
    yard.write(LEDGER, None)

    first.publish([wish("s3")])
    assert why_waiting(first, "s3") is Reason.RESTORING
    stay = inside(first, "s3")
    assert isinstance(stay.reserve(Attempt("s3", 1, ME)), Waiting)
    first.leave(stay)
    second.heal()

    assert set(first.ledger().holds) == {"s1", "s2"}
    assert why_waiting(first, "s3") is Reason.CAPACITY


def test_who_was_silent_for_two_hours_or_has_ended_is_not_waited_for() -> None:
    """Fault B14."""
    yard = Yard()
    gate = yard.gate()
    for name in (OTHER, "serve-3"):
        yard.gate(name).beat()
    gate.beat()
    yard.gone.add("serve-3")
    yard.clock.leap(7000.0)
    gate.beat()
    yard.write(LEDGER, None)

    assert not gate.ledger().is_whole, "one is silent, the other has only just ended"
    yard.clock.leap(TIMINGS.ending.total_seconds())
    assert not gate.ledger().is_whole
    yard.clock.leap(195.0)
    assert gate.ledger().is_whole


def test_the_ceiling_that_an_operator_set_outlives_the_ledger() -> None:
    """Fault B14."""
    yard = Yard(ceiling=3)
    gate = yard.gate()
    gate.change_policy("root", ceiling=0)
    gate.heal()
    gate.beat()
    yard.write(LEDGER, None)

    assert gate.ledger().policy.ceiling == 0


def test_a_ledger_whose_first_write_was_lost_or_late_is_made_once() -> None:
    """Faults A1 and B14."""
    _, script, gate = scripted()
    script.then("swap", LEDGER, Fault.LOST_REQUEST, Fault.CONFLICT, Fault.LOST_ANSWER)

    ledger = gate.ledger()

    assert ledger.uid == "uid-3"
    assert gate.ledger() == ledger


def test_two_that_find_it_lost_make_one_ledger() -> None:
    """Fault B14."""
    yard = Yard()
    first, second = yard.gate(), yard.gate(OTHER)

    assert first.ledger() == second.ledger()


# -- the roster ------------------------------------------------------------------------------------


def test_a_sign_of_life_is_seen_by_the_others_and_ends_with_the_process() -> None:
    yard = Yard()
    gate, other = yard.gate(), yard.gate(OTHER)
    assert gate.submitters() == {}

    gate.beat()
    yard.clock.leap(44.0)
    seen = other.submitters()[ME]
    assert (seen.submitter.name, seen.silent_for, seen.gone) == (ME, seconds(44), False)
    assert seen.is_alive(TIMINGS)
    yard.clock.leap(1.0)
    assert not other.submitters()[ME].is_alive(TIMINGS)
    gate.beat()
    assert other.submitters()[ME].silent_for == seconds(0)

    gate.retire()
    assert other.submitters() == {}
    gate.beat()
    assert set(other.submitters()) == {ME}


def test_who_has_ended_is_known_for_how_long_and_can_be_forgotten() -> None:
    yard = Yard()
    gate, other = yard.gate(), yard.gate(OTHER)
    gate.beat()
    yard.gone.add(ME)

    assert other.submitters()[ME].gone
    yard.clock.leap(7.0)
    assert other.submitters()[ME].gone_for == seconds(7)
    other.forget(ME)
    other.forget("nobody")
    assert other.submitters() == {}


@pytest.mark.parametrize("fault", [Fault.CONFLICT, Fault.LOST_ANSWER])
def test_a_sign_of_life_whose_answer_was_wrong_is_given_again(fault: Fault) -> None:
    """Faults A1 and A2."""
    yard, script, gate = scripted()
    gate.beat()
    yard.clock.leap(10.0)
    script.then("swap", SUBMITTER + ME, fault)

    if fault is Fault.LOST_ANSWER:
        with pytest.raises(Unavailable):
            gate.beat()
    gate.beat()

    assert gate.submitters()[ME].silent_for == seconds(0)


def test_a_sign_of_life_that_cannot_be_written_is_said() -> None:
    """Fault A13."""
    _, script, gate = scripted()
    script.always("swap", SUBMITTER + ME, Fault.CONFLICT)

    with pytest.raises(Unavailable, match="sign of life"):
        gate.beat()


def test_a_beat_does_not_write_what_nobody_has_to_know() -> None:
    """Fault Q9."""
    _, script, gate = scripted()
    gate.beat()
    script.calls.clear()

    gate.beat()

    assert script.swaps == script.calls["swap", SUBMITTER + ME] == 1


def test_a_wake_up_changes_no_document() -> None:
    yard = Yard()
    watch = yard.documents.watch()

    yard.gate().wake()

    assert watch.wait(0)
    assert yard.documents.read(LEASE).version == yard.documents.read(LEDGER).version == 0
