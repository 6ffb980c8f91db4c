"""Which markers stand, so that peers count what we hold."""

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
    queued,
    reserved,
    situation,
)
from hypothesis import given
from hypothesis import strategies as st
from shared_stage import census, held, job, marks, merging, running, watched

from blastyard.admission.census import (
    FINALIZER,
    UNLABELLED,
    Marker,
    MarkerKind,
    SeenJob,
)
from blastyard.admission.hold import Attempt, Reserved, end, fail, give_back, reserve
from blastyard.admission.ledger import Fence, HoldState, Ledger
from blastyard.admission.marking import (
    SUBMIT,
    Plan,
    Put,
    Take,
    apps_of,
    kind_needed,
    mark,
    marker,
    plan,
)

STAND_IN, COMPANION = MarkerKind.STAND_IN, MarkerKind.COMPANION
DAY = timedelta(days=1)


def planned(ledger: Ledger, *jobs: SeenJob, now: datetime = NOW) -> Plan:
    return plan(ledger, census(jobs), now, TIMINGS)


def up(ledger: Ledger, search: str, kind: MarkerKind = STAND_IN) -> list[SeenJob]:
    return marks(search, ledger.holds[search], kind)


def reservation(search: str = "s1", **changes: object) -> Ledger:
    return held(new_ledger(), search, state=HoldState.RESERVED, **changes)


# -- what must stand -------------------------------------------------------------------------------


def test_a_reservation_is_shown_by_a_finalizer_first_and_a_submit_job_then() -> None:
    """Fault B19; clause: the stand-in, both Jobs, before the command runs."""
    found = planned(reservation())

    said = marker("s1", reservation().holds["s1"], STAND_IN)
    assert found == Plan(put=(Put(said, (FINALIZER, SUBMIT)),))


def test_a_marker_says_all_that_is_needed_to_claim_its_hold_again() -> None:
    """Fault B22; clause: markers carry the claim."""
    ledger = held(new_ledger(), "c1", "p", submitter=OTHER, attempt=3, alias="job-1", watched=True)
    ticket = msgspec.structs.replace(ledger.holds["c1"].ticket, user="bo", level=2)
    hold = msgspec.structs.replace(ledger.holds["c1"], ticket=ticket)

    assert marker("c1", hold, COMPANION) == Marker(
        COMPANION, "c1", "bo", OTHER, 2, 3, family="p", alias="job-1", watched=True
    )


def test_only_the_job_that_is_missing_is_put_up_and_order_is_kept() -> None:
    ledger = reservation()
    finalizer, submit = up(ledger, "s1")

    assert planned(ledger, finalizer).put[0].apps == (SUBMIT,)
    assert planned(ledger, submit).put[0].apps == (FINALIZER,)
    assert planned(ledger, finalizer, submit) == Plan()


def test_a_submission_whose_finalizer_is_seen_has_a_companion_instead() -> None:
    """Faults B2 and B16; clause: companion up, then stand-in down."""
    ledger = watched(new_ledger(), "s1", alias="job-1")
    jobs = [*running("job-1"), *up(ledger, "s1")]

    first = planned(ledger, *jobs)
    assert first.put == (Put(marker("s1", ledger.holds["s1"], COMPANION), (SUBMIT,)),)
    assert first.take == (), "nothing counts it while its companion is not up"
    second = planned(ledger, *jobs, *up(ledger, "s1", COMPANION))
    assert second.put == ()
    assert second.take == tuple(Take(each.name, each.uid) for each in up_of(jobs, STAND_IN))
    assert second.up == {"s1"}


def up_of(jobs: list[SeenJob], kind: MarkerKind) -> list[SeenJob]:
    return [each for each in jobs if each.marker is not None and each.marker.kind is kind]


@pytest.mark.parametrize(
    ("what", "ledger", "jobs"),
    [
        ("no finalizer yet", watched(new_ledger(), "s1"), [job("s1", "blast")]),
        ("nothing seen yet", watched(new_ledger(), "s1"), []),
        ("only reserved", reservation(watched=True), running("s1")),
        ("no id", watched(new_ledger(), "s1", alias=UNLABELLED), [job(None, "blast")]),
        ("a parent of children", held(new_ledger(), "s1"), running("c1")),
        ("a machine of its own", held(new_ledger(), "s1"), []),
        ("its own word ends it", held(new_ledger(), "s1"), running("s1")),
    ],
)
def test_what_peers_cannot_count_by_its_own_finalizer_has_a_stand_in(
    what: str, ledger: Ledger, jobs: list[SeenJob]
) -> None:
    """Fault B20; clause: the parent has its own stand-in for its whole life."""
    assert kind_needed("s1", ledger.holds["s1"], census(jobs)) is STAND_IN, what
    assert planned(ledger, *jobs).put[0].apps == (FINALIZER, SUBMIT)
    assert planned(ledger, *jobs, *up(ledger, "s1"), now=NOW + DAY).take == ()


def test_what_has_ended_gets_no_stand_in_in_the_moment_before_its_hold_is_retired() -> None:
    """Peers would count a search that is over, and wait for nothing."""
    ledger = watched(new_ledger(), "s1", alias="job-1")
    ended = job("job-1", FINALIZER, live=False)

    assert planned(ledger, ended).put == ()
    assert planned(ledger, ended, *running("job-1")).put, "another attempt of it runs"
    assert planned(reservation(alias="job-1"), ended).put, "its command has still to come"


def test_it_does_not_matter_whose_hold_it_is() -> None:
    """Clause: whoever takes the Lease re-asserts the stand-ins and companions of every hold."""
    ledger = held(reservation(submitter="exec-of-the-dead"), "s2", submitter=OTHER)
    ledger = watched(ledger, "s3")

    puts = planned(ledger, *merging("s3")).put

    assert [(put.marker.search, put.marker.kind) for put in puts] == [
        ("s1", STAND_IN),
        ("s2", STAND_IN),
        ("s3", COMPANION),
    ]


# -- what must not ---------------------------------------------------------------------------------


def test_the_markers_of_what_has_ended_or_went_back_to_the_queue_are_taken_down() -> None:
    """Fault B16."""
    ledger = reserved(queued(new_ledger(), "s1", "s2"), "s1")
    jobs = up(ledger, "s1")
    takes = tuple(Take(each.name, each.uid) for each in jobs)

    for gone in (end(ledger, "s1", NOW), give_back(ledger, "s1", ME, None, NOW)):
        assert gone is not None
        assert planned(gone, *jobs) == Plan(take=takes)


def test_nothing_is_taken_down_on_a_ledger_that_is_being_restored() -> None:
    """Fault B22; clause: none while restoring."""
    jobs = up(reservation(), "s1")
    empty = msgspec.structs.replace(new_ledger(), restored=())

    assert planned(empty, *jobs) == Plan()
    assert planned(msgspec.structs.replace(empty, restored=(ME,)), *jobs) == Plan()
    assert planned(new_ledger(), *jobs).take != ()


def test_what_is_needed_is_put_up_even_while_restoring() -> None:
    """Fault B22."""
    assert planned(msgspec.structs.replace(reservation(), restored=())).put != ()


# -- vanished --------------------------------------------------------------------------------------


def test_a_companion_that_was_up_and_has_vanished_means_that_a_peer_cancelled() -> None:
    """Fault B21; clause: companion absent while the search lives."""
    ledger = watched(new_ledger(), "s1", marked=True)

    found = planned(ledger, *merging("s1"))

    assert found.cancelled == {"s1"}
    assert found.put == (), "it is not put up again over the cancel"


def test_a_parent_s_stand_in_that_has_lost_its_submit_job_means_the_same() -> None:
    """Fault B21: peers delete ``submit`` and ``blast`` and leave finalizers."""
    ledger = held(new_ledger(), "p", marked=True)
    finalizer, submit = up(ledger, "p")

    found = planned(ledger, finalizer)
    assert (found.cancelled, found.put, found.take) == ({"p"}, (), ())
    without_finalizer = planned(ledger, submit)
    assert without_finalizer.cancelled == frozenset()
    assert without_finalizer.put[0].apps == (FINALIZER,)


@pytest.mark.parametrize(
    ("what", "ledger", "jobs"),
    [
        ("never seen up", watched(new_ledger(), "s1"), merging("s1")),
        ("only reserved", reservation(marked=True), []),
        ("its stand-in is not what lasts", watched(new_ledger(), "s1", marked=True), []),
    ],
)
def test_what_was_never_up_or_was_not_to_last_has_not_been_cancelled(
    what: str, ledger: Ledger, jobs: list[SeenJob]
) -> None:
    """Fault B21."""
    found = planned(ledger, *jobs)

    assert found.cancelled == frozenset(), what
    assert len(found.put) == 1


def test_a_marker_that_may_have_ended_by_itself_is_put_up_again() -> None:
    """Fault B21; clause: absent before its deadline."""
    long_ago = NOW - TIMINGS.marker
    ledger = watched(new_ledger(), "s1", marked=True, marked_at=long_ago)

    found = planned(ledger, *merging("s1"))

    assert (found.cancelled, len(found.put)) == (frozenset(), 1)


def test_a_search_deserted_before_its_companion_was_up_has_been_cancelled() -> None:
    """Fault B21: the finalizer would wait for its deleted Jobs for ever."""
    ledger = watched(new_ledger(), "s1")
    alone = census([*merging("s1"), *up(ledger, "s1", MarkerKind.COMPANION)], deserted=["s1"])
    at_work = census(running("s1"), deserted=["s1"])

    assert plan(ledger, alone, NOW, TIMINGS).cancelled == {"s1"}
    assert plan(ledger, at_work, NOW, TIMINGS).cancelled == frozenset()


def test_only_a_complete_and_lasting_marker_is_remembered_as_up() -> None:
    """Fault B21."""
    parent, early = held(new_ledger(), "p"), reservation()

    assert planned(parent, *up(parent, "p")).up == {"p"}
    assert planned(parent, up(parent, "p")[1]).up == frozenset()
    assert planned(early, *up(early, "s1")).up == frozenset()


def test_to_mark_what_is_gone_changes_nothing() -> None:
    once = mark(held(new_ledger(), "p"), ["p", "nobody"], NOW)

    assert once is not None
    assert once.holds["p"].marked
    assert mark(once, ["nobody"], NOW) is None


def test_a_hold_that_is_granted_anew_has_no_marker_that_could_have_vanished() -> None:
    """Fault B21."""
    ledger = reserved(queued(new_ledger(), "s1"), "s1")
    ledger = mark(ledger, ["s1"], NOW) or ledger
    back = give_back(ledger, "s1", ME, None, NOW)
    assert back is not None

    assert not reserved(back, "s1").holds["s1"].marked


# -- it comes to rest ------------------------------------------------------------------------------


HOLDS = st.lists(
    st.tuples(
        st.sampled_from(HoldState),
        st.booleans(),
        st.booleans(),
        st.sampled_from((None, None, "alias", UNLABELLED)),
        st.sampled_from(("nothing", "finalizer", "running")),
    ),
    max_size=4,
)


@given(wanted=HOLDS, stray=st.lists(st.sampled_from(("s0", "s1", "s2", "s9")), max_size=4))
def test_two_sweeps_bring_every_marker_in_line_and_a_third_finds_nothing_to_do(
    wanted: list[tuple[HoldState, bool, bool, str | None, str]], stray: list[str]
) -> None:
    """Faults B16 and B21: each hold has one marker, and nobody else has."""
    ledger, jobs = new_ledger(), []
    for number, (state, is_watched, is_marked, alias, shows) in enumerate(wanted):
        other = f"{alias}-{number}" if alias == "alias" else alias
        ledger = held(
            ledger, f"s{number}", state=state, watched=is_watched, marked=is_marked, alias=other
        )
        name = other or f"s{number}"
        jobs += {"nothing": [], "finalizer": merging(name), "running": running(name)}[shows]
    some = held(new_ledger(), "any").holds["any"]
    marked = [each for name in stray for each in marks(name, ledger.holds.get(name, some))]

    for _ in range(2):
        found = planned(ledger, *jobs, *marked)
        gone = {take.uid for take in found.take}
        marked = [each for each in marked if each.uid not in gone]
        for put in found.put:
            hold = ledger.holds[put.marker.search]
            shown = marks(put.marker.search, hold, put.marker.kind)
            marked += [each for each in shown if each.app in put.apps]
            assert put.apps == tuple(app for app in apps_of(put.marker.kind) if app in put.apps)
        cancelled = found.cancelled

    at_rest = planned(ledger, *jobs, *marked)
    assert (at_rest.put, at_rest.take, at_rest.extend) == ((), (), ())
    assert at_rest.cancelled == cancelled
    shown_for = {each.marker.search for each in marked if each.marker}
    assert set(ledger.holds) - cancelled <= shown_for <= set(ledger.holds)


def test_resuming_a_failed_hold_keeps_its_stand_in() -> None:
    """Fault B19: peers count it all the time that it is reserved."""
    ledger = reservation()
    failed = fail(ledger, "s1", Fence(ledger.uid, ledger.fence), NOW)
    assert isinstance(failed, Ledger)
    later = NOW + TIMINGS.settle
    resumed = reserve(failed, Attempt("s1", 2, ME), situation(later), TIMINGS)
    assert isinstance(resumed, Reserved)

    for each in (ledger, failed, resumed.ledger):
        assert planned(each, *up(ledger, "s1"), now=later) == Plan()
