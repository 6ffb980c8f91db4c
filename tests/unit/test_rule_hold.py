"""What may be done to a search that has a run slot, or asks for one."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from admission_stage import (
    ME,
    NOW,
    OTHER,
    TIMINGS,
    new_ledger,
    queued,
    reserved,
    seconds,
    situation,
    wish,
)

from blastyard.admission.ending import overdue
from blastyard.admission.hold import (
    KEPT_USERS,
    Attempt,
    Reserved,
    confirm,
    end,
    flag_cancelled,
    give_back,
    reserve,
    turn_to_resume,
)
from blastyard.admission.ledger import Fence, Hold, HoldState, Ledger, decode_ledger, encode
from blastyard.admission.order import Situation, Turn
from blastyard.admission.outcome import Granted, Reason, Refused, Waiting
from blastyard.admission.ticket import change_policy, park, withdraw

LATER = NOW + seconds(60)
FIRST = Attempt("s1", 1, ME)
SECOND = Attempt("s1", 2, ME)


def holding(ceiling: int = 1) -> Ledger:
    """``s1`` has its slot reserved by its first attempt, ``s2`` waits."""
    return reserved(queued(new_ledger(ceiling), "s1", "s2"), "s1")


def submitted(ledger: Ledger, search: str) -> Ledger:
    after = confirm(ledger, search, Fence(ledger.uid, ledger.holds[search].fence), NOW)
    assert isinstance(after, Ledger)
    return after


def asked(ledger: Ledger, attempt: Attempt, seen: Situation | None = None) -> Reserved:
    outcome = reserve(ledger, attempt, seen or situation(LATER), TIMINGS)
    assert isinstance(outcome, Reserved), outcome
    return outcome


def denied(ledger: Ledger, attempt: Attempt, seen: Situation | None = None) -> Waiting | Refused:
    outcome = reserve(ledger, attempt, seen or situation(LATER), TIMINGS)
    assert not isinstance(outcome, Reserved)
    return outcome


# -- a slot ----------------------------------------------------------------------------------------


def test_a_ticket_becomes_a_hold_with_the_next_fence_and_remembers_its_place() -> None:
    before = queued(new_ledger(), "s1", "s2")

    outcome = asked(before, FIRST)

    assert outcome.granted == Granted(Fence("uid-1", before.fence + 1))
    after = outcome.ledger
    assert after.holds == {
        "s1": Hold(before.tickets["s1"], ME, 1, before.fence + 1, HoldState.RESERVED, LATER)
    }
    assert list(after.tickets) == ["s2"]
    assert (after.fence, after.turn_at) == (before.fence + 1, LATER)
    assert after.served == {"ada": after.fence}


def test_the_same_attempt_that_asks_again_is_granted_the_same() -> None:
    """Fault A1."""
    once = asked(queued(new_ledger(ceiling=1), "s1"), FIRST)

    again = asked(decode_ledger(encode(once.ledger)), FIRST)

    assert again.granted == once.granted
    assert again.ledger == once.ledger


def test_nobody_gets_a_slot_that_the_union_of_all_that_runs_leaves_no_room_for() -> None:
    """Fault B8."""
    ledger = queued(reserved(queued(new_ledger(ceiling=2), "s1"), "s1"), "s2")

    for running in (["foreign"], ["foreign", "s1"], ["f1", "f2", "f3"]):
        told = denied(ledger, Attempt("s2", 1, ME), situation(LATER, running))
        assert isinstance(told, Waiting)
        assert told.reason is Reason.CAPACITY
    assert asked(ledger, Attempt("s2", 1, ME), situation(LATER, ["s1"]))


def test_a_lowered_ceiling_admits_nobody_until_fewer_run_than_it_says() -> None:
    """Fault B9."""
    ledger = queued(new_ledger(ceiling=5), *[f"s{number}" for number in range(5)])
    for number in range(4):
        ledger = reserved(ledger, f"s{number}")
    ledger = change_policy(ledger, "root", LATER, ceiling=2) or ledger
    waits = Attempt("s4", 1, ME)

    for number in range(3):
        assert len(ledger.holds) == 4 - number
        told = denied(ledger, waits)
        assert isinstance(told, Waiting)
        assert told.reason is Reason.CAPACITY
        ledger = end(ledger, f"s{number}", LATER) or ledger
    assert len(asked(ledger, waits).ledger.holds) == 2


def test_a_ledger_that_was_written_before_a_restart_counts_before_the_first_admission() -> None:
    """Fault B12."""
    ledger = queued(new_ledger(ceiling=3), *[f"s{number}" for number in range(4)])
    for number in range(3):
        ledger = submitted(reserved(ledger, f"s{number}"), f"s{number}")

    found = decode_ledger(encode(ledger))

    assert isinstance(denied(found, Attempt("s3", 1, ME)), Waiting)


def test_a_search_without_a_ticket_is_refused() -> None:
    assert isinstance(denied(new_ledger(), FIRST), Refused)


def test_a_search_that_was_withdrawn_or_has_ended_takes_no_slot() -> None:
    """Fault Q11."""
    ledger = queued(new_ledger(), "s1")

    for gone in (withdraw(ledger, "s1", LATER), end(ledger, "s1", LATER)):
        assert gone is not None
        assert isinstance(denied(gone, FIRST), Refused)


def test_only_who_looks_after_a_search_may_claim_for_it() -> None:
    """Fault A14."""
    told = denied(queued(new_ledger(), "s1", submitter=OTHER), FIRST)

    assert isinstance(told, Refused)
    assert OTHER in told.detail


def test_who_is_granted_out_of_turn_notes_whom_it_passed() -> None:
    """Fault Q3."""
    ledger = queued(queued(new_ledger(), "dead", submitter=OTHER), "s1", "s2")

    after = asked(ledger, Attempt("s2", 1, ME), situation(NOW + 2 * TIMINGS.turn)).ledger

    assert {name: ticket.passed for name, ticket in after.tickets.items()} == {"dead": 1, "s1": 1}
    assert after.tickets["dead"].sequence == ledger.tickets["dead"].sequence


def test_the_users_that_were_served_longest_ago_are_forgotten() -> None:
    served = {f"u{number}": number for number in range(KEPT_USERS)}
    ledger = msgspec.structs.replace(queued(new_ledger(), "s1"), fence=5000, served=served)

    after = asked(ledger, FIRST).ledger

    assert len(after.served) == KEPT_USERS
    assert after.served["ada"] == 5001
    assert "u0" not in after.served


# -- resuming --------------------------------------------------------------------------------------


def test_another_attempt_resumes_under_a_higher_fence_when_there_is_still_room() -> None:
    """Faults A14 and B19."""
    ledger = holding()

    outcome = asked(ledger, SECOND)

    hold = outcome.ledger.holds["s1"]
    assert (hold.attempt, hold.fence, hold.since) == (2, ledger.fence + 1, LATER)
    assert hold.ticket == ledger.holds["s1"].ticket
    assert outcome.granted.fence.number == ledger.fence + 1
    stale = Fence(ledger.uid, ledger.holds["s1"].fence)
    assert isinstance(confirm(outcome.ledger, "s1", stale, LATER), Refused)
    assert isinstance(denied(outcome.ledger, FIRST), Refused)


def test_who_resumes_gives_way_to_those_that_started_meanwhile() -> None:
    """Fault B19."""
    told = denied(holding(), SECOND, situation(LATER, ["foreign"]))

    assert isinstance(told, Waiting)
    assert told.reason is Reason.CAPACITY
    resumed = turn_to_resume(holding(), "s1", situation(LATER, ["foreign"]))
    assert resumed == told
    assert turn_to_resume(holding(), "s1", situation(LATER, ["s1"])) == Turn(0)
    assert turn_to_resume(holding(), "s2", situation(LATER)) is None


@pytest.mark.parametrize(
    ("spoil", "attempt"),
    [
        (lambda ledger: ledger, Attempt("s1", 2, OTHER)),
        (lambda ledger: ledger, Attempt("s1", 0, ME)),
        (lambda ledger: flag_cancelled(ledger, "s1"), SECOND),
        (lambda ledger: submitted(ledger, "s1"), SECOND),
    ],
    ids=["another submitter", "an earlier attempt", "cancelled", "already submitted"],
)
def test_a_hold_is_not_resumed_by_whom_it_does_not_belong_to(
    spoil: Callable[[Ledger], Ledger], attempt: Attempt
) -> None:
    """Fault A14."""
    assert isinstance(denied(spoil(holding()), attempt), Refused)


def test_nobody_resumes_while_claims_are_being_collected() -> None:
    """Fault B14."""
    lost = msgspec.structs.replace(holding(), restored=())

    told = denied(lost, SECOND)

    assert isinstance(told, Waiting)
    assert told.reason is Reason.RESTORING


# -- the command -----------------------------------------------------------------------------------


def test_a_confirmed_hold_is_submitted_and_confirming_again_changes_nothing() -> None:
    """Fault A1."""
    ledger = holding()
    fence = Fence(ledger.uid, ledger.fence)

    after = confirm(ledger, "s1", fence, LATER)

    assert isinstance(after, Ledger)
    assert (after.holds["s1"].state, after.holds["s1"].since) == (HoldState.SUBMITTED, LATER)
    assert confirm(after, "s1", fence, LATER) is None


@pytest.mark.parametrize("fence", [Fence("uid-1", 100), Fence("uid-0", 101), Fence("uid-1", 102)])
def test_a_stale_fence_confirms_nothing(fence: Fence) -> None:
    """Fault A10."""
    assert isinstance(confirm(holding(), "s1", fence, LATER), Refused)
    assert isinstance(confirm(new_ledger(), "s1", fence, LATER), Refused)


@pytest.mark.parametrize("how", ["waits", "parked", "reserved", "cancelled", "submitted"])
def test_a_search_that_ends_in_whatever_state_leaves_neither_ticket_nor_slot(how: str) -> None:
    """Fault B11."""
    queue = queued(new_ledger(ceiling=1), "s1", "s2")
    ledger = {
        "waits": queue,
        "parked": park(queue, "s1", "root", NOW),
        "reserved": reserved(queue, "s1"),
        "cancelled": flag_cancelled(reserved(queue, "s1"), "s1"),
        "submitted": submitted(reserved(queue, "s1"), "s1"),
    }[how]
    assert ledger is not None

    after = end(ledger, "s1", LATER)

    assert after is not None
    assert "s1" not in after.holds.keys() | after.tickets.keys()
    assert end(after, "s1", LATER) is None
    assert asked(after, Attempt("s2", 1, ME)).ledger.holds.keys() == {"s2"}


def test_a_search_that_is_given_back_has_its_old_place_under_its_heir() -> None:
    """Fault Q3."""
    ledger = queued(holding(), wish("s0", "ada"))

    after = give_back(ledger, "s1", OTHER, None, LATER)

    assert after is not None
    assert after.holds == {}
    ticket = ledger.holds["s1"].ticket
    assert after.tickets["s1"] == msgspec.structs.replace(ticket, submitter=OTHER)
    assert min(after.tickets, key=lambda name: after.tickets[name].sequence) == "s1"
    assert after.fence == ledger.fence
    assert give_back(after, "s1", OTHER, None, LATER) is None


def test_what_was_granted_after_its_giver_looked_is_not_given_back() -> None:
    ledger = holding()

    assert give_back(ledger, "s1", OTHER, ledger.fence - 1, LATER) is None
    assert give_back(ledger, "s1", OTHER, ledger.fence, LATER) is not None


def test_giving_back_what_only_waits_changes_who_looks_after_it() -> None:
    ledger = queued(new_ledger(), "s1")

    after = give_back(ledger, "s1", OTHER, None, LATER)

    assert after is not None
    assert after.tickets["s1"].submitter == OTHER
    assert give_back(ledger, "nobody", OTHER, None, LATER) is None


def test_a_cancelled_hold_stays_until_its_attempt_or_the_sweep_acts_on_it() -> None:
    """Fault B11."""
    after = flag_cancelled(holding(), "s1")

    assert after is not None
    assert after.holds["s1"].cancelled
    assert flag_cancelled(after, "s1") is None
    assert flag_cancelled(after, "s2") is None


# -- reservations of the dead ----------------------------------------------------------------------


LIMIT = TIMINGS.command + TIMINGS.takeover + TIMINGS.skew


def test_a_reservation_is_overdue_once_no_command_of_its_silent_submitter_can_be_alive() -> None:
    """Fault B11."""
    ledger = holding()
    fences = {"s1": ledger.fence}
    at = situation(NOW + LIMIT)

    assert overdue(ledger, {ME: LIMIT}, at, TIMINGS) == fences
    assert overdue(ledger, {}, at, TIMINGS) == fences
    assert overdue(ledger, {ME: LIMIT - seconds(1)}, at, TIMINGS) == {}
    assert overdue(ledger, {ME: LIMIT}, situation(NOW + LIMIT - seconds(1)), TIMINGS) == {}
    assert overdue(ledger, {ME: LIMIT}, situation(NOW + LIMIT, ["s1"]), TIMINGS) == {}
    assert overdue(submitted(ledger, "s1"), {ME: LIMIT}, at, TIMINGS) == {}
