"""Gate A is left free now and then for programs that poll."""

from __future__ import annotations

from datetime import timedelta

import pytest
from admission_stage import ME, NOW, TIMINGS, new_ledger, queued, reserved, seconds
from shared_stage import Queue, held, seen

from blastyard.admission.courtesy import (
    paused_until,
    used,
    used_until,
)
from blastyard.admission.hold import Attempt, confirm, fail, turn_to_resume
from blastyard.admission.ledger import Fence, HoldState, Ledger, encode
from blastyard.admission.order import Turn
from blastyard.admission.outcome import Granted, Reason, Waiting
from blastyard.admission.reservation import decide

HOUR = timedelta(hours=1)


def reason(told: object) -> Reason | None:
    return told.reason if isinstance(told, Waiting) else None


def use(ledger: Ledger, until: float, every: float) -> Ledger:
    """``ledger`` after Gate A has been used so often for so many seconds from ``NOW`` on."""
    at = 0.0
    while at <= until:
        ledger = used(ledger, NOW + seconds(at), TIMINGS)
        at += every
    return ledger


def test_after_600_s_of_use_without_a_pause_gate_a_is_left_free_for_45_s() -> None:
    """Fault B17; clause: a poller that always finds the Lease busy leaves no trace."""
    ledger = use(queued(new_ledger(3), "s1"), 600, 20)
    queue = Queue(ledger)
    queue.pass_time(seconds(601))

    told = queue.ask("s1")

    assert reason(told) is Reason.PAUSE
    assert isinstance(told, Waiting)
    assert told.until == NOW + seconds(645)
    queue.pass_time(seconds(43))
    assert reason(queue.ask("s1")) is Reason.PAUSE
    queue.pass_time(seconds(1))
    assert isinstance(queue.ask("s1"), Granted)
    assert queue.ledger.courtesy.used_since == queue.now


def test_use_that_is_shorter_or_was_interrupted_needs_no_pause() -> None:
    """Fault B17; clause: without a 45 s pause."""
    short = use(new_ledger(), 580, 20)
    assert paused_until(short, NOW + seconds(581), TIMINGS) is None

    interrupted = used(use(new_ledger(), 580, 20), NOW + seconds(580 + 45), TIMINGS)
    assert interrupted.courtesy.used_since == NOW + seconds(625)
    assert paused_until(interrupted, NOW + seconds(626), TIMINGS) is None
    unbroken = used(use(new_ledger(), 580, 20), NOW + seconds(580 + 44), TIMINGS)
    assert paused_until(unbroken, NOW + seconds(626), TIMINGS) == NOW + seconds(669)


@pytest.mark.parametrize("how", ["confirm", "fail"])
def test_commands_that_take_longer_than_a_pause_are_unbroken_use_too(how: str) -> None:
    """Fault B17; clause: of use, which is not only the moment of a grant."""
    queue = Queue(queued(new_ledger(1000), *[f"s{number}" for number in range(20)]))
    longest = seconds(0)
    for name in list(queue.ledger.tickets):
        if reason(queue.ask(name)) is Reason.PAUSE:
            longest = queue.now - NOW
            break
        queue.pass_time(seconds(60))
        hold = queue.ledger.holds[name]
        tell = confirm if how == "confirm" else fail
        after = tell(queue.ledger, name, Fence(queue.ledger.uid, hold.fence), queue.now)
        assert isinstance(after, Ledger)
        queue.ledger = after
        queue.pass_time(seconds(0.2))

    assert TIMINGS.unbroken_use <= longest <= TIMINGS.unbroken_use + seconds(60)


def test_a_ledger_that_is_not_shared_knows_nothing_of_use() -> None:
    ledger = reserved(queued(new_ledger(), "s1"), "s1")

    assert used_until(ledger, NOW) is ledger
    assert b"courtesy" not in encode(ledger)


def test_nobody_resumes_inside_the_pause_either() -> None:
    """Fault B17; clause: Gate A is left free."""
    ledger = use(held(new_ledger(3), "s1", state=HoldState.RESERVED), 600, 20)
    at = NOW + seconds(601)

    after, told = decide(ledger, Attempt("s1", 2, ME), seen(now=at), TIMINGS, shared=True)

    assert reason(told) is Reason.PAUSE
    assert after is ledger
    assert turn_to_resume(ledger, "s1", seen(now=at), TIMINGS) == told
    over = seen(now=NOW + seconds(645))
    assert turn_to_resume(ledger, "s1", over, TIMINGS) == Turn(0)


def test_a_clock_that_was_put_back_makes_no_pause_of_hours_and_lets_use_begin_anew() -> None:
    ledger = use(new_ledger(), 600, 20)
    earlier = NOW - HOUR

    assert paused_until(ledger, earlier, TIMINGS) is None
    begun = used(ledger, earlier, TIMINGS)
    assert begun.courtesy.used_since == earlier
    for number in range(31):
        begun = used(begun, earlier + seconds(20 * number), TIMINGS)
    assert paused_until(begun, earlier + seconds(601), TIMINGS) is not None
