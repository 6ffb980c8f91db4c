"""Making a lost ledger whole again where markers tell what its submitters cannot."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations

import pytest
from admission_stage import ME, NOW, OTHER, TIMINGS, new_ledger, queued, seconds, situation
from hypothesis import given
from hypothesis import strategies as st
from shared_stage import census, held, marks, running

from blastyard.admission.census import Marker, MarkerKind, occupied
from blastyard.admission.hold import Attempt, Reserved, reserve
from blastyard.admission.ledger import HoldState, Ledger, Policy, Submitter, Ticket
from blastyard.admission.outcome import Reason, Refused, Waiting
from blastyard.admission.restoration import Claim, Known, begun, claim_of, restore
from blastyard.admission.ticket import newest_policy

SEED = Policy(ceiling=2)
PATIENCE = TIMINGS.forgotten
DEAD = "exec-of-the-dead"
STAND_IN, COMPANION = MarkerKind.STAND_IN, MarkerKind.COMPANION


def known(*names: str, missing: tuple[str, ...] = (), **policies: Policy) -> Known:
    submitters = {name: Submitter(name, "serve", 1000) for name in names}
    for name, policy in policies.items():
        submitters[name] = Submitter(name, "serve", 1000, policy=policy)
    return Known(submitters, SEED, "uid-2", frozenset(missing))


def stand_in(search: str, submitter: str = DEAD, **more: object) -> Marker:
    return Marker(STAND_IN, search, "bo", submitter, **more)  # type: ignore[arg-type]


def companion(search: str, submitter: str = DEAD, **more: object) -> Marker:
    return Marker(COMPANION, search, "bo", submitter, watched=True, **more)  # type: ignore[arg-type]


def own(search: str, state: HoldState = HoldState.SUBMITTED, **more: object) -> Claim:
    return Claim(search, "bo", 1, 3, state, ME, **more)  # type: ignore[arg-type]


def restored(
    claims: list[Claim],
    whom: Known,
    ledger: Ledger | None = None,
    at: timedelta = timedelta(0),
    me: str = ME,
) -> Ledger:
    before = ledger or begun(whom, NOW)
    return restore(before, me, claims, whom, NOW + at, PATIENCE) or before


# -- claims of markers -----------------------------------------------------------------------------


def test_a_stand_in_claims_a_reservation_and_a_companion_a_submission() -> None:
    """Fault B22; clause: markers carry the claim."""
    child = companion("c1", level=2, attempt=4, family="p", alias="job-1")

    assert claim_of(child) == Claim(
        "c1", "bo", 2, 4, HoldState.SUBMITTED, DEAD, family="p", alias="job-1", watched=True
    )
    assert claim_of(stand_in("p", attempt=2)) == Claim("p", "bo", 1, 2, HoldState.RESERVED, DEAD)
    assert not claim_of(stand_in("s1", watched=True)).watched, "it may never have been submitted"


def test_holds_that_only_markers_name_are_taken_in_with_their_families() -> None:
    """Fault B22; clause: holds named by markers are taken in, and families."""
    marked = [stand_in("p"), companion("c1", family="p"), companion("s2", alias="job-2")]

    ledger = restored([claim_of(each) for each in marked], known(ME))

    assert ledger.is_whole
    assert set(ledger.holds) == {"p", "c1", "s2"}
    assert {hold.submitter for hold in ledger.holds.values()} == {DEAD}
    assert occupied(ledger.holds, census(running("c1", "job-2"))) == {"p", "s2"}
    outcome = reserve(queued(ledger, "new"), Attempt("new", 1, ME), situation(), TIMINGS)
    assert isinstance(outcome, Waiting)
    assert outcome.reason is Reason.CAPACITY


def test_a_marker_made_of_a_hold_brings_the_same_claim_on_the_slot_back() -> None:
    """Fault B22."""
    ledger = held(new_ledger(), "p")
    ledger = held(ledger, "c1", "p", watched=True, alias="job-1", attempt=7)
    jobs = [*marks("p", ledger.holds["p"]), *marks("c1", ledger.holds["c1"], COMPANION)]
    claims = [claim_of(each.marker) for each in jobs if each.marker]

    after = restored(claims, known(ME))

    assert occupied(after.holds, census()) == occupied(ledger.holds, census())
    was, now = ledger.holds["c1"], after.holds["c1"]
    assert (now.alias, now.attempt, now.watched, now.state) == (
        was.alias,
        was.attempt,
        True,
        HoldState.SUBMITTED,
    )


@pytest.mark.parametrize(
    "order", list(permutations(["own", "stand-in", "companion"], 3)), ids="-".join
)
def test_what_a_marker_could_only_call_reserved_its_submitter_calls_submitted(
    order: tuple[str, ...],
) -> None:
    """Fault B14; clause: it does not matter who comes first."""
    claims = {
        "own": own("s1", alias="job-1", watched=True),
        "stand-in": claim_of(stand_in("s1", ME)),
        "companion": claim_of(companion("s1", ME, alias="job-1", attempt=3)),
    }

    hold = restored([claims[name] for name in order], known(ME)).holds["s1"]

    assert (hold.state, hold.alias, hold.watched, hold.attempt) == (
        HoldState.SUBMITTED,
        "job-1",
        True,
        3,
    )


def test_a_later_word_never_makes_less_of_a_submission() -> None:
    sure = restored([own("s1", alias="job-1", watched=True)], known(ME, OTHER))

    after = restored([claim_of(stand_in("s1", ME))], known(ME, OTHER), sure, me=OTHER)

    assert after.holds == sure.holds


def test_the_latest_attempt_that_anybody_knows_of_is_the_one_that_holds() -> None:
    """Fault A14: a marker stays as its first attempt made it."""
    marker = claim_of(stand_in("s1", ME, attempt=1))
    mine = own("s1", HoldState.RESERVED)

    for claims in ([marker, mine], [mine, marker]):
        ledger = restored(claims, known(ME))
        assert ledger.holds["s1"].attempt == 3
        late = reserve(ledger, Attempt("s1", 2, ME), situation(), TIMINGS)
        assert isinstance(late, Refused)


# -- who is waited for -----------------------------------------------------------------------------


def test_submitters_that_only_markers_know_are_waited_for_two_hours() -> None:
    """Fault B22; clause: known from submitter Leases or markers, or lapsed for 2 h."""
    both = known(ME, missing=(OTHER,))
    claims = [claim_of(stand_in("p", OTHER))]

    half = restored(claims, both)
    assert not half.is_whole
    assert half.begun_at == NOW
    assert set(half.holds) == {"p"}
    almost = restored(claims, both, half, PATIENCE - seconds(1))
    assert not almost.is_whole
    whole = restored(claims, both, half, PATIENCE)
    assert whole.is_whole
    assert whole.begun_at is None
    assert set(whole.holds) == {"p"}, "its hold stays; only its word is not waited for"


def test_one_that_only_markers_knew_and_that_comes_after_all_is_waited_for_no_longer() -> None:
    """Fault B22."""
    both = known(ME, missing=(OTHER,))
    half = restored([], both)

    whole = restored([own("s2")], both, half, me=OTHER)

    assert whole.is_whole
    assert set(whole.holds) == {"s2"}


def test_those_that_are_known_to_live_are_waited_for_however_long_it_takes() -> None:
    """Fault B14."""
    half = restored([], known(ME, OTHER))

    assert not restored([], known(ME, OTHER), half, 10 * PATIENCE).is_whole
    assert restored([], known(ME), half, seconds(1)).is_whole, "it has lapsed meanwhile"


def test_nobody_is_admitted_while_one_is_missing() -> None:
    """Fault B22; clause: nobody is admitted until …"""
    half = queued(restored([], known(ME, missing=(OTHER,))), "new")

    outcome = reserve(half, Attempt("new", 1, ME), situation(), TIMINGS)

    assert isinstance(outcome, Waiting)
    assert outcome.reason is Reason.RESTORING


def test_a_clock_that_was_put_back_waits_longer_and_not_shorter() -> None:
    both = known(ME, missing=(OTHER,))
    half = restored([], both)

    assert not restored([], both, half, -timedelta(hours=5)).is_whole


# -- policy and fence ------------------------------------------------------------------------------


def test_the_policy_of_the_highest_version_is_back_whoever_remembers_it() -> None:
    """Fault B14; clause: the highest version any of them remembers."""
    older, newer = Policy(ceiling=5, version=3), Policy(ceiling=0, version=4)

    for policies in ({ME: older, OTHER: newer}, {ME: newer, OTHER: older}):
        assert begun(known(**policies), NOW).policy == newer
    assert begun(known(ME, OTHER), NOW).policy == SEED
    assert newest_policy(SEED, [None, older, None]) == older


def test_a_policy_that_is_remembered_by_one_who_comes_late_is_back_too() -> None:
    """Fault B14: who begins the ledger may be the one that knows least."""
    drained = Policy(ceiling=0, version=4)
    half = restored([], known(ME, OTHER))
    assert half.policy == SEED

    late = {"serve-2": drained, "serve-1": Policy(ceiling=9, version=2)}
    whole = restored([], known(**late), half, me=OTHER)

    assert whole.is_whole
    assert whole.policy == drained


def test_a_policy_that_was_changed_meanwhile_is_not_undone_by_an_older_one() -> None:
    changed = Policy(ceiling=7, version=4)
    half = restored([], known(ME, OTHER, **{ME: changed}))

    same_version = {OTHER: Policy(ceiling=1, version=4), ME: Policy(ceiling=2, version=3)}
    assert restored([], known(**same_version), half, me=OTHER).policy == changed


def test_the_fence_starts_from_the_server_s_clock_in_milliseconds() -> None:
    """Clause: the fence restarts from server time in milliseconds."""
    at = NOW + timedelta(milliseconds=250)
    ledger = begun(known(ME), at)

    assert ledger.fence == 1_714_979_289_250
    assert begun(known(ME), at + seconds(1)).fence - ledger.fence == 1000
    after = restored([own("s1"), own("s2")], known(ME), ledger)
    assert [hold.fence - ledger.fence for hold in after.holds.values()] == [1, 2]
    assert after.fence == ledger.fence + 2


CLAIMS = st.lists(
    st.builds(
        Claim,
        st.sampled_from(("a", "b", "c")),
        st.just("bo"),
        st.integers(0, 2),
        st.integers(1, 5),
        st.sampled_from(HoldState),
        st.sampled_from((ME, OTHER)),
        family=st.none() | st.just("p"),
        watched=st.booleans(),
    ),
    max_size=6,
)


@given(claims=CLAIMS, waiting=st.sets(st.sampled_from(("a", "b", "x"))))
def test_every_claim_has_one_hold_with_a_fence_of_its_own_and_no_ticket(
    claims: list[Claim], waiting: set[str]
) -> None:
    """Faults B12 and B14."""
    half = queued(begun(known(ME, OTHER), NOW), *sorted(waiting))

    after = restored(claims, known(ME), half)

    assert set(after.holds) == {claim.search for claim in claims}
    assert set(after.tickets) == waiting - set(after.holds)
    fences = [hold.fence for hold in after.holds.values()]
    assert len(set(fences)) == len(fences)
    assert all(half.fence < fence <= after.fence for fence in fences)
    for name, hold in after.holds.items():
        about = [claim for claim in claims if claim.search == name]
        assert (hold.state is HoldState.SUBMITTED) == any(
            claim.state is HoldState.SUBMITTED for claim in about
        )
        assert hold.attempt == max(claim.attempt for claim in about)
    again = restored(claims, known(ME, OTHER), restored(claims, known(ME, OTHER), half))
    assert set(again.holds) == set(after.holds), "claimed again, it is the same hold"


def test_a_search_that_waits_and_is_claimed_keeps_its_place() -> None:
    """Clause: restored its holds, families and ticket order."""
    half = queued(begun(known(ME, OTHER), NOW), "first", "s1", "last")

    after = restored([claim_of(companion("s1"))], known(ME), half)

    assert after.holds["s1"].ticket == half.tickets["s1"]
    assert [ticket.sequence for ticket in after.tickets.values()] == [1, 3]
    assert isinstance(after.holds["s1"].ticket, Ticket)
    taken = reserve(after, Attempt("first", 1, ME), situation(), TIMINGS)
    assert isinstance(taken, Reserved)
