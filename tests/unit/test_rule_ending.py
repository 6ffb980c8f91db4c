"""When a run slot is free again without a word from whoever held it."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from admission_stage import ME, NOW, OTHER, TIMINGS, new_ledger, queued, seconds
from shared_stage import census, held, job, marks, merging, running, seen, watched

from blastyard.admission.census import UNLABELLED
from blastyard.admission.ending import (
    ended,
    forsaken,
    left_complete,
    overdue,
    retired,
    settled,
    take_up,
    unseen,
)
from blastyard.admission.hold import (
    Attempt,
    Reserved,
    Submission,
    confirm,
    fail,
    give_up,
    reserve,
    turn_to_resume,
)
from blastyard.admission.ledger import Fence, HoldState, Ledger
from blastyard.admission.order import Turn
from blastyard.admission.outcome import Reason, Refused, Waiting

SETTLED = NOW + TIMINGS.settle
ALMOST = SETTLED - seconds(1)
HOURS = TIMINGS.forgotten


def fence_of(ledger: Ledger, search: str) -> Fence:
    return Fence(ledger.uid, ledger.holds[search].fence)


def failed(ledger: Ledger, search: str = "s1") -> Ledger:
    after = fail(ledger, search, fence_of(ledger, search), NOW)
    assert isinstance(after, Ledger)
    return after


def reservation() -> Ledger:
    return held(new_ledger(1), "s1", state=HoldState.RESERVED)


# -- what the cluster shows ------------------------------------------------------------------------


def test_a_submitted_search_that_is_not_seen_ends_after_settle_and_not_sooner() -> None:
    """Fault B1; clause: submitted, nothing seen: after settle."""
    ledger = watched(new_ledger(), "s1")

    assert ended(ledger, census(), ALMOST, TIMINGS) == frozenset()
    assert ended(ledger, census(), SETTLED, TIMINGS) == {"s1"}


def test_a_search_whose_finalizer_was_seen_to_end_has_ended_at_once() -> None:
    ledger = watched(new_ledger(), "s1")

    assert ended(ledger, census([job("s1", live=False)]), NOW, TIMINGS) == {"s1"}
    assert ended(ledger, census(finished={"s1"}), NOW, TIMINGS) == {"s1"}
    assert ended(ledger, census([job("s1", "blast", live=False)]), NOW, TIMINGS) == frozenset()


@pytest.mark.parametrize(
    "jobs",
    [
        running("s1"),
        merging("s1"),
        [job("s1", "blast")],
        [job("s1", live=False), job("s1", "blast")],
        [job("s1", live=False), job("s1")],
    ],
    ids=["at work", "merging", "no finalizer yet", "blast Jobs left", "made anew"],
)
def test_what_is_seen_alive_has_not_ended_however_long_it_takes(jobs: list[object]) -> None:
    """Faults B2 and B4."""
    ledger = watched(new_ledger(), "s1")
    found = census(jobs)  # type: ignore[arg-type]

    assert ended(ledger, found, NOW + timedelta(days=9), TIMINGS) == frozenset()


def test_a_search_under_another_id_ends_with_that_id() -> None:
    ledger = watched(new_ledger(), "s1", alias="job-1")

    assert ended(ledger, census(running("job-1")), SETTLED, TIMINGS) == frozenset()
    assert ended(ledger, census(running("s1")), SETTLED, TIMINGS) == {"s1"}
    assert ended(ledger, census(finished={"job-1"}), NOW, TIMINGS) == {"s1"}
    assert ended(ledger, census(finished={"s1"}), NOW, TIMINGS) == frozenset()


def test_its_markers_do_not_keep_an_ended_search_alive() -> None:
    """Fault B16."""
    ledger = watched(new_ledger(), "s1")

    assert ended(ledger, census(marks("s1", ledger.holds["s1"])), SETTLED, TIMINGS) == {"s1"}


@pytest.mark.parametrize(
    ("what", "ledger"),
    [
        ("only reserved", held(new_ledger(), "s1", watched=True, state=HoldState.RESERVED)),
        ("not to be seen in the cluster", held(new_ledger(), "s1")),
    ],
)
def test_what_the_cluster_cannot_show_does_not_end_by_it(what: str, ledger: Ledger) -> None:
    """Faults B11 and B20: a parent between two children is seen by nobody."""
    found = census(finished={"s1"})

    assert ended(ledger, found, SETTLED, TIMINGS) == frozenset(), what
    assert retired(ledger, found, SETTLED, TIMINGS) is ledger


def test_what_has_ended_is_taken_out_and_the_head_of_the_queue_has_its_turn() -> None:
    """Fault B11."""
    ledger = queued(watched(watched(new_ledger(2), "s1"), "s2"), "s3")
    later = NOW + seconds(5)

    after = retired(ledger, census(running("s2"), finished={"s1"}), later, TIMINGS)

    assert list(after.holds) == ["s2"]
    assert after.turn_at == later
    assert after.tickets == ledger.tickets


# -- what is asked for -----------------------------------------------------------------------------


def test_only_what_is_not_seen_and_not_known_to_have_ended_is_asked_for() -> None:
    ledger = watched(new_ledger(9), "gone")
    ledger = watched(watched(ledger, "alive"), "over")
    ledger = watched(ledger, "s1", alias="job-1")
    ledger = held(ledger, "own")
    ledger = held(ledger, "early", watched=True, state=HoldState.RESERVED)

    found = census([*running("alive"), job("over", live=False)])

    assert unseen(ledger, found) == {"gone", "job-1"}


def test_a_search_without_an_id_is_not_asked_for() -> None:
    """No label says that it has none, and a server refuses the question."""
    assert unseen(watched(new_ledger(), "s1", alias=UNLABELLED), census()) == frozenset()


# -- commands that failed --------------------------------------------------------------------------


def test_the_slot_of_a_failed_command_is_kept_for_settle_and_then_named_with_its_fence() -> None:
    """Clause: keep the hold reserved for settle, since a create that timed out may still land."""
    ledger = failed(held(reservation(), "s2"))

    assert settled(ledger, ALMOST, TIMINGS) == {}
    assert settled(ledger, SETTLED, TIMINGS) == {"s1": ("s1", ledger.holds["s1"].fence)}
    assert ledger.holds["s1"].state is HoldState.RESERVED


@pytest.mark.parametrize("number", [1, 2], ids=["the same attempt", "the next attempt"])
def test_a_failed_hold_is_not_resumed_before_settle(number: int) -> None:
    """Fault B19; clause: keep it reserved for settle, delete once more, then submit anew."""
    ledger = failed(reservation())

    told = reserve(ledger, Attempt("s1", number, ME), seen(now=ALMOST), TIMINGS)

    assert isinstance(told, Waiting)
    assert (told.reason, told.until) == (Reason.SUBMIT_SLOT, SETTLED)
    assert turn_to_resume(ledger, "s1", seen(now=ALMOST), TIMINGS) == told
    assert turn_to_resume(ledger, "s1", seen(now=SETTLED), TIMINGS) == Turn(0)
    again = reserve(ledger, Attempt("s1", number, ME), seen(now=SETTLED), TIMINGS)
    assert isinstance(again, Reserved)
    assert again.granted.fence.number == ledger.fence + 1
    assert again.ledger.holds["s1"].failed_at is None
    assert settled(again.ledger, SETTLED, TIMINGS) == {}


def test_a_failed_hold_that_was_resumed_is_not_given_up_by_who_looked_before() -> None:
    """Clause: raise the fence in the same swap."""
    ledger = failed(reservation())
    (_, fence), *_ = settled(ledger, SETTLED, TIMINGS).values()
    resumed = reserve(ledger, Attempt("s1", 2, ME), seen(now=SETTLED), TIMINGS)
    assert isinstance(resumed, Reserved)

    assert give_up(resumed.ledger, "s1", fence, SETTLED) is None
    gone = give_up(ledger, "s1", fence, SETTLED)
    assert gone is not None
    assert gone.holds == {}


def test_to_fail_again_does_not_start_settle_again() -> None:
    ledger = failed(reservation())

    assert fail(ledger, "s1", fence_of(ledger, "s1"), ALMOST) is None


def test_who_has_lost_its_grant_can_neither_fail_nor_confirm_it() -> None:
    """Fault A10; clause: a fence is the pair of uid and number."""
    ledger = reservation()
    number = ledger.holds["s1"].fence

    for stale in (Fence("uid-0", number), Fence("uid-1", number - 1)):
        assert isinstance(fail(ledger, "s1", stale, NOW), Refused)
        assert isinstance(confirm(ledger, "s1", stale, NOW, Submission()), Refused)


def test_a_complete_submission_is_neither_failed_nor_cleared_away_later() -> None:
    """What runs must not be deleted because an earlier word about it comes late."""
    ledger = reservation()
    fence = fence_of(ledger, "s1")
    complete = confirm(ledger, "s1", fence, NOW, Submission())
    assert isinstance(complete, Ledger)
    late = confirm(failed(ledger), "s1", fence, NOW, Submission())
    assert isinstance(late, Ledger)

    assert isinstance(fail(complete, "s1", fence, NOW), Refused)
    assert late.holds["s1"].failed_at is None
    spoiled = msgspec.structs.replace(complete.holds["s1"], failed_at=NOW)
    spoilt = msgspec.structs.replace(complete, holds={"s1": spoiled})
    for each in (complete, late, spoilt):
        assert settled(each, SETTLED, TIMINGS) == {}


def test_what_a_command_made_besides_has_holds_of_its_own_with_fences_of_their_own() -> None:
    """Clause: a hold remembers the ticket it came from, and each fence is granted once."""
    ledger = reservation()
    made = Submission("job-1", ("job-2", "job-3"))

    after = confirm(ledger, "s1", fence_of(ledger, "s1"), SETTLED, made)

    assert isinstance(after, Ledger)
    assert {name: hold.alias for name, hold in after.holds.items()} == {
        "s1": "job-1",
        "job-2": None,
        "job-3": None,
    }
    fences = [hold.fence for hold in after.holds.values()]
    assert len(set(fences)) == 3
    assert after.fence == max(fences)
    assert all(
        hold.watched and hold.state is HoldState.SUBMITTED and hold.since == SETTLED
        for hold in after.holds.values()
    )


# -- submitters that are gone ----------------------------------------------------------------------


LIMIT = timedelta(seconds=660)


def test_a_reservation_of_a_silent_submitter_is_overdue_after_660_s_and_an_empty_census() -> None:
    """Fault B11; clause: exec time-out + takeover + skew, and an empty census for its id."""
    ledger = held(new_ledger(), "s1", state=HoldState.RESERVED, alias="job-1")
    fences = {"s1": ledger.holds["s1"].fence}
    late = NOW + LIMIT

    assert overdue(ledger, {ME: LIMIT}, seen(now=late), TIMINGS) == fences
    assert overdue(ledger, {ME: LIMIT}, seen(now=late - seconds(1)), TIMINGS) == {}
    assert overdue(ledger, {ME: LIMIT - seconds(1)}, seen(now=late), TIMINGS) == {}
    assert overdue(ledger, {ME: LIMIT}, seen(running("job-1"), late), TIMINGS) == {}
    assert overdue(ledger, {ME: LIMIT}, seen([job("job-1", "submit")], late), TIMINGS) == {}
    assert overdue(ledger, {OTHER: LIMIT}, seen(now=late), TIMINGS) == fences


def test_what_only_its_submitter_could_end_is_forsaken_after_2_h_of_silence() -> None:
    """Clause: lapsed for 2 h and nothing of the family in the census."""
    ledger = held(new_ledger(), "p")
    late = NOW + HOURS

    assert forsaken(ledger, {ME: HOURS}, seen(now=late), TIMINGS) == {"p"}
    assert forsaken(ledger, {}, seen(now=late), TIMINGS) == {"p"}
    assert forsaken(ledger, {ME: HOURS - seconds(1)}, seen(now=late), TIMINGS) == frozenset()
    assert forsaken(ledger, {}, seen(now=late - seconds(1)), TIMINGS) == frozenset()
    assert forsaken(ledger, {}, seen(merging("p"), late), TIMINGS) == frozenset()


def test_a_parent_is_not_forsaken_while_anything_of_its_family_is_seen() -> None:
    """Fault B20; clause: nothing of the family is in the census."""
    ledger = held(held(new_ledger(), "p"), "c1", family="p", alias="job-1", watched=True)
    late = NOW + HOURS

    assert forsaken(ledger, {}, seen(running("job-1"), late), TIMINGS) == frozenset()
    assert forsaken(ledger, {}, seen(running("foreign"), late), TIMINGS) == {"p"}


@pytest.mark.parametrize(
    "changes", [{"watched": True}, {"state": HoldState.RESERVED}], ids=["watched", "reserved"]
)
def test_what_ends_by_other_rules_is_not_forsaken(changes: dict[str, object]) -> None:
    ledger = held(new_ledger(), "s1", **changes)

    assert forsaken(ledger, {}, seen(now=NOW + HOURS), TIMINGS) == frozenset()


def test_a_clock_that_was_put_back_ends_nothing_early() -> None:
    earlier = seen(now=NOW - timedelta(hours=3))
    ledger = failed(held(watched(reservation(), "s2"), "s3"))

    assert ended(ledger, census(), earlier.now, TIMINGS) == frozenset()
    assert settled(ledger, earlier.now, TIMINGS) == {}
    assert overdue(ledger, {}, earlier, TIMINGS) == {}
    assert forsaken(ledger, {}, earlier, TIMINGS) == frozenset()


def test_a_complete_submission_of_somebody_who_is_gone_goes_on_alone() -> None:
    """Adopt only what is complete: the finalizer is there."""
    ledger = held(new_ledger(), "s1", state=HoldState.RESERVED)
    later = NOW + TIMINGS.takeover + TIMINGS.skew
    silent = {ME: TIMINGS.takeover + TIMINGS.skew}
    fence = ledger.holds["s1"].fence

    assert left_complete(ledger, silent, seen(running("s1"), later), TIMINGS) == {"s1": fence}
    assert left_complete(ledger, silent, seen([job("s1", "submit")], later), TIMINGS) == {}
    assert left_complete(ledger, {ME: timedelta(0)}, seen(running("s1"), later), TIMINGS) == {}
    after = take_up(ledger, "s1", fence, later)
    assert after is not None
    assert (after.holds["s1"].state, after.holds["s1"].watched) == (HoldState.SUBMITTED, True)
    assert take_up(after, "s1", fence, later) is None
