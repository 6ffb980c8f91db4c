"""Counting what runs in a namespace that is shared."""

from __future__ import annotations

from dataclasses import replace

from admission_stage import NOW, new_ledger, seconds
from hypothesis import given
from hypothesis import strategies as st
from shared_stage import census, held, job, marks, merging, running, watched

from blastyard.admission.census import (
    UNLABELLED,
    Census,
    MarkerKind,
    SeenJob,
    occupied,
    room,
    room_to_resume,
    take,
    uncovered,
)
from blastyard.admission.ledger import HoldState, Ledger

# -- what is seen ----------------------------------------------------------------------------------


def test_the_jobs_of_one_id_are_one_search() -> None:
    """Fault B8."""
    jobs = [*running("a"), job("a", "submit"), *running("b"), job("c", "blast")]

    assert take(jobs).families == {"a", "b", "c"}


def test_finalizers_without_a_label_count_one_each() -> None:
    """Clause: label-less finalizers one each."""
    found = take([job(None, uid="u1"), job(None, uid="u2"), job("", uid="u3")])

    assert found.families == {"u1", "u2", "u3"}


def test_other_jobs_without_a_label_are_one_search_together() -> None:
    """Clause: label-less blast and submit Jobs together as one."""
    found = take([job(None, "submit"), job(None, "blast"), job(None, "blast"), job(None, uid="u1")])

    assert found.families == {UNLABELLED, "u1"}
    assert not found.has_finalizer(UNLABELLED)


def test_markers_are_never_counted() -> None:
    """Clause: our census ignores markers, stand-ins and companions alike."""
    hold = held(new_ledger(), "s1", alias="job-1", watched=True).holds["s1"]
    companion, *_ = marks("s1", hold, MarkerKind.COMPANION)

    found = take([*marks("s1", hold), companion])

    assert found.families == frozenset()
    assert len(found.markers) == 3
    assert not take([*merging("job-1"), companion]).sightings["job-1"].companions


def test_what_has_ended_does_not_count_and_only_an_ended_finalizer_says_that_a_search_has() -> None:
    """Fault B4."""
    hold = held(new_ledger(), "s1").holds["s1"]
    dead = [replace(each, is_live=False) for each in marks("s1", hold)]
    found = take([job("a", live=False), job("b", "blast", live=False), *dead])

    assert found == Census(finished=frozenset({"a"}))


def test_a_search_whose_finalizer_was_made_anew_has_not_ended() -> None:
    """Fault R1."""
    assert take([job("a", live=False), job("a", "submit")]).finished == frozenset()


def test_a_sighting_says_what_there_is_and_since_when() -> None:
    early, late = NOW - seconds(9), NOW
    found = take([job("a", "blast", early), job("a", at=late), job("b", "submit", late)])

    assert (found.sightings["a"].finalizer, found.sightings["a"].companions) == (True, True)
    assert found.sightings["a"].since == early
    assert found.has_finalizer("a")
    assert not found.has_finalizer("b")
    assert not found.has_finalizer("nobody")


# -- by identity, through alias and family ---------------------------------------------------------


def test_a_search_that_runs_under_another_id_counts_once() -> None:
    """Fault B8; clause: the union by identity, through the alias."""
    ledger = watched(new_ledger(), "s1", alias="job-1")

    assert occupied(ledger.holds, census(running("job-1"))) == {"s1"}
    assert occupied(ledger.holds, census(running("job-1", "job-2"))) == {"s1", "job-2"}
    assert uncovered(ledger.holds, census(running("s1"))) == frozenset()


def test_a_family_counts_once_however_many_of_it_are_seen() -> None:
    """Clause: the union by family."""
    ledger = held(new_ledger(), "p")
    ledger = held(ledger, "c1", family="p", watched=True)
    ledger = held(ledger, "c2", family="p", watched=True, alias="job-2")

    assert occupied(ledger.holds, census(running("c1", "job-2", "p"))) == {"p"}
    orphans = {name: hold for name, hold in ledger.holds.items() if name != "p"}
    assert occupied(orphans, census(running("c1", "p"))) == {"p"}


def test_a_hold_whose_other_id_is_the_id_of_another_hold_is_not_lost() -> None:
    """Two claims are two, and what is seen belongs to one of them."""
    ledger = watched(watched(new_ledger(), "b"), "a", alias="b")
    turned = watched(watched(new_ledger(), "a", alias="b"), "b")

    for each in (ledger, turned):
        assert occupied(each.holds, census(running("b"))) == {"a", "b"}
        assert uncovered(each.holds, census(running("a", "b"))) == frozenset()


NAMES = st.sampled_from(("a", "b", "c", "d", "p"))


@st.composite
def shared_ledgers(draw: st.DrawFn) -> Ledger:
    ledger = new_ledger(ceiling=draw(st.integers(-2, 5)))
    for name in draw(st.sets(NAMES, max_size=4)):
        ledger = held(
            ledger,
            name,
            draw(st.none() | st.just("p")),
            alias=draw(st.none() | NAMES),
            watched=draw(st.booleans()),
            state=draw(st.sampled_from(HoldState)),
        )
    return ledger


@given(ledger=shared_ledgers(), names=st.sets(NAMES), ceiling=st.integers(-2, 5))
def test_room_is_never_more_than_the_ceiling_leaves_beside_all_claims(
    ledger: Ledger, names: set[str], ceiling: int
) -> None:
    """Faults B8 and B9."""
    found = census(running(*sorted(names)))
    claimed = {hold.ticket.family or name for name, hold in ledger.holds.items()}
    covered = set(ledger.holds) | {hold.alias or name for name, hold in ledger.holds.items()}
    used = len(claimed) + len(names - covered - claimed)

    assert claimed <= occupied(ledger.holds, found)
    assert len(occupied(ledger.holds, found)) == used
    assert room(ledger, found) == max(0, ledger.policy.ceiling - used)
    assert room(ledger, found) >= 0


@given(ledger=shared_ledgers(), names=st.sets(NAMES), more=NAMES)
def test_to_see_more_never_makes_more_room(ledger: Ledger, names: set[str], more: str) -> None:
    """Fault B8."""
    fewer, all_of_it = census(running(*names)), census(running(*names, more))

    assert room(ledger, all_of_it) <= room(ledger, fewer)
    for name in ledger.holds:
        if room_to_resume(ledger, all_of_it, name):
            assert room_to_resume(ledger, fewer, name)


def test_a_resumption_gives_way_to_foreign_searches_but_not_to_its_own_jobs_or_family() -> None:
    """Fault B19; clause: 1 + holds with a smaller fence + families seen that no hold covers."""
    ledger = held(new_ledger(1), "s1", state=HoldState.RESERVED, alias="job-1")

    assert room_to_resume(ledger, census(running("job-1")), "s1")
    assert not room_to_resume(ledger, census(running("foreign")), "s1")
    child = held(held(new_ledger(1), "p"), "c1", family="p", state=HoldState.RESERVED)
    assert room_to_resume(child, census(), "c1")


def test_a_resumption_gives_way_to_older_reservations_and_not_to_younger_ones() -> None:
    """Fault B19; clause: holds with a smaller fence."""
    ledger = held(new_ledger(1), "s1", state=HoldState.RESERVED)
    ledger = held(ledger, "s2", state=HoldState.RESERVED)

    assert room_to_resume(ledger, census(), "s1")
    assert not room_to_resume(ledger, census(), "s2")


LIVE_JOBS = st.lists(
    st.builds(
        job,
        st.none() | NAMES,
        st.sampled_from(("finalizer", "blast", "submit")),
        live=st.booleans(),
    ),
    max_size=8,
)


@given(jobs=LIVE_JOBS)
def test_a_census_counts_each_live_job_for_exactly_one_search(jobs: list[SeenJob]) -> None:
    """Faults B1, B4 and B8."""
    found = take(jobs)
    live = [each for each in jobs if each.is_live]

    labelled = {each.search for each in live if each.search}
    alone = {each.uid for each in live if not each.search and each.app == "finalizer"}
    others = {UNLABELLED for each in live if not each.search and each.app != "finalizer"}
    assert found.families == labelled | alone | others
    assert found.families == set(found.sightings)
    assert not found.finished & found.families
    assert take(reversed(jobs)).families == found.families
