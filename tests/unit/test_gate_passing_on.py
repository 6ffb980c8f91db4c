"""One stay inside Gate A that goes on with the next search of the same process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec
import pytest
from admission_stage import ME, OTHER, TIMINGS, Yard, inside, scripted, wish

from blastyard.admission.census import Census
from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt, Submission
from blastyard.admission.lease import SubmitLease
from blastyard.admission.ledger import HoldState
from blastyard.admission.outcome import Granted, Reason, Waiting
from blastyard.admission.port import LEASE, LEDGER
from blastyard.admission.stay import Stay
from blastyard.domain.errors import Unavailable
from blastyard.testing.faulty import Fault


class Seen:
    """What a cluster shows; counts how often it is asked."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.ended: set[str] = set()
        self.reads = 0

    def read(self, *, urgent: bool = False) -> Census:
        self.reads += 1
        return self.later(Census(frozenset(self.running)))

    def glance(self) -> Census:
        return self.later(Census(frozenset(self.running)))

    def later(self, census: Census) -> Census:
        return replace(census, finished=frozenset(self.ended) - census.families)

    def finished(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(names) & self.ended

    def end(self, search: str) -> None:
        self.running.discard(search)
        self.ended.add(search)


def holder(yard: Yard) -> str:
    return msgspec.json.decode(yard.lease_body(), type=SubmitLease).holder_identity


def granted(stay: Stay, search: str) -> Granted:
    outcome = stay.reserve(Attempt(search, 1, ME), stands_in=False)
    assert isinstance(outcome, Granted), outcome
    return outcome


def passed_on(gate: Gate, stay: Stay, search: str) -> Stay:
    after = gate.pass_on(stay, search, 1)
    assert after is not None
    return after


def test_nobody_gets_in_between_and_the_lease_names_who_is_at_work() -> None:
    yard = Yard(ceiling=2)
    gate, other = yard.gate(), yard.gate(OTHER)
    gate.publish([wish("s1"), wish("s2")])
    other.publish([wish("s3")])
    stay = inside(gate, "s1")
    granted(stay, "s1")

    assert gate.following(stay) == "s2"
    after = passed_on(gate, stay, "s2")

    assert holder(yard) == "blastyard-s2-1"
    assert isinstance(other.enter("s3", 1), Waiting)
    granted(after, "s2")
    gate.leave(after)
    assert holder(yard) == ""
    assert gate.ledger().holds.keys() == {"s1", "s2"}


def test_a_search_of_somebody_else_is_not_overtaken() -> None:
    yard = Yard(ceiling=3)
    gate, other = yard.gate(), yard.gate(OTHER)
    gate.publish([wish("s1")])
    other.beat()
    other.publish([wish("s2")])
    gate.publish([wish("s3")])
    stay = inside(gate, "s1")
    granted(stay, "s1")

    assert gate.following(stay) is None


def test_nobody_follows_where_there_is_no_room() -> None:
    gate = Yard(ceiling=1).gate()
    gate.publish([wish("s1"), wish("s2")])
    stay = inside(gate, "s1")
    granted(stay, "s1")

    assert gate.following(stay) is None


def test_gate_a_is_not_kept_for_longer_than_a_beat() -> None:
    yard = Yard(ceiling=3)
    gate = yard.gate()
    gate.publish([wish(f"s{number}") for number in range(1, 4)])
    stay = inside(gate, "s1")
    granted(stay, "s1")
    yard.clock.leap(TIMINGS.beat.total_seconds() / 2)
    stay = passed_on(gate, stay, "s2")
    granted(stay, "s2")
    assert gate.following(stay) == "s3"

    yard.clock.leap(TIMINGS.beat.total_seconds() / 2)

    assert gate.following(stay) is None


def test_passing_on_is_a_sign_of_life_and_moves_the_deadline() -> None:
    yard = Yard(ceiling=2)
    gate = yard.gate()
    gate.publish([wish("s1"), wish("s2")])
    stay = inside(gate, "s1")
    granted(stay, "s1")
    yard.clock.leap(5.0)

    assert passed_on(gate, stay, "s2").deadline == stay.deadline + 5.0


def test_a_confirmation_rides_on_the_next_reservation() -> None:
    _, script, gate = scripted(ceiling=2)
    gate.publish([wish("s1"), wish("s2")])
    stay = inside(gate, "s1")
    fence = granted(stay, "s1").fence
    before = script.calls["swap", LEDGER]

    stay.confirm_later("s1", fence, Submission(marked=True))
    granted(passed_on(gate, stay, "s2"), "s2")

    assert script.calls["swap", LEDGER] == before + 1
    holds = gate.ledger().holds
    assert (holds["s1"].state, holds["s1"].watched) == (HoldState.SUBMITTED, True)
    assert holds["s2"].state is HoldState.RESERVED


def test_a_confirmation_is_written_though_the_next_search_is_denied() -> None:
    seen = Seen()
    yard = Yard(ceiling=2)
    gate = yard.gate(census=seen)
    gate.publish([wish("s1"), wish("s2")])
    stay = inside(gate, "s1")
    stay.confirm_later("s1", granted(stay, "s1").fence, Submission(marked=True))
    after = passed_on(gate, stay, "s2")
    gate.change_policy("root", ceiling=1)

    outcome = after.reserve(Attempt("s2", 1, ME), stands_in=False)

    assert isinstance(outcome, Waiting)
    assert gate.ledger().holds["s1"].state is HoldState.SUBMITTED


def test_a_confirmation_that_nothing_took_along_is_written_on_leaving() -> None:
    gate = Yard(ceiling=2).gate()
    gate.publish([wish("s1")])
    stay = inside(gate, "s1")

    stay.confirm_later("s1", granted(stay, "s1").fence, Submission(marked=True))
    gate.leave(stay)

    assert gate.ledger().holds["s1"].state is HoldState.SUBMITTED


def test_one_census_serves_while_gate_a_is_passed_on_and_ends_make_room() -> None:
    seen = Seen()
    gate = Yard(ceiling=2).gate(census=seen)
    gate.publish([wish(f"s{number}") for number in range(1, 4)])
    seen.reads = 0
    stay = inside(gate, "s1")
    for search, following in (("s1", "s2"), ("s2", "s3")):
        stay.confirm_later(search, granted(stay, search).fence, Submission(marked=True))
        seen.end(search)
        stay = passed_on(gate, stay, following)
    granted(stay, "s3")

    assert seen.reads == 1
    assert gate.ledger().holds.keys() == {"s3"}, "the others were submitted, and have ended"


def test_whoever_finds_no_room_in_the_first_census_looks_again() -> None:
    seen = Seen()
    seen.running = {"foreign"}
    gate = Yard(ceiling=2).gate(census=seen)
    gate.publish([wish("s1"), wish("s2")])
    seen.reads = 0
    stay = inside(gate, "s1")
    stay.confirm_later("s1", granted(stay, "s1").fence, Submission(marked=True))
    seen.end("foreign")

    granted(passed_on(gate, stay, "s2"), "s2")

    assert seen.reads == 2


def test_a_foreign_search_that_is_in_no_list_yet_is_seen_by_the_next_stay() -> None:
    seen = Seen()
    gate = Yard(ceiling=1).gate(census=seen)
    gate.publish([wish("s1")])
    seen.running = {"foreign"}

    stay = inside(gate, "s1")

    outcome = stay.reserve(Attempt("s1", 1, ME), stands_in=False)
    assert isinstance(outcome, Waiting)
    assert outcome.reason is Reason.CAPACITY


def test_a_lost_answer_is_asked_for_again() -> None:
    yard, script, gate = scripted(ceiling=2)
    gate.publish([wish("s1"), wish("s2")])
    stay = inside(gate, "s1")
    granted(stay, "s1")
    script.then("swap", LEASE, Fault.LOST_ANSWER)

    after = gate.pass_on(stay, "s2", 1)

    assert after is not None
    assert holder(yard) == "blastyard-s2-1"


def test_a_lease_that_may_be_ours_under_either_name_is_released_later() -> None:
    yard, script, gate = scripted(ceiling=2)
    gate.publish([wish("s1"), wish("s2")])
    stay = inside(gate, "s1")
    stay.confirm_later("s1", granted(stay, "s1").fence, Submission())
    script.always("swap", LEASE, Fault.LOST_ANSWER)

    with pytest.raises(Unavailable):
        gate.pass_on(stay, "s2", 1)
    assert holder(yard) == "blastyard-s2-1"

    script.heal()
    gate.beat()
    assert holder(yard) == ""
    assert gate.ledger().holds["s1"].state is HoldState.SUBMITTED


def test_a_lease_that_somebody_else_took_is_not_passed_on() -> None:
    yard = Yard(ceiling=2)
    gate = yard.gate()
    gate.publish([wish("s1"), wish("s2")])
    stay = inside(gate, "s1")
    granted(stay, "s1")
    yard.write(LEASE, msgspec.json.encode(SubmitLease("dashboard-1", 900, None, None)))

    assert gate.pass_on(stay, "s2", 1) is None
    assert holder(yard) == "dashboard-1"


def test_a_beat_renews_the_stay_that_goes_on_and_no_other() -> None:
    yard = Yard(ceiling=2)
    gate = yard.gate()
    gate.publish([wish("s1"), wish("s2")])
    stay = inside(gate, "s1")
    granted(stay, "s1")
    after = passed_on(gate, stay, "s2")
    yard.clock.leap(5.0)

    gate.beat()

    assert after.deadline > stay.deadline
    assert after.is_trusted
