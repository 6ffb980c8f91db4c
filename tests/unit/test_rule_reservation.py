"""One decision inside Gate A of a shared namespace."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from admission_stage import ME, NOW, TIMINGS, new_ledger, queued, seconds, wish
from hypothesis import given
from hypothesis import strategies as st
from shared_stage import held, marks, merging, running, seen, watched

from blastyard.admission.census import SeenJob, occupied
from blastyard.admission.courtesy import owe
from blastyard.admission.hold import (
    Attempt,
    Submission,
    confirm,
    flag_cancelled,
    turn_to_resume,
)
from blastyard.admission.ledger import Fence, HoldState, Ledger
from blastyard.admission.order import Situation
from blastyard.admission.outcome import Granted, Reason, Refused, Waiting
from blastyard.admission.reservation import brought_up, decide
from blastyard.admission.ticket import change_policy, newest_policy

HOURS = TIMINGS.forgotten
FIRST = Attempt("s1", 1, ME)
SECOND = Attempt("s1", 2, ME)


def asked(
    ledger: Ledger, situation: Situation, attempt: Attempt = FIRST
) -> tuple[Ledger, Granted | Waiting | Refused]:
    return decide(ledger, attempt, situation, TIMINGS, shared=True)


def reason(told: object) -> Reason | None:
    return told.reason if isinstance(told, Waiting) else None


def test_a_slot_is_granted_only_while_holds_and_foreign_searches_leave_one() -> None:
    """Faults B8 and B17; clause: the union of families + 1 ≤ ceiling."""
    ledger = queued(watched(new_ledger(3), "h", alias="job-h"), "s1")

    after, told = asked(ledger, seen(running("job-h", "foreign")))
    assert isinstance(told, Granted)
    assert list(after.holds) == ["h", "s1"]
    assert after.tickets == {}
    denied, told = asked(ledger, seen(running("job-h", "foreign", "another")))
    assert reason(told) is Reason.CAPACITY
    assert denied is ledger


def test_what_has_ended_is_retired_in_the_swap_that_grants_its_slot() -> None:
    """Clause: retiring a hold rides on the next swap."""
    ledger = queued(watched(new_ledger(1), "h"), "s1")

    after, told = asked(ledger, seen(finished={"h"}))

    assert isinstance(told, Granted)
    assert list(after.holds) == ["s1"]


def test_a_denial_that_retired_something_is_written_all_the_same() -> None:
    ledger = queued(watched(new_ledger(1), "h"), "s1")

    after, told = asked(ledger, seen(running("foreign"), finished={"h"}))

    assert reason(told) is Reason.CAPACITY
    assert after.holds == {}


def test_a_lone_finalizer_is_remembered_even_by_who_is_denied_because_of_it() -> None:
    """Fault B3; clause: counted until 2 h alone."""
    ledger = queued(new_ledger(1), "s1")

    noted, told = asked(ledger, seen(merging("f")))
    assert reason(told) is Reason.CAPACITY
    assert noted.lone == {"f": NOW}
    again, told = asked(noted, seen(merging("f"), NOW + seconds(60)))
    assert again is noted
    late, told = asked(noted, seen(merging("f"), NOW + HOURS))
    assert isinstance(told, Granted)
    assert late.lone == {"f": NOW}


def test_the_slot_of_a_phantom_is_a_free_slot_and_no_more_than_one() -> None:
    """Fault B3."""
    ledger = queued(new_ledger(1), "s1")
    situation = seen([*merging("f"), *running("g")], deserted={"f", "g"})

    assert reason(asked(ledger, situation)[1]) is Reason.CAPACITY
    assert isinstance(asked(ledger, seen(merging("f"), deserted={"f"}))[1], Granted)


def test_the_markers_of_our_own_holds_take_no_second_slot() -> None:
    """Clause: our census ignores markers."""
    ledger = queued(watched(new_ledger(2), "h"), "s1")
    jobs = [*running("h"), *marks("h", ledger.holds["h"])]

    assert isinstance(asked(ledger, seen(jobs))[1], Granted)


def test_on_one_machine_nothing_of_a_shared_namespace_is_written() -> None:
    ledger = queued(new_ledger(1), "s1")

    after, told = decide(ledger, FIRST, seen(), TIMINGS, shared=False)

    assert isinstance(told, Granted)
    assert after.courtesy == ledger.courtesy
    assert after.lone == {}


def test_the_same_attempt_is_granted_the_same_and_nothing_is_written() -> None:
    """Fault A1."""
    once, granted = asked(queued(new_ledger(1), "s1"), seen())

    again, told = asked(once, seen(running("foreign"), NOW + seconds(3)))

    assert told == granted
    assert again is once


def test_who_resumes_is_counted_anew_and_gets_its_fence_in_the_same_swap() -> None:
    """Fault B19; clause: recount on resume, and raise the fence in the same swap."""
    ledger = held(new_ledger(1), "s1", state=HoldState.RESERVED)
    before = ledger.holds["s1"]

    denied, told = asked(ledger, seen(running("foreign")), SECOND)
    assert reason(told) is Reason.CAPACITY
    assert denied is ledger

    after, told = asked(ledger, seen(running("s1")), SECOND)
    assert told == Granted(Fence(ledger.uid, ledger.fence + 1))
    hold = after.holds["s1"]
    assert (hold.fence, hold.attempt, after.fence) == (ledger.fence + 1, 2, ledger.fence + 1)
    assert hold.ticket == before.ticket, "its sequence, priority and user are kept"
    assert after.courtesy.used_at == NOW, "resuming is use of Gate A, too"


def test_a_resumption_is_not_stopped_by_a_phantom() -> None:
    """Faults B3 and B19."""
    ledger = held(new_ledger(1), "s1", state=HoldState.RESERVED)

    assert isinstance(asked(ledger, seen(merging("f"), deserted={"f"}), SECOND)[1], Granted)


@pytest.mark.parametrize("ceiling", [0, -1])
def test_a_ceiling_that_lets_nobody_in_is_said_to_whoever_waits_or_resumes(ceiling: int) -> None:
    """Fault B9; clause: ceiling 0 is drained, said so."""
    waiting = queued(new_ledger(ceiling), "s1")
    reserved = held(new_ledger(ceiling), "s1", state=HoldState.RESERVED)

    for ledger, attempt in ((waiting, FIRST), (reserved, SECOND)):
        after, told = asked(ledger, seen(), attempt)
        assert reason(told) is Reason.DRAINED
        assert after is ledger
    assert reason(turn_to_resume(reserved, "s1", seen(), TIMINGS)) is Reason.DRAINED


def test_nothing_is_decided_or_retired_on_a_ledger_that_is_being_restored() -> None:
    """Fault B14; clause: nobody is admitted until all have restored their claims."""
    ledger = queued(watched(new_ledger(3), "h"), "s1")
    ledger = held(ledger, "s2", state=HoldState.RESERVED)
    lost = msgspec.structs.replace(owe(ledger, NOW) or ledger, restored=())
    situation = seen(merging("f"), NOW + HOURS, finished={"h"})

    assert brought_up(lost, situation, TIMINGS, shared=True) is lost
    for attempt in (FIRST, Attempt("s2", 1, ME), Attempt("s2", 2, ME)):
        after, told = asked(lost, situation, attempt)
        assert reason(told) is Reason.RESTORING
        assert after is lost
    assert reason(turn_to_resume(lost, "s2", situation)) is Reason.RESTORING


def test_a_cancelled_reservation_is_not_resumed() -> None:
    """Fault B11."""
    ledger = flag_cancelled(held(new_ledger(3), "s1", state=HoldState.RESERVED), "s1")
    assert ledger is not None

    assert isinstance(asked(ledger, seen(), SECOND)[1], Refused)


def test_a_new_policy_counts_from_the_next_decision_on() -> None:
    """Fault B10."""
    ledger = queued(watched(new_ledger(1), "h"), "s1")
    raised = change_policy(ledger, "root", NOW, ceiling=2)
    assert raised is not None

    assert reason(asked(ledger, seen(running("h")))[1]) is Reason.CAPACITY
    assert isinstance(asked(raised, seen(running("h")))[1], Granted)
    assert newest_policy(ledger.policy, [raised.policy, ledger.policy]) == raised.policy


def test_a_clock_that_was_put_back_keeps_what_runs_and_still_admits() -> None:
    ledger = queued(watched(new_ledger(2), "h"), "s1")
    earlier = NOW - timedelta(hours=2)

    after, told = asked(ledger, seen(running("h"), earlier))

    assert isinstance(told, Granted)
    assert set(after.holds) == {"h", "s1"}


NAMES = ("a", "b", "c", "d")
STEPS = st.tuples(
    st.sampled_from(("ask", "ask", "resume", "confirm", "appear", "end")),
    st.sampled_from(NAMES),
    st.integers(0, 90),
)


class Namespace:
    """A ledger, and what runs; every decision is checked against what runs then."""

    def __init__(self, ceiling: int) -> None:
        self.ledger = queued(new_ledger(ceiling), *[wish(name) for name in NAMES])
        self.alive: dict[str, list[SeenJob]] = {}
        self.now = NOW
        self.attempts = 0

    def step(self, what: str, name: str) -> None:
        self.attempts += 1
        match what:
            case "appear":
                self._run(f"foreign-{self.attempts}")
            case "end":
                self.alive.pop(next(iter(self.alive), ""), None)
            case "confirm" if name in self.ledger.holds:
                fence = Fence(self.ledger.uid, self.ledger.holds[name].fence)
                after = confirm(self.ledger, name, fence, self.now, Submission())
                self.ledger = after if isinstance(after, Ledger) else self.ledger
                self._run(name)
            case "ask" | "resume":
                self._decide(Attempt(name, self.attempts if what == "resume" else 1, ME))

    def _run(self, name: str) -> None:
        self.alive[name] = running(name, at=self.now)

    def _decide(self, attempt: Attempt) -> None:
        before = self.ledger
        situation = seen([job for jobs in self.alive.values() for job in jobs], self.now)
        self.ledger, told = asked(before, situation, attempt)
        if self.ledger.fence == before.fence:
            return
        assert told == Granted(Fence(self.ledger.uid, before.fence + 1))
        resumed = attempt.search in before.holds
        counted = {
            name: hold
            for name, hold in self.ledger.holds.items()
            if not resumed or hold.state is HoldState.SUBMITTED or name == attempt.search
        }
        assert len(occupied(counted, situation.census)) <= self.ledger.policy.ceiling


@given(ceiling=st.integers(-1, 4), steps=st.lists(STEPS, max_size=30))
def test_no_decision_brings_what_runs_above_the_ceiling(
    ceiling: int, steps: list[tuple[str, str, int]]
) -> None:
    """Faults B8, B9 and B19; clause: at every admission, counted with all that is seen."""
    namespace = Namespace(ceiling)
    for what, name, pause in steps:
        namespace.now += seconds(pause)
        namespace.step(what, name)
