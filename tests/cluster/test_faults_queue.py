"""The queue of a namespace: one order for all, whoever is fast, dead, hung, greedy or mistaken."""

from __future__ import annotations

import signal
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

import pytest
from fault_command import started
from gate_stage import Lab
from queue_stage import PLAIN, NewSeat, Queued
from test_faults_clock import library
from waiting_stage import CLOCK, through, until

from blastyard.admission.outcome import Reason

__all__ = ["library"]

LONG_TURNS = replace(PLAIN, turn=timedelta(seconds=600))
"""Nobody is passed over in these."""


# -- a head that does not come ---------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_head_that_is_killed_or_stopped_delays_the_next_once_and_shortly(
    lab: Lab, new_seat: NewSeat, number: signal.Signals
) -> None:
    """Fault Q3: a dead process is known to be dead here, a stopped one is passed over.

    A stopped one has kept its place when it goes on.
    """
    owner = new_seat()
    owner.fills()
    words = ("exec", "--search-id", "head", "--", str(lab.submit_script()), "{id}")
    with started(lab, *words) as process, ExitStack() as stack:
        until(lambda: "head" in lab.ledger().tickets)
        first, second = (Queued(lab, new_seat(), name) for name in ("first-next", "second-next"))
        for each in (first, second):
            stack.callback(each.close)
            each.waits()
            until(lambda name=each.search: name in lab.ledger().tickets)  # type: ignore[misc]
        process.send_signal(number)
        freed_at = CLOCK.monotonic()
        owner.gate.end("first")
        until(first.begun.is_set)
        assert first.begun_at - freed_at < 3.0
        if number is signal.SIGKILL:
            until(lambda: "head" not in lab.ledger().tickets)
            return
        until(first.ended.is_set)
        assert "head" in lab.ledger().tickets
        process.send_signal(signal.SIGCONT)
        until(lambda: not second.seat.gate.view().queue[0].obstacle)
        assert second.seat.head() == "head"
        first.finish()
        assert process.wait(30) == 0
        assert not second.begun.is_set()


def test_a_submitter_without_a_sign_of_life_is_skipped_and_keeps_its_place(
    new_seat: NewSeat,
) -> None:
    """Fault Q3: on another machine, where nobody can look whether it is dead."""
    timings = replace(LONG_TURNS, beat=timedelta(seconds=0.5), lapse=timedelta(seconds=3))
    owner = new_seat(timings=timings)
    hung = new_seat(timings=timings, boot_id="elsewhere")
    owner.fills()
    hung.publish("hung")
    other = new_seat(timings=timings)
    other.publish("next")
    other.publish("last")

    def skipped() -> bool:
        return owner.lives() and other.lives() and other.reason("hung") is Reason.SUBMITTER

    until(skipped)
    place = other.gate.view().queue[0]
    assert (place.search, place.obstacle) == ("hung", Reason.SUBMITTER)
    owner.gate.end("first")
    other.served("next")
    assert hung.lives()
    until(lambda: other.reason("last") is Reason.TURN)
    assert other.head() == "hung"
    assert hung.served("hung") < other.served("last")


def test_a_head_that_is_always_late_gets_a_long_turn_in_the_end(new_seat: NewSeat) -> None:
    """Fault Q3: passed over three times, then waited for."""
    timings = replace(PLAIN, turn=timedelta(seconds=0.3), patient_turn=timedelta(seconds=600))
    late, quick = new_seat(timings=timings), new_seat(timings=timings)
    late.publish("late")
    for number in range(timings.passes):
        quick.publish(f"quick-{number}")
        quick.served(f"quick-{number}")
        assert late.gate.ledger().tickets["late"].passed == number + 1

    quick.publish("too-quick")
    through(2.0, lambda: quick.claimed("too-quick") is None)
    assert late.served("late") < quick.served("too-quick")


# -- reasons of their own --------------------------------------------------------------------------


@pytest.mark.parametrize("reason", [Reason.BLOCKED, Reason.PARKED, Reason.USER_CAP])
def test_a_head_with_a_reason_of_its_own_lets_the_next_go_and_says_so(
    lab: Lab, new_seat: NewSeat, reason: Reason
) -> None:
    """Fault Q4."""
    owner, other = new_seat(ceiling=2), new_seat()
    owner.fills()
    blocked = "waiting_for_database" if reason is Reason.BLOCKED else None
    owner.publish("head", blocked=blocked)
    if reason is Reason.PARKED:
        owner.gate.park("head", "olga")
    if reason is Reason.USER_CAP:
        owner.gate.change_policy("operator", cap=1)
    other.publish("next", "bob")

    other.served("next")

    assert owner.claimed("head") is None
    assert owner.reason("head") is other.reason("head") is reason
    shown = lab.run("gate", "status").stdout
    said = {Reason.BLOCKED: blocked, Reason.PARKED: "olga", Reason.USER_CAP: "per-user cap"}
    assert str(said[reason]) in shown
    match reason:
        case Reason.BLOCKED:
            owner.gate.block("head", None)
        case Reason.PARKED:
            owner.gate.unpark("head")
        case _:
            owner.gate.end("first")
    other.publish("last", "bob")
    owner.gate.change_policy("operator", cap=0)
    assert owner.served("head") < other.served("last")


def test_one_user_with_two_hundred_has_one_turn_in_two_and_no_more_than_the_cap(
    new_seat: NewSeat,
) -> None:
    """Fault Q5."""
    owner, greedy, other = new_seat(ceiling=0), new_seat(), new_seat()
    for number in range(200):
        greedy.publish(f"hers-{number:03d}", "ada")
    for number in range(3):
        other.publish(f"his-{number}", "bob")
    assert Counter(each.user for each in owner.gate.ledger().tickets.values())["bob"] == 3
    owner.gate.change_policy("operator", ceiling=1)
    order = [place.search for place in owner.gate.view().queue[:6]]
    assert [name.startswith("his") for name in order] == [False, True] * 3
    for name in order:
        (other if name.startswith("his") else greedy).served(name)

    other.publish("his-last", "bob")
    owner.gate.change_policy("operator", ceiling=3, cap=1)
    running = owner.gate.view().queue[0].search
    until(lambda: greedy.claimed(running))
    assert greedy.reason("hers-050") is Reason.USER_CAP
    assert greedy.gate.due().searches == ()
    other.served("his-last")
    assert list(owner.gate.ledger().holds) == [running]
