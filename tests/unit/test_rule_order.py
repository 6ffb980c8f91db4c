"""Who is next in the queue, and who lets whom by."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest
from admission_stage import (
    ME,
    NOW,
    OTHER,
    TIMINGS,
    new_ledger,
    order_of,
    queued,
    reserved,
    seconds,
    situation,
    wish,
)
from hypothesis import given
from hypothesis import strategies as st

from blastyard.admission.hold import end
from blastyard.admission.ledger import Ledger
from blastyard.admission.order import (
    HIGHEST,
    Turn,
    aged_level,
    begin_turn,
    fair_order,
    head,
    passed_over,
    patience,
    places,
    turn,
)
from blastyard.admission.outcome import Reason, Waiting
from blastyard.admission.ticket import Wish, block, change_policy, park, publish
from blastyard.domain.job import Phase

USERS = ("ada", "bo", "cy")
ARRIVALS = st.lists(
    st.tuples(st.sampled_from(USERS), st.integers(0, 2), st.integers(-50, 400)), max_size=14
)


def arrived(arrivals: list[tuple[str, int, int]], ageing: int = 300) -> tuple[Ledger, datetime]:
    """Searches that came one after another while the clock went on, or was put back."""
    ledger, now = new_ledger(ageing=ageing), NOW
    for number, (user, level, later) in enumerate(arrivals):
        now += seconds(later)
        ledger = queued(ledger, wish(f"s{number}", user, level), at=now)
    return ledger, now


def waiting(outcome: Turn | Waiting) -> Waiting:
    assert isinstance(outcome, Waiting), outcome
    return outcome


def in_order(ledger: Ledger, now: datetime = NOW) -> list[str]:
    return [search for search, _, _ in fair_order(ledger, now)]


# -- the order -------------------------------------------------------------------------------------


def test_equals_go_in_the_order_in_which_they_were_written() -> None:
    """Fault Q12."""
    ledger = queued(new_ledger(), "s3", "s1")
    ledger = queued(ledger, "s2", at=NOW)
    ledger = queued(ledger, "s0", at=NOW - timedelta(hours=1))

    assert in_order(ledger) == ["s3", "s1", "s2", "s0"]
    assert order_of(msgspec.structs.replace(ledger, policy=new_ledger(9).policy)) == in_order(
        ledger
    )


@given(arrivals=ARRIVALS)
def test_within_one_user_and_priority_nobody_overtakes_whatever_the_clock_did(
    arrivals: list[tuple[str, int, int]],
) -> None:
    """Fault Q12."""
    ledger, now = arrived(arrivals)

    order = fair_order(ledger, now)

    assert sorted(search for search, _, _ in order) == sorted(ledger.tickets)
    for user in USERS:
        for level in range(3):
            mine = [t.sequence for _, t, _ in order if (t.user, t.level) == (user, level)]
            assert mine == sorted(mine)


@given(arrivals=ARRIVALS)
def test_a_higher_aged_priority_always_goes_first(arrivals: list[tuple[str, int, int]]) -> None:
    ledger, now = arrived(arrivals)

    levels = [level for _, _, level in fair_order(ledger, now)]

    assert levels == sorted(levels, reverse=True)
    assert levels == [
        aged_level(ticket, seconds(300), now) for _, ticket, _ in fair_order(ledger, now)
    ]


@given(counts=st.tuples(*[st.integers(0, 6)] * 3))
def test_users_of_one_priority_take_turns_however_many_searches_each_has(
    counts: tuple[int, int, int],
) -> None:
    """Fault Q5."""
    each = zip(USERS, counts, strict=True)
    wishes = [wish(f"{user}{n}", user) for user, count in each for n in range(count)]
    ledger = queued(new_ledger(), *wishes)

    order = [ticket.user for _, ticket, _ in fair_order(ledger, NOW)]

    for number, user in enumerate(order):
        ahead = order[:number]
        for other, count in zip(USERS, counts, strict=True):
            least = min(ahead.count(user), count)
            assert least <= ahead.count(other) + 1


def test_one_user_with_two_hundred_lets_the_other_go_second() -> None:
    """Fault Q5."""
    many = [wish(f"a{n}", "ada") for n in range(200)]
    ledger = queued(new_ledger(), *many, wish("b", "bo"))

    assert in_order(ledger)[:3] == ["a0", "b", "a1"]


def test_who_was_served_longest_ago_begins() -> None:
    """Fault Q5."""
    ledger = queued(new_ledger(ceiling=9), *[wish(f"a{n}", "ada") for n in range(3)])
    ledger = reserved(ledger, "a0")
    ledger = queued(ledger, wish("b0", "bo"), wish("b1", "bo"))

    assert in_order(ledger) == ["b0", "a1", "b1", "a2"]


def test_waiting_raises_the_priority_to_the_highest_and_no_further() -> None:
    """Fault Q6."""
    ticket = queued(new_ledger(), wish("s", level=0)).tickets["s"]
    hour = timedelta(hours=1)

    assert [aged_level(ticket, hour, NOW + n * hour / 2) for n in range(8)] == [
        *(0, 0, 1, 1, 2, 2),
        *(HIGHEST, HIGHEST),
    ]
    assert aged_level(ticket, hour, NOW - hour) == 0


@pytest.mark.parametrize("user", ["ada", "bo"])
def test_a_stream_of_high_priority_does_not_keep_a_low_one_waiting_for_ever(user: str) -> None:
    """Fault Q6."""
    ledger = queued(new_ledger(ceiling=1, ageing=600), wish("low", user, 0))
    now, running = NOW, None
    for number in range(100):
        ledger = queued(ledger, *[wish(f"h{number}-{n}", "ada", 2) for n in range(2)], at=now)
        now += seconds(60)
        if running is not None:
            ledger = end(ledger, running, now) or ledger
        running = in_order(ledger, now)[0]
        ledger = reserved(ledger, running, now)
        if running == "low":
            break

    assert running == "low"
    assert now - NOW <= 2 * seconds(600) + seconds(120)


# -- what keeps a search from going ----------------------------------------------------------------


def test_a_search_that_cannot_go_is_skipped_keeps_its_place_and_says_why() -> None:
    """Fault Q4."""
    ledger = queued(new_ledger(cap=1), "parked", "copied", "silent", wish("capped", "bo"), "ok")
    ledger = queued(ledger, wish("bo1", "bo", 2))
    ledger = reserved(ledger, "bo1")
    ledger = park(ledger, "parked", "root", NOW) or ledger
    ledger = block(ledger, "copied", Phase.WAITING_FOR_DATABASE, NOW) or ledger
    ledger = msgspec.structs.replace(
        ledger,
        tickets={
            **ledger.tickets,
            "silent": msgspec.structs.replace(ledger.tickets["silent"], submitter="gone"),
        },
    )
    seen = situation()

    found = {place.search: place for place in places(ledger, NOW, seen.alive)}
    assert list(found) == ["parked", "capped", "copied", "silent", "ok"]
    assert [place.position for place in found.values()] == [1, 2, 3, 4, 5]
    for name, reason, phase, words in (
        ("parked", Reason.PARKED, Phase.PARKED, "root"),
        ("copied", Reason.BLOCKED, Phase.WAITING_FOR_DATABASE, "waiting_for_database"),
        ("silent", Reason.SUBMITTER, Phase.WAITING_FOR_RUNNER, "no sign of life"),
        ("capped", Reason.USER_CAP, Phase.WAITING_FOR_CAPACITY, "bo already has 1 running"),
    ):
        told = waiting(turn(ledger, name, seen, TIMINGS))
        assert (told.reason, told.phase) == (reason, phase)
        assert told.position == found[name].position
        assert words in told.detail
    assert turn(ledger, "ok", seen, TIMINGS) == Turn(found["ok"].position)
    assert head(ledger, NOW) == "silent", "the head is told by the ledger alone"


def test_a_submitter_that_returns_finds_its_place_kept() -> None:
    """Fault Q3."""
    ledger = queued(queued(new_ledger(ceiling=1), "mine"), "theirs", submitter=OTHER)

    assert turn(ledger, "theirs", situation(alive=[OTHER]), TIMINGS) == Turn(2)
    assert waiting(turn(ledger, "theirs", situation(), TIMINGS)).reason is Reason.TURN
    assert turn(ledger, "mine", situation(), TIMINGS) == Turn(1)


@pytest.mark.parametrize(("cap", "free"), [(None, True), (1, False), (2, True)])
def test_a_cap_counts_what_a_user_has_running(cap: int | None, free: bool) -> None:
    """Fault Q5."""
    ledger = reserved(queued(new_ledger(cap=cap), "s1", "s2"), "s1")

    assert isinstance(turn(ledger, "s2", situation(), TIMINGS), Turn) == free


def test_no_room_says_how_many_run_and_a_drained_yard_that_it_is_drained() -> None:
    full = reserved(queued(new_ledger(ceiling=1), "s1", "s2"), "s1")
    drained = change_policy(full, "root", NOW, ceiling=0) or full

    told = waiting(turn(full, "s2", situation(), TIMINGS))
    assert (told.reason, told.detail) == (Reason.CAPACITY, "1 running of at most 1")
    told = waiting(turn(full, "s2", situation(running=["f"]), TIMINGS))
    assert told.detail == "1 running of at most 1, 1 seen in the cluster"
    told = waiting(turn(drained, "s2", situation(), TIMINGS))
    assert told.reason is Reason.DRAINED
    assert told.phase is Phase.WAITING_FOR_CAPACITY
    assert "until an operator raises it" in told.detail


def test_a_search_without_a_ticket_is_told_that_it_is_not_published() -> None:
    told = waiting(turn(new_ledger(), "nobody", situation(), TIMINGS))

    assert (told.reason, told.position) == (Reason.UNPUBLISHED, None)


def test_nobody_goes_while_claims_are_being_collected() -> None:
    """Fault B14."""
    ledger = msgspec.structs.replace(queued(new_ledger(), "s1"), restored=())

    assert waiting(turn(ledger, "s1", situation(), TIMINGS)).reason is Reason.RESTORING


# -- taking turns ----------------------------------------------------------------------------------


def test_each_of_those_ahead_is_waited_for_one_second_from_when_the_slot_was_free() -> None:
    """Fault Q3."""
    ledger = queued(new_ledger(), "s1", "s2", "s3")
    opens = {name: NOW + n * TIMINGS.turn for n, name in enumerate(("s1", "s2", "s3"))}

    for name, at in opens.items():
        if at > NOW:
            early = waiting(turn(ledger, name, situation(at - seconds(0.001)), TIMINGS))
            assert (early.reason, early.until) == (Reason.TURN, at)
        assert isinstance(turn(ledger, name, situation(at), TIMINGS), Turn)
    assert turn(ledger, "s3", situation(opens["s3"]), TIMINGS) == Turn(3, ("s1", "s2"))


def test_a_turn_does_not_run_while_somebody_is_inside_gate_a() -> None:
    ledger = queued(new_ledger(), "s1", "s2")
    freed_at = NOW + seconds(20)

    told = turn(ledger, "s2", situation(freed_at, gate_free_since=freed_at), TIMINGS)

    assert waiting(told).until == freed_at + TIMINGS.turn


def test_a_clock_that_was_put_back_stops_nobody() -> None:
    ledger = queued(new_ledger(), "s1", "s2")
    ledger = msgspec.structs.replace(ledger, turn_at=NOW + timedelta(hours=9))

    assert isinstance(turn(ledger, "s2", situation(), TIMINGS), Turn)


def test_who_was_passed_over_three_times_gets_one_long_turn() -> None:
    """Fault Q3."""
    ticket = queued(new_ledger(), "s1").tickets["s1"]
    counts = [ticket.passed]
    spans = []
    for _ in range(5):
        spans.append(patience(ticket, TIMINGS))
        ticket = msgspec.structs.replace(ticket, passed=passed_over(ticket, TIMINGS))
        counts.append(ticket.passed)

    assert counts == [0, 1, 2, 3, 0, 1]
    assert spans == [TIMINGS.turn] * 3 + [TIMINGS.patient_turn, TIMINGS.turn]


def test_a_turn_begins_with_a_free_slot_a_higher_ceiling_or_another_head() -> None:
    """Fault B10."""
    before = reserved(queued(new_ledger(ceiling=1), "s1", "s2", "s3"), "s1")
    later = NOW + seconds(50)

    freed = end(before, "s1", later)
    raised = change_policy(before, "root", later, ceiling=2)
    another = park(before, "s2", "root", later)
    for changed in (freed, raised, another):
        assert changed is not None
        assert changed.turn_at == later
    behind = publish(before, ME, [Wish("s4", "ada", 1)], later)
    lowered = change_policy(before, "root", later, ceiling=0)
    for changed in (behind, lowered, park(before, "s3", "root", later)):
        assert changed is not None
        assert changed.turn_at == begin_turn(before, changed, later) == NOW


def test_a_raised_ceiling_lets_in_as_many_as_fit_at_once_and_no_more() -> None:
    """Fault B10."""
    ledger = reserved(queued(new_ledger(ceiling=1), "s1", "s2", "s3", "s4"), "s1")
    later = NOW + seconds(99)

    ledger = change_policy(ledger, "root", later, ceiling=3) or ledger

    assert order_of(ledger, later) == ["s2", "s3"]
