"""Submitters that look often and submitters that look seldom wait in one queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from admission_stage import ME, NOW, OTHER, TIMINGS, new_ledger, queued, seconds, situation
from hypothesis import given
from hypothesis import strategies as st

from blastyard.admission.hold import Attempt, Reserved, end, reserve
from blastyard.admission.ledger import Ledger
from blastyard.admission.order import Turn, turn
from blastyard.admission.outcome import Reason, Waiting
from blastyard.admission.ticket import block, change_policy, park, unpark

LASTS: Final = seconds(0.3)


@dataclass
class Cadences:
    """One slot, and submitters that ask for each of theirs once in a span of their own."""

    ledger: Ledger
    every: dict[str, timedelta]
    now: datetime = NOW
    order: list[str] = field(default_factory=list)
    running: str | None = None
    began: datetime = NOW

    def run(self, until: datetime) -> list[str]:
        """Who got a slot, in order."""
        next_at = {who: self.now + every for who, every in self.every.items()}
        while self.ledger.tickets and self.now < until:
            who = min(next_at, key=lambda name: next_at[name])
            self.now = max(self.now, next_at[who])
            next_at[who] = self.now + self.every[who]
            self._free()
            self._ask(who)
        return self.order

    def _free(self) -> None:
        if self.running is not None and self.now >= self.began + LASTS:
            ended_at = self.began + LASTS
            self.ledger = end(self.ledger, self.running, ended_at) or self.ledger
            self.running = None

    def _ask(self, who: str) -> None:
        seen = situation(self.now, gate_free_since=self.began)
        for search, ticket in self.ledger.tickets.items():
            if ticket.submitter != who:
                continue
            outcome = reserve(self.ledger, Attempt(search, 1, who), seen, TIMINGS)
            if isinstance(outcome, Reserved):
                self.ledger, self.running, self.began = outcome.ledger, search, self.now
                self.order.append(search)
                return


def alternating(pairs: int) -> Ledger:
    """Tickets of two submitters in turn, all of one user."""
    ledger = new_ledger(ceiling=1)
    for number in range(pairs):
        ledger = queued(ledger, f"slow{number}", submitter=OTHER)
        ledger = queued(ledger, f"fast{number}", submitter=ME)
    return ledger


def test_a_submitter_that_looks_often_does_not_overtake_one_that_looks_once_a_turn() -> None:
    """Fault Q1."""
    ledger = alternating(5)
    every = {ME: seconds(0.01), OTHER: seconds(0.9)}

    assert Cadences(ledger, every).run(NOW + seconds(60)) == list(ledger.tickets)


@given(fast=st.integers(20, 999), slow=st.integers(20, 999))
def test_one_order_holds_for_all_who_look_within_their_turn(fast: int, slow: int) -> None:
    """Fault Q1."""
    ledger = alternating(4)
    every = {ME: timedelta(milliseconds=fast), OTHER: timedelta(milliseconds=slow)}

    assert Cadences(ledger, every).run(NOW + seconds(60)) == list(ledger.tickets)


def test_a_submitter_that_looks_too_seldom_for_its_turn_is_not_passed_over_for_ever() -> None:
    """Faults Q1 and Q3."""
    ledger = alternating(1)
    for number in range(1, 9):
        ledger = queued(ledger, f"fast{number}", submitter=ME)

    order = Cadences(ledger, {ME: seconds(0.05), OTHER: seconds(17)}).run(NOW + seconds(300))

    assert order[: TIMINGS.passes] == ["fast0", "fast1", "fast2"]
    assert order[TIMINGS.passes] == "slow0"
    assert len(order) == 10


def test_a_head_that_never_claims_costs_a_second_each_time_and_a_long_turn_now_and_then() -> None:
    """Fault Q3."""
    ledger = queued(new_ledger(ceiling=1), "dead", submitter=OTHER)
    ledger = queued(ledger, *[f"s{number}" for number in range(7)])

    cadences = Cadences(ledger, {ME: seconds(0.05)})
    order = cadences.run(NOW + TIMINGS.patient_turn + 7 * (TIMINGS.turn + seconds(0.4)))

    assert order == [f"s{number}" for number in range(7)]
    assert list(cadences.ledger.tickets) == ["dead"]
    assert cadences.ledger.tickets["dead"].sequence == 1


def test_a_waiting_search_has_its_turn_at_the_moment_a_slot_falls_free() -> None:
    """Fault Q2."""
    ledger = queued(new_ledger(ceiling=1), "s1", "s2")
    taken = reserve(ledger, Attempt("s1", 1, ME), situation(), TIMINGS)
    assert isinstance(taken, Reserved)
    later = NOW + seconds(100)

    freed = end(taken.ledger, "s1", later)

    assert freed is not None
    assert isinstance(turn(taken.ledger, "s2", situation(later), TIMINGS), Waiting)
    assert turn(freed, "s2", situation(later), TIMINGS) == Turn(1)


MOVES: Final[tuple[Callable[[Ledger, datetime], Ledger | None], ...]] = (
    lambda ledger, now: ledger,
    lambda ledger, now: change_policy(ledger, "root", now, ceiling=0),
    lambda ledger, now: park(ledger, "s1", "root", now),
    lambda ledger, now: unpark(ledger, "s1", now),
    lambda ledger, now: block(ledger, "s1", "waiting_for_database", now),
    lambda ledger, now: block(ledger, "s1", None, now),
    lambda ledger, now: change_policy(ledger, "root", now, ceiling=1),
)


def test_asking_in_vain_changes_nothing_however_often_and_for_whatever_reason() -> None:
    """Faults Q7 and Q8."""
    before = queued(new_ledger(ceiling=1), "s1")
    ledger, denials = before, set()
    for number in range(40):
        at = NOW + number * seconds(30)
        for move in MOVES:
            ledger = move(ledger, at) or ledger
            seen = situation(at, running=["foreign"])
            outcome = reserve(ledger, Attempt("s1", number + 1, ME), seen, TIMINGS)
            assert isinstance(outcome, Waiting)
            denials.add(outcome.reason)

    assert denials == {Reason.CAPACITY, Reason.DRAINED, Reason.PARKED, Reason.BLOCKED}
    assert ledger.tickets == before.tickets
    assert ledger.fence == before.fence
