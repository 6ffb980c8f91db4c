"""Making a lost ledger whole again."""

from __future__ import annotations

from itertools import permutations

import pytest
from admission_stage import ME, NOW, OTHER, TIMINGS, new_ledger, queued, situation, wish
from hypothesis import given
from hypothesis import strategies as st

from blastyard.admission.hold import Attempt, Reserved, confirm, reserve
from blastyard.admission.ledger import Fence, HoldState, Ledger, Policy, Submitter
from blastyard.admission.outcome import Reason, Refused, Waiting
from blastyard.admission.restoration import Claim, Known, begun, restore

SEED = Policy(ceiling=2)
MILLISECONDS = 1_714_979_289_000


def submitter(name: str, policy: Policy | None = None) -> Submitter:
    return Submitter(name, "serve", 1000, policy=policy)


def known(*names: str, policy: Policy | None = None) -> Known:
    return Known({name: submitter(name, policy) for name in names}, SEED, "uid-2")


def claim(search: str, owner: str = ME, state: HoldState = HoldState.SUBMITTED) -> Claim:
    return Claim(search, "ada", 1, 3, state, owner)


def restored(ledger: Ledger | None, me: str, claims: list[Claim], whom: Known) -> Ledger:
    after = restore(ledger or begun(whom, NOW), me, claims, whom, NOW)
    assert after is not None
    return after


def test_a_ledger_that_has_never_been_is_whole_at_once_under_the_seeded_policy() -> None:
    ledger = restored(None, ME, [], known(ME))

    assert ledger == Ledger("uid-2", SEED, MILLISECONDS, turn_at=NOW)
    assert ledger.is_whole


def test_nobody_is_admitted_until_every_known_submitter_has_brought_its_claims() -> None:
    """Fault B14."""
    both = known(ME, OTHER)

    half = restored(None, ME, [claim("s1")], both)

    assert not half.is_whole
    outcome = reserve(queued(half, "new"), Attempt("new", 1, ME), situation(), TIMINGS)
    assert isinstance(outcome, Waiting)
    assert outcome.reason is Reason.RESTORING
    assert restore(half, ME, [claim("s1")], both, NOW) is None
    whole = restored(half, OTHER, [claim("s2", OTHER)], both)
    assert whole.is_whole
    assert whole.turn_at == NOW
    assert {name: hold.submitter for name, hold in whole.holds.items()} == {"s1": ME, "s2": OTHER}


@pytest.mark.parametrize("order", list(permutations((ME, OTHER, "search-3"))))
def test_it_does_not_matter_in_which_order_they_come(order: tuple[str, ...]) -> None:
    """Faults B12 and B14."""
    claims = {ME: [claim("s1")], OTHER: [claim("s2", OTHER)], "search-3": []}
    everybody = known(*claims)

    ledger: Ledger | None = None
    for number, name in enumerate(order, start=1):
        ledger = restored(ledger, name, claims[name], everybody)
        assert ledger.is_whole == (number == 3)

    assert ledger is not None
    assert set(ledger.holds) == {"s1", "s2"}


@given(names=st.lists(st.sampled_from([f"s{n}" for n in range(6)]), max_size=8))
def test_what_runs_fills_the_ceiling_again_however_often_it_is_claimed(names: list[str]) -> None:
    """Faults B12 and B14."""
    ledger = restored(None, ME, [claim(name) for name in names], known(ME))

    assert set(ledger.holds) == set(names)
    fences = [hold.fence for hold in ledger.holds.values()]
    assert fences == list(range(MILLISECONDS + 1, MILLISECONDS + 1 + len(set(names))))
    assert ledger.fence == MILLISECONDS + len(set(names))
    ledger = queued(ledger, "new")
    outcome = reserve(ledger, Attempt("new", 1, ME), situation(), TIMINGS)
    assert isinstance(outcome, Reserved) == (len(set(names)) < SEED.ceiling)


def test_a_claim_keeps_what_its_submitter_knows_of_it() -> None:
    child = Claim("c1", "bo", 2, 7, HoldState.RESERVED, OTHER, family="p")

    hold = restored(None, ME, [child], known(ME)).holds["c1"]

    assert (hold.submitter, hold.attempt, hold.state, hold.since) == (
        OTHER,
        7,
        HoldState.RESERVED,
        NOW,
    )
    assert (hold.ticket.user, hold.ticket.level, hold.ticket.family) == ("bo", 2, "p")


def test_a_search_that_queued_while_claims_were_collected_has_its_hold_or_its_ticket() -> None:
    """Fault B14."""
    half = queued(restored(None, ME, [], known(ME, OTHER)), wish("s1", "bo", 2), "s2")

    whole = restored(half, OTHER, [claim("s1", OTHER)], known(ME, OTHER))

    assert list(whole.tickets) == ["s2"]
    assert whole.holds["s1"].ticket == half.tickets["s1"]


def test_the_newest_policy_that_anybody_remembers_comes_back() -> None:
    """Fault B14."""
    drained = Policy(ceiling=0, version=4)
    both = Known({ME: submitter(ME), OTHER: submitter(OTHER, drained)}, SEED, "uid-2")

    assert restored(None, ME, [], both).policy == drained


def test_a_grant_of_the_lost_ledger_is_worth_nothing_on_the_new_one() -> None:
    """Fault B14."""
    ledger = restored(None, ME, [claim("s1")], known(ME))
    number = ledger.holds["s1"].fence

    assert isinstance(confirm(ledger, "s1", Fence("uid-1", number), NOW), Refused)


def test_a_whole_ledger_is_left_alone() -> None:
    ledger = new_ledger()
    whose = Known({ME: submitter(ME)}, SEED, ledger.uid)
    assert restore(ledger, ME, [claim("s1")], whose, NOW) is None


def test_claims_that_were_read_before_the_ledger_was_lost_again_are_not_brought_to_the_next() -> (
    None
):
    """Fault B14."""
    next_one = begun(Known({ME: submitter(ME)}, SEED, "uid-3"), NOW)
    assert restore(next_one, ME, [], known(ME), NOW) is None
    assert not next_one.is_whole
