"""Counting what runs, by identity."""

from __future__ import annotations

import msgspec
from admission_stage import NOW, new_ledger, queued, reserved
from hypothesis import given
from hypothesis import strategies as st

from blastyard.admission.census import Census, NothingForeign, occupied, room, room_to_resume
from blastyard.admission.hold import confirm
from blastyard.admission.ledger import Fence, Hold, HoldState, Ledger, Ticket
from blastyard.admission.ticket import change_policy

FAMILIES = st.sets(st.sampled_from(("s0", "s1", "s2", "p", "f1", "f2")))


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    """Up to four holds, reserved and submitted, some of one family."""
    holds = {}
    for number in range(draw(st.integers(0, 4))):
        family = draw(st.sampled_from((None, None, "p")))
        ticket = Ticket("serve-1", "ada", 1, number, NOW, family=family)
        state = draw(st.sampled_from(HoldState))
        holds[f"s{number}"] = Hold(ticket, "serve-1", 1, 100 + number, state, NOW)
    ledger = new_ledger(ceiling=draw(st.integers(0, 5)))
    return msgspec.structs.replace(ledger, holds=holds, fence=110)


def seen(*families: str) -> Census:
    return Census(frozenset(families))


def three(ceiling: int = 3) -> Ledger:
    ledger = queued(new_ledger(ceiling=3), "s0", "s1", "s2")
    for name in ("s0", "s1", "s2"):
        ledger = reserved(ledger, name)
    return change_policy(ledger, "root", NOW, ceiling=ceiling) or ledger


def slots(ledger: Ledger) -> dict[str, str]:
    """Whose run slot each hold uses."""
    return {name: hold.ticket.family or name for name, hold in ledger.holds.items()}


def test_a_hold_that_is_not_seen_and_a_search_that_has_none_are_two() -> None:
    """Fault B8."""
    ledger = reserved(queued(new_ledger(), "s0"), "s0")

    assert occupied(ledger.holds, seen("foreign")) == {"s0", "foreign"}
    assert occupied(ledger.holds, seen("s0")) == {"s0"}


@given(ledger=ledgers(), running=FAMILIES)
def test_room_is_what_the_ceiling_leaves_and_never_negative(
    ledger: Ledger, running: set[str]
) -> None:
    """Faults B8 and B9."""
    used = set(slots(ledger).values()) | {slots(ledger).get(name, name) for name in running}

    assert occupied(ledger.holds, seen(*running)) == used
    assert room(ledger, seen(*running)) == max(0, ledger.policy.ceiling - len(used))


def test_a_ceiling_below_what_runs_leaves_no_room() -> None:
    """Fault B9."""
    assert room(three(ceiling=1), Census()) == 0
    assert room(three(ceiling=0), Census()) == 0


def test_where_all_passes_through_the_ledger_nothing_foreign_is_seen() -> None:
    assert NothingForeign().read() == Census(frozenset())


def test_a_reservation_gives_way_to_older_ones_and_to_what_was_submitted() -> None:
    """Fault B19."""
    ledger = three(ceiling=1)
    names = ("s0", "s1", "s2")

    assert [room_to_resume(ledger, Census(), name) for name in names] == [True, False, False]
    last = Fence(ledger.uid, ledger.holds["s2"].fence)
    confirmed = confirm(ledger, "s2", last, NOW)
    assert isinstance(confirmed, Ledger)
    assert not any(room_to_resume(confirmed, Census(), name) for name in ("s0", "s1"))


def test_a_reservation_gives_way_to_what_no_hold_covers() -> None:
    """Fault B19."""
    assert room_to_resume(three(), seen("s0", "s1"), "s2")
    assert not room_to_resume(three(), seen("foreign"), "s2")
    assert room_to_resume(three(), seen("foreign"), "s1")


@given(ledger=ledgers(), running=FAMILIES)
def test_those_who_may_resume_and_those_who_run_are_never_more_than_the_ceiling(
    ledger: Ledger, running: set[str]
) -> None:
    """Fault B19."""
    census = seen(*running)
    covered = set(slots(ledger).values())
    resumed = [
        name
        for name, hold in ledger.holds.items()
        if hold.state is HoldState.RESERVED and room_to_resume(ledger, census, name)
    ]

    busy = ({slots(ledger).get(name, name) for name in running} - covered) | {
        ledger.holds[name].ticket.family or name
        for name, hold in ledger.holds.items()
        if name in resumed or hold.state is HoldState.SUBMITTED
    }
    if resumed:
        assert len(busy) <= ledger.policy.ceiling
