"""Waiting in the queue, as one process sees it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest
from admission_stage import (
    ME,
    OTHER,
    TIMINGS,
    Yard,
    inside,
    inside_with_ticket,
    scripted,
    wish,
)

from blastyard.admission.census import Census
from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt
from blastyard.admission.lease import Held
from blastyard.admission.order import Turn
from blastyard.admission.outcome import Granted, Reason, Waiting
from blastyard.admission.port import LEASE, LEDGER, SUBMITTER
from blastyard.admission.view import Due
from blastyard.domain.errors import Unavailable
from blastyard.testing.faulty import Fault


def run(gate: Gate, search: str, number: int = 1) -> None:
    """Take ``search`` from its ticket to a submitted hold, and leave Gate A."""
    stay = inside(gate, search, number)
    granted = stay.reserve(Attempt(search, number, gate.me.name))
    assert isinstance(granted, Granted), granted
    assert stay.confirm(search, granted.fence)
    gate.leave(stay)


def reason(outcome: Turn | Waiting) -> Reason:
    assert isinstance(outcome, Waiting), outcome
    return outcome.reason


class Foreign:
    """A census that sees what the test says, or cannot tell."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.broken = False

    def read(self, *, urgent: bool = False) -> Census:
        if self.broken:
            raise Unavailable("store_unavailable", "the list was cut off")
        return Census(frozenset(self.running))

    def glance(self) -> Census:
        return self.read()

    def later(self, census: Census) -> Census:
        return census

    def finished(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset()


def test_the_first_eligible_search_is_due_and_all_of_ours_are_named() -> None:
    yard = Yard()
    gate, other = yard.gate(), yard.gate(OTHER)
    gate.beat()
    other.beat()
    gate.publish([wish("s1"), wish("s2")])
    other.publish([wish("o1")])

    assert gate.due() == Due(("s1",), ("s1", "s2"), None, yard.clock.now())
    due = other.due()
    assert (due.searches, due.waiting) == ((), ("o1",))
    assert due.until == yard.clock.now() + 2 * TIMINGS.turn


def test_whoever_has_nothing_waiting_has_nothing_due() -> None:
    yard = Yard()

    assert yard.gate().due() == Due((), (), None, yard.clock.now())


def test_nobody_is_due_while_somebody_is_inside_and_is_told_until_when() -> None:
    yard = Yard()
    gate = yard.gate()
    gate.publish([wish("s1"), wish("s2")])
    inside(gate, "s1")

    assert gate.due().searches == ()
    assert gate.due().until == yard.clock.now() + TIMINGS.takeover
    assert reason(gate.turn("s2")) is Reason.TURN
    yard.clock.leap(TIMINGS.turn.total_seconds())
    for position, search in enumerate(("s1", "s2"), start=1):
        told = gate.turn(search)
        assert reason(told) is Reason.SUBMIT_SLOT
        assert isinstance(told, Waiting)
        assert told.position == position
        assert told.detail == "blastyard-s1-1 is submitting"


def test_a_slot_that_falls_free_is_due_to_the_next_at_once() -> None:
    """Fault Q2."""
    yard = Yard(ceiling=1)
    gate = yard.gate()
    gate.publish([wish("s1"), wish("s2")])
    run(gate, "s1")
    assert reason(gate.turn("s2")) is Reason.CAPACITY
    watch = yard.documents.watch()

    gate.end("s1")

    assert watch.wait(0)
    assert gate.due().searches == ("s2",)


def test_a_raised_ceiling_wakes_the_others_and_lets_in_as_many_as_fit() -> None:
    """Fault B10."""
    yard = Yard(ceiling=1)
    gate = yard.gate()
    gate.publish([wish(f"s{number}") for number in range(4)])
    run(gate, "s0")
    watch = yard.documents.watch()

    yard.gate(OTHER).change_policy("root", ceiling=3)

    assert watch.wait(0)
    for name in ("s1", "s2"):
        assert gate.due().searches == (name,)
        run(gate, name)
    assert gate.due().searches == ()
    assert reason(gate.turn("s3")) is Reason.CAPACITY


def test_a_lowered_ceiling_drops_nobody() -> None:
    """Fault B9."""
    yard = Yard(ceiling=3)
    gate = yard.gate()
    gate.publish([wish(f"s{number}") for number in range(4)])
    for number in range(3):
        run(gate, f"s{number}")

    gate.change_policy("root", ceiling=2)
    gate.end("s0")

    assert set(gate.ledger().holds) == {"s1", "s2"}
    assert reason(gate.turn("s3")) is Reason.CAPACITY
    gate.end("s1")
    assert isinstance(gate.turn("s3"), Turn)


def test_a_negative_ceiling_is_refused_and_nothing_changed() -> None:
    gate = Yard(ceiling=3).gate()

    with pytest.raises(ValueError, match="ceiling"):
        gate.change_policy("root", ceiling=-1)
    assert gate.ledger().policy.ceiling == 3


def test_those_who_wait_write_nothing_however_often_they_look() -> None:
    """Faults Q8 and Q9."""
    yard, script, gate = scripted(ceiling=0)
    gate.publish([wish(f"s{number}") for number in range(20)])
    written = script.swaps

    for _ in range(50):
        yard.clock.leap(1.0)
        gate.due()
        assert reason(gate.turn("s7")) is Reason.DRAINED

    assert script.swaps == written


def test_how_much_a_look_reads_does_not_depend_on_how_many_wait() -> None:
    """Fault Q9."""
    read = []
    for waiting in (1, 90):
        _, script, gate = scripted()
        gate.publish([wish(f"s{number}") for number in range(waiting)])
        script.calls.clear()
        gate.due()
        read.append(dict(script.calls))

    assert read[0] == read[1]
    assert sum(read[0].values()) <= 3


def test_a_submitter_that_is_silent_or_gone_is_skipped_and_has_its_place_when_it_returns() -> None:
    """Fault Q3."""
    yard = Yard()
    slow, quick = yard.gate(), yard.gate(OTHER)
    slow.beat()
    slow.publish([wish("s1")])
    quick.publish([wish("s2")])
    yard.clock.leap(1.0)
    assert quick.due().searches == ("s2",), "its head does not claim"
    yard.clock.leap(0.5)
    quick.change_policy("root", ceiling=2)
    assert quick.due().searches == ()

    yard.clock.leap(TIMINGS.lapse.total_seconds())
    quick.change_policy("root", ceiling=3)

    assert quick.due().searches == ("s2",)
    assert quick.turn("s1") == Waiting(
        Reason.SUBMITTER, "the process that looks after it gave no sign of life", 1
    )
    slow.beat()
    assert quick.due().searches == ()
    assert slow.due().searches == ("s1",)
    yard.gone.add(ME)
    assert quick.due().searches == ("s2",)


def test_a_search_that_waits_for_its_database_or_is_parked_lets_the_next_go() -> None:
    """Fault Q4."""
    gate = Yard().gate()
    gate.publish([wish("s1"), wish("s2"), wish("s3")])

    gate.block("s1", "waiting_for_database")
    assert gate.park("s2", "root")

    assert gate.due().searches == ("s3",)
    assert reason(gate.turn("s1")) is Reason.BLOCKED
    gate.block("s1", None)
    assert gate.due().searches == ("s1",)
    assert gate.unpark("s2")
    assert gate.ledger().tickets["s2"].sequence == 2
    assert not gate.park("nobody", "root")
    assert not gate.unpark("nobody")


def test_a_withdrawn_search_is_due_no_more() -> None:
    """Fault Q11."""
    gate = Yard().gate()
    gate.publish([wish("s1"), wish("s2")])

    gate.withdraw("s1")

    assert gate.due().searches == ("s2",)
    assert reason(gate.turn("s1")) is Reason.UNPUBLISHED


def test_a_reserved_slot_that_no_attempt_works_on_is_due_again() -> None:
    """Fault B19."""
    yard, foreign = Yard(), Foreign()
    gate = yard.gate(census=foreign)
    stay = inside_with_ticket(gate)
    assert isinstance(stay.reserve(Attempt("s1", 1, ME)), Granted)
    gate.leave(stay)

    assert gate.due().searches == ("s1",)
    assert gate.turn("s1") == Turn(0)
    foreign.running = {"foreign"}
    assert gate.due().searches == ()
    assert reason(gate.turn("s1")) is Reason.CAPACITY


def test_a_reserved_slot_is_not_due_while_an_attempt_of_ours_still_works_on_it() -> None:
    """Fault A14."""
    yard = Yard()
    gate = yard.gate()
    stay = inside_with_ticket(gate)
    assert isinstance(stay.reserve(Attempt("s1", 1, ME)), Granted)

    yard.clock.leap(TIMINGS.takeover.total_seconds())

    assert gate.due() == Due((), (), None, yard.clock.now())
    gate.leave(stay)
    assert gate.due().searches == ("s1",)


def test_what_is_seen_running_leaves_less_room() -> None:
    """Fault B8."""
    yard, foreign = Yard(ceiling=2), Foreign()
    gate = yard.gate(census=foreign)
    gate.publish([wish("s1"), wish("s2")])
    run(gate, "s1")
    assert gate.due().searches == ("s2",)

    foreign.running = {"foreign"}

    assert gate.due().searches == ()
    told = gate.turn("s2")
    assert isinstance(told, Waiting)
    assert told.detail == "1 running of at most 2, 1 seen in the cluster"


def test_a_census_that_fails_admits_nobody_and_is_said() -> None:
    """Faults B7 and A13."""
    yard, foreign = Yard(), Foreign()
    gate = yard.gate(census=foreign)
    stay = inside_with_ticket(gate)
    foreign.broken = True

    for ask in (gate.due, gate.overdue, lambda: gate.turn("s1"), gate.view):
        with pytest.raises(Unavailable, match="cut off"):
            ask()
    with pytest.raises(Unavailable, match="cut off"):
        stay.reserve(Attempt("s1", 1, ME))
    assert gate.ledger().holds == {}


@pytest.mark.parametrize("document", [LEASE, LEDGER])
def test_a_look_that_fails_is_no_look(document: str) -> None:
    """Fault A13."""
    _, script, gate = scripted()
    gate.publish([wish("s1")])
    script.always("read", document, Fault.UNAVAILABLE)

    for ask in (gate.due, lambda: gate.turn("s1"), gate.view):
        with pytest.raises(Unavailable):
            ask()


def test_a_roster_that_cannot_be_read_admits_nobody() -> None:
    """Fault A13."""
    _, script, gate = scripted()
    stay = inside_with_ticket(gate)
    script.always("scan", SUBMITTER, Fault.UNAVAILABLE)

    with pytest.raises(Unavailable):
        stay.reserve(Attempt("s1", 1, ME))
    assert gate.ledger().holds == {}


def test_a_search_that_another_takes_over_keeps_its_place() -> None:
    """Fault Q3."""
    yard = Yard()
    gate, heir = yard.gate(), yard.gate(OTHER)
    gate.publish([wish("s1"), wish("s2")])

    heir.adopt("s1")
    gate.adopt("s2", OTHER)

    assert heir.due().searches == ("s1",)
    assert gate.due().waiting == ()
    gate.publish([wish("s1")], submitter="serve-3")
    assert gate.ledger().tickets["s1"].submitter == "serve-3"
    assert gate.ledger().tickets["s1"].sequence == 1


def test_a_search_given_back_goes_to_its_old_place_unless_it_was_granted_anew() -> None:
    yard = Yard()
    gate = yard.gate()
    gate.publish([wish("s1"), wish("s2")])
    run(gate, "s1")
    fence = gate.ledger().holds["s1"].fence

    gate.give_back("s1", upto=fence - 1)
    assert set(gate.ledger().holds) == {"s1"}
    gate.give_back("s1", OTHER, upto=fence)

    ledger = gate.ledger()
    assert ledger.holds == {}
    assert (ledger.tickets["s1"].sequence, ledger.tickets["s1"].submitter) == (1, OTHER)


def test_a_reservation_of_the_dead_is_overdue_after_the_longest_command() -> None:
    """Fault B11."""
    yard = Yard()
    gate, other = yard.gate(), yard.gate(OTHER)
    gate.beat()
    stay = inside_with_ticket(gate)
    granted = stay.reserve(Attempt("s1", 1, ME))
    assert isinstance(granted, Granted)

    yard.clock.leap(659.0)
    assert other.overdue() == {}
    yard.clock.leap(1.0)
    assert other.overdue() == {"s1": granted.fence.number}


def test_a_view_shows_who_runs_who_waits_who_is_inside_and_who_lives() -> None:
    yard = Yard(ceiling=2)
    gate = yard.gate()
    gate.beat()
    gate.publish([wish("s1"), wish("s2")])
    run(gate, "s1")
    stay = inside(gate, "s2")

    view = gate.view()

    assert set(view.ledger.holds) == {"s1"}
    assert [(place.search, place.position, place.obstacle) for place in view.queue] == [
        ("s2", 1, None)
    ]
    assert isinstance(view.gate, Held)
    assert view.gate.holder == stay.holder
    assert view.submitters[ME].silent_for == view.submitters[ME].gone_for == timedelta(0)
    assert view.now == yard.clock.now()
