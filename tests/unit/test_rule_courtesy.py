"""What is left to programs that poll."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest
from admission_stage import ME, NOW, TIMINGS, new_ledger, queued, seconds
from hypothesis import given
from hypothesis import strategies as st
from shared_stage import Queue, held, running, seen

from blastyard.admission.courtesy import (
    is_owed,
    owe,
    slot_left_until,
    usable,
)
from blastyard.admission.hold import Attempt, end
from blastyard.admission.ledger import Courtesy, Ledger
from blastyard.admission.outcome import Granted, Reason, Waiting
from blastyard.admission.reservation import brought_up, decide

HOUR = timedelta(hours=1)
TICK = seconds(1)


def owing(ceiling: int, *waiting: str) -> Ledger:
    """All slots are in use by searches ``h0``…, others wait, and a poller has been denied."""
    ledger = new_ledger(ceiling)
    for number in range(ceiling):
        ledger = held(ledger, f"h{number}")
    ledger = owe(queued(ledger, *waiting), NOW)  # type: ignore[assignment]
    assert isinstance(ledger, Ledger)
    return ledger


def freed(queue: Queue, search: str) -> None:
    queue.ledger = end(queue.ledger, search, queue.now) or queue.ledger


def reason(told: object) -> Reason | None:
    return told.reason if isinstance(told, Waiting) else None


# -- the debt --------------------------------------------------------------------------------------


def test_one_denial_is_one_debt_and_another_denial_does_not_start_it_again() -> None:
    """Fault B17; clause: repeats do not restart the debt."""
    once = owe(new_ledger(), NOW)
    assert once is not None
    assert once.courtesy.owed_at == NOW

    assert owe(once, NOW + seconds(30)) is None
    begun = msgspec.structs.replace(once, courtesy=Courtesy(NOW, NOW + seconds(5)))
    assert owe(begun, NOW + seconds(30)) is None


@pytest.mark.parametrize("ceiling", [1, 2, 3])
def test_the_slot_that_falls_free_is_left_alone_for_45_s_from_that_moment(ceiling: int) -> None:
    """Fault B17; clause: from the free slot, not from the denial."""
    queue = Queue(owing(ceiling, "s1"))
    queue.pass_time(10 * TIMINGS.courtesy)  # a debt is old when a slot falls free at last
    freed(queue, "h0")
    fell_free_at = queue.now

    while queue.now < fell_free_at + TIMINGS.courtesy:
        assert reason(queue.ask("s1")) is Reason.COURTESY
        queue.pass_time(TICK)

    assert queue.granted == []
    assert isinstance(queue.ask("s1"), Granted)
    assert queue.entries == 2, "the first one noted when it fell free, the last one took it"


@pytest.mark.parametrize("ceiling", [1, 2, 3])
def test_a_debt_whose_creditor_never_comes_does_not_stop_the_queue(ceiling: int) -> None:
    """Fault B17; clause: for 45 s."""
    names = [f"s{number}" for number in range(4 * ceiling + 4)]
    queue = Queue(owing(ceiling, *names))
    while queue.ledger.tickets:
        for name in list(queue.ledger.holds):
            freed(queue, name)
        for name in list(queue.ledger.tickets):
            queue.ask(name)
        queue.pass_time(TICK)
        assert queue.now < NOW + 2 * TIMINGS.courtesy + seconds(3 * len(names))

    assert len(queue.granted) == len(names)


def test_a_glance_does_not_leave_a_slot_alone_that_nobody_has_noted() -> None:
    """Fault B17: what is only thought to begin now would begin anew with every glance."""
    queue = Queue(owing(1, "s1"))
    freed(queue, "h0")
    situation = seen(now=queue.now)

    glanced = brought_up(queue.ledger, situation, TIMINGS, shared=True)

    assert slot_left_until(glanced, TIMINGS) is None
    assert reason(queue.ask("s1")) is Reason.COURTESY
    assert queue.ledger.courtesy.slot_at == NOW


def test_one_slot_is_left_alone_and_further_ones_are_taken() -> None:
    """Fault B17; clause: the first slot that falls free."""
    queue = Queue(owing(3, "s1", "s2"))
    freed(queue, "h0")
    freed(queue, "h1")

    assert isinstance(queue.ask("s1"), Granted)
    assert reason(queue.ask("s2")) is Reason.COURTESY


@pytest.mark.parametrize("ceiling", [1, 2, 3])
def test_at_most_one_slot_in_ceiling_and_one_is_left_alone(ceiling: int) -> None:
    """Fault B17; clause: at most one slot in ceiling + 1, however often somebody is denied."""
    queue = Queue(owing(ceiling, *[f"s{number}" for number in range(30)]))
    courtesies = []
    while queue.ledger.tickets:
        queue.ledger = owe(queue.ledger, queue.now) or queue.ledger
        if len(queue.ledger.holds) == ceiling:
            freed(queue, next(iter(queue.ledger.holds)))
        before = queue.ledger.courtesy.slot_at
        queue.ask(next(iter(queue.ledger.tickets)))
        if queue.ledger.courtesy.slot_at not in (None, before):
            courtesies.append(len(queue.granted))
        queue.pass_time(TICK)

    between = [after - before for before, after in pairwise(courtesies)]
    assert between, "a poller is left a slot again and again"
    assert all(ceiling <= granted <= ceiling + 2 for granted in between)


@pytest.mark.parametrize(
    ("came", "is_paid"),
    [
        (running("foreign", at=NOW + seconds(3)), True),
        (running("foreign", at=NOW - seconds(3)), False),
        (running("h0", at=NOW + seconds(3)), False),
        (running("r-alias", at=NOW + seconds(3)), False),
    ],
    ids=["begun after it", "begun before it", "ours", "ours under another id"],
)
def test_a_debt_is_paid_by_a_foreign_search_that_begins_after_it(
    came: list[object], is_paid: bool
) -> None:
    """Fault B17."""
    ledger = held(owing(1, "s1"), "h9", alias="r-alias")

    after = brought_up(
        ledger,
        seen(came, NOW + seconds(5)),  # type: ignore[arg-type]
        TIMINGS,
        shared=True,
    )

    assert (after.courtesy.owed_at is None) == is_paid
    assert after.courtesy.paid == (ledger.fence if is_paid else 0)


def test_who_has_just_been_left_a_slot_is_not_left_the_next_one() -> None:
    """Fault B17; clause: at most one slot in ceiling + 1."""
    ledger = msgspec.structs.replace(new_ledger(2), fence=100)
    paid = msgspec.structs.replace(ledger, courtesy=Courtesy(NOW, None, paid=100))

    assert not is_owed(paid)
    assert not is_owed(msgspec.structs.replace(paid, fence=102))
    assert is_owed(msgspec.structs.replace(paid, fence=103))


def test_nothing_is_left_alone_where_nothing_is_owed_or_nobody_foreign_looks_on() -> None:
    """Fault B17."""
    ledger = queued(new_ledger(1), "s1")
    _, told = decide(ledger, Attempt("s1", 1, ME), seen(), TIMINGS, shared=True)
    assert isinstance(told, Granted)

    after, told = decide(owing(0, "s1"), Attempt("s1", 1, ME), seen(), TIMINGS, shared=False)
    assert reason(told) is Reason.DRAINED
    assert after.courtesy.slot_at is None


def test_a_denial_is_written_only_when_something_was_noted() -> None:
    queue = Queue(owing(1, "s1"))
    full, told = decide(queue.ledger, Attempt("s1", 1, ME), seen(), TIMINGS, shared=True)
    assert reason(told) is Reason.CAPACITY
    assert full is queue.ledger

    freed(queue, "h0")
    noted, _ = decide(queue.ledger, Attempt("s1", 1, ME), seen(), TIMINGS, shared=True)
    assert noted is not queue.ledger
    again, _ = decide(noted, Attempt("s1", 1, ME), seen(now=NOW + TICK), TIMINGS, shared=True)
    assert again is noted


def test_a_clock_that_was_put_back_does_not_leave_a_slot_alone_until_it_has_caught_up() -> None:
    queue = Queue(owing(1, "s1"))
    freed(queue, "h0")
    assert reason(queue.ask("s1")) is Reason.COURTESY

    queue.pass_time(-HOUR)
    assert reason(queue.ask("s1")) is Reason.COURTESY
    queue.pass_time(TIMINGS.courtesy)
    assert isinstance(queue.ask("s1"), Granted)


def test_a_reader_whose_clock_is_a_little_behind_sees_the_same_slot_left_alone() -> None:
    queue = Queue(owing(1, "s1"))
    freed(queue, "h0")
    assert reason(queue.ask("s1")) is Reason.COURTESY
    entries = queue.entries

    queue.pass_time(-seconds(1))
    assert reason(queue.ask("s1")) is Reason.COURTESY
    assert queue.entries == entries
    assert queue.ledger.courtesy.slot_at == NOW


@given(
    ceiling=st.integers(1, 3),
    steps=st.lists(
        st.tuples(st.sampled_from(("deny", "end", "come", "leave")), st.integers(0, 50)),
        max_size=25,
    ),
)
def test_whatever_was_owed_a_free_slot_is_taken_in_the_end(
    ceiling: int, steps: list[tuple[str, int]]
) -> None:
    """Fault B17: no debt and no pause stops our own queue for longer than it says."""
    queue = Queue(queued(owing(ceiling), "s1", "s2", "s3", "s4"))
    for number, (what, pause) in enumerate(steps):
        if what == "deny":
            queue.ledger = owe(queue.ledger, queue.now) or queue.ledger
        elif what == "end":
            freed(queue, next(iter(queue.ledger.holds), ""))
        elif what == "come":
            queue.jobs = running(f"foreign{number}", at=queue.now)
        else:
            queue.jobs = []
        for name in list(queue.ledger.tickets):
            queue.ask(name)
        queue.pass_time(seconds(pause))
    for name in list(queue.ledger.holds):
        freed(queue, name)
    queue.jobs = []

    free_at = queue.now
    while queue.ledger.tickets:
        for name in list(queue.ledger.holds):
            freed(queue, name)
        for name in list(queue.ledger.tickets):
            queue.ask(name)
        queue.pass_time(TICK)
        assert queue.now - free_at <= 3 * TIMINGS.courtesy


# -- whose turn it is meanwhile --------------------------------------------------------------------


def test_a_slot_that_is_left_alone_is_nobodys_turn_and_a_second_one_begins_a_turn() -> None:
    """Who learns first of the second slot must not take the head for one that let its turn go."""
    ledger = owing(3, "s1", "s2")
    left = msgspec.structs.replace(ledger, courtesy=Courtesy(NOW, NOW))

    assert usable(left, 1, NOW + TICK, TIMINGS) == 0
    assert usable(left, 2, NOW + TICK, TIMINGS) == 2
    assert usable(left, 1, NOW + TIMINGS.courtesy, TIMINGS) == 1
    assert usable(ledger, 1, NOW, TIMINGS) == 1, "nobody has written yet that it is left alone"


def test_nothing_is_usable_while_gate_a_is_left_free_after_long_use() -> None:
    used = Courtesy(used_since=NOW - TIMINGS.unbroken_use, used_at=NOW)
    ledger = msgspec.structs.replace(new_ledger(3), courtesy=used)

    assert usable(ledger, 3, NOW + TICK, TIMINGS) == 0
    assert usable(ledger, 3, NOW + TIMINGS.courtesy, TIMINGS) == 3
