"""The rules of the queue against the naive reading of the protocol, on any small ledger."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from blastyard.admission import order
from blastyard.admission.census import Census
from blastyard.admission.ledger import Hold, HoldState, Ledger, Policy, Ticket
from blastyard.admission.timing import Timings
from blastyard.testing import oracle

NOW = datetime(2030, 1, 1, tzinfo=UTC)
USERS = ("ada", "bo", "cy")
SUBMITTERS = ("one", "two", "three")


@st.composite
def tickets(draw: st.DrawFn) -> dict[str, Ticket]:
    numbers = draw(st.lists(st.integers(1, 40), unique=True, max_size=9))
    return {
        f"s{number}": Ticket(
            submitter=draw(st.sampled_from(SUBMITTERS)),
            user=draw(st.sampled_from(USERS)),
            level=draw(st.integers(0, 2)),
            sequence=number,
            ticketed_at=NOW - timedelta(seconds=draw(st.integers(-5, 90))),
            parked_by=draw(st.sampled_from([None, None, None, "op"])),
            blocked=draw(st.sampled_from([None, None, None, "waiting_for_database"])),
            passed=draw(st.integers(0, 3)),
        )
        for number in numbers
    }


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    holds = {
        f"h{number}": Hold(
            Ticket("one", draw(st.sampled_from(USERS)), 1, 100 + number, NOW),
            "one",
            1,
            number,
            HoldState.SUBMITTED,
            NOW,
        )
        for number in range(draw(st.integers(0, 3)))
    }
    return Ledger(
        uid="u",
        policy=Policy(
            ceiling=draw(st.integers(1, 4)),
            user_cap=draw(st.sampled_from([None, 1, 2])),
            ageing_seconds=draw(st.sampled_from([10, 30, 3600])),
        ),
        fence=draw(st.integers(10, 20)),
        holds=holds,
        tickets=draw(tickets()),
        served=draw(st.dictionaries(st.sampled_from(USERS), st.integers(1, 10), max_size=3)),
        turn_at=draw(
            st.one_of(st.none(), st.integers(0, 60).map(lambda ago: NOW - timedelta(seconds=ago)))
        ),
    )


@given(ledgers())
def test_the_order_is_the_naive_one(ledger: Ledger) -> None:
    names = [search for search, _, _ in order.fair_order(ledger, NOW)]
    assert names == oracle.fair_order(ledger, NOW)


@given(ledgers(), st.sets(st.sampled_from(SUBMITTERS)))
def test_who_may_go_now_had_to_let_exactly_the_able_ones_ahead_go_first(
    ledger: Ledger, alive: set[str]
) -> None:
    seen = order.Situation(NOW, alive, Census())
    for search in ledger.tickets:
        outcome = order.turn(ledger, search, seen, Timings())
        if isinstance(outcome, order.Turn):
            before = oracle.ahead(ledger, search, alive, NOW)
            assert set(outcome.passing) == set(before.searches)
            if ledger.turn_at is not None:
                assert (NOW - ledger.turn_at).total_seconds() >= before.seconds


@given(ledgers(), st.sets(st.sampled_from(SUBMITTERS)))
def test_somebody_may_go_whenever_there_is_room_and_somebody_able(
    ledger: Ledger, alive: set[str]
) -> None:
    seen = order.Situation(NOW, alive, Census())
    able = [place.search for place in order.places(ledger, NOW, alive) if place.obstacle is None]
    outcomes = [order.turn(ledger, search, seen, Timings()) for search in ledger.tickets]
    may_go = any(isinstance(outcome, order.Turn) for outcome in outcomes)
    assert may_go == bool(able and len(ledger.holds) < ledger.policy.ceiling)
