"""What may be done to a search that waits, and to the policy."""

from __future__ import annotations

import msgspec
import pytest
from admission_stage import ME, NOW, OTHER, new_ledger, queued, reserved, seconds, wish
from hypothesis import given
from hypothesis import strategies as st

from blastyard.admission.ledger import Change, Policy, Ticket
from blastyard.admission.ticket import (
    KEPT_CHANGES,
    PUBLISHED_IN_ALL,
    PUBLISHED_PER_SUBMITTER,
    Wish,
    adopt,
    block,
    change_policy,
    newest_policy,
    park,
    publish,
    unpark,
    window,
    withdraw,
)

WISHES = st.lists(
    st.builds(
        Wish,
        search=st.uuids(version=4).map(str),
        user=st.sampled_from([f"u{number}" for number in range(12)]),
        level=st.integers(0, 2),
    ),
    unique_by=lambda one: one.search,
    max_size=40,
)
LATER = NOW + seconds(60)


def test_each_wish_gets_a_ticket_and_all_that_it_said() -> None:
    ledger = publish(new_ledger(), ME, [Wish("s1", "ada", 2, "family", "copying")], LATER)

    assert ledger is not None
    assert ledger.tickets == {
        "s1": Ticket(ME, "ada", 2, 1, LATER, family="family", blocked="copying")
    }
    assert (ledger.sequence, ledger.last_ticketed_at) == (1, LATER)


@given(wishes=WISHES)
def test_asking_again_for_a_ticket_changes_nothing(wishes: list[Wish]) -> None:
    ledger = queued(new_ledger(), *wishes)

    assert publish(ledger, ME, wishes, LATER) is None
    assert [ticket.sequence for ticket in ledger.tickets.values()] == [
        number for number, _ in enumerate(wishes, start=1)
    ]


def test_a_search_that_holds_gets_no_ticket() -> None:
    ledger = reserved(queued(new_ledger(), "s1"), "s1")

    assert publish(ledger, ME, [wish("s1")], LATER) is None


def test_a_ticket_that_changes_hands_keeps_its_place() -> None:
    """Fault Q3."""
    ledger = queued(new_ledger(), "s1", "s2", submitter=OTHER)

    taken = publish(ledger, ME, [wish("s1"), wish("s3")], LATER)

    assert taken is not None
    assert taken.tickets["s1"] == msgspec.structs.replace(ledger.tickets["s1"], submitter=ME)
    assert taken.tickets["s2"] == ledger.tickets["s2"]
    assert taken.tickets["s3"].sequence == 3
    assert adopt(ledger, "s1", ME, LATER) == queued(ledger, "s1", submitter=ME)
    assert adopt(ledger, "s1", OTHER, LATER) is None
    assert adopt(ledger, "nobody", ME, LATER) is None


def test_a_clock_that_was_put_back_makes_no_ticket_look_older() -> None:
    """Fault Q12."""
    ledger = queued(new_ledger(), "s1", at=LATER)

    ledger = queued(ledger, "s2", at=NOW)

    assert ledger.tickets["s2"].ticketed_at == LATER
    assert ledger.tickets["s2"].sequence > ledger.tickets["s1"].sequence


def test_a_withdrawn_search_has_no_ticket_and_is_not_the_one_who_runs() -> None:
    """Fault Q11."""
    ledger = reserved(queued(new_ledger(), "runs", "waits"), "runs")

    after = withdraw(ledger, "waits", LATER)

    assert after is not None
    assert (list(after.tickets), after.holds) == ([], ledger.holds)
    assert withdraw(after, "waits", LATER) is None
    assert withdraw(after, "runs", LATER) is None


def test_a_parked_search_and_one_that_is_blocked_keep_their_place() -> None:
    """Fault Q4."""
    ledger = queued(new_ledger(), "s1")

    parked = park(ledger, "s1", "root", LATER)
    blocked = block(ledger, "s1", "waiting_for_database", LATER)

    assert parked is not None
    assert blocked is not None
    assert parked.tickets["s1"].parked_by == "root"
    assert blocked.tickets["s1"].blocked == "waiting_for_database"
    assert park(parked, "s1", "root", LATER) is None
    assert block(blocked, "s1", "waiting_for_database", LATER) is None
    for undone in (unpark(parked, "s1", LATER), block(blocked, "s1", None, LATER)):
        assert undone is not None
        assert undone.tickets == ledger.tickets
    assert unpark(ledger, "s1", LATER) is None
    assert park(ledger, "nobody", "root", LATER) is None


# -- the window ------------------------------------------------------------------------------------


@given(before=WISHES, wishes=WISHES)
def test_every_user_and_priority_gets_a_place_however_many_wait(
    before: list[Wish], wishes: list[Wish]
) -> None:
    """Fault Q14."""
    crowd = [wish(f"a{number}", "ada", 2) for number in range(PUBLISHED_PER_SUBMITTER + 5)]
    ledger = queued(queued(new_ledger(), *crowd), *before, submitter=OTHER)

    chosen = window(ledger, ME, [*crowd, *wishes])

    published = queued(ledger, *chosen)
    have = {(ticket.user, ticket.level) for ticket in published.tickets.values()}
    assert {(one.user, one.level) for one in wishes} <= have
    assert len({one.search for one in chosen}) == len(chosen)
    mine = sum(ticket.submitter == ME for ticket in published.tickets.values())
    assert mine <= PUBLISHED_PER_SUBMITTER + 5 + len(have)


def test_one_with_five_thousand_publishes_a_hundred_and_the_other_its_one() -> None:
    """Fault Q14."""
    many = [wish(f"a{number}") for number in range(5000)]

    ledger = queued(new_ledger(), *window(new_ledger(), ME, many))
    assert list(ledger.tickets) == [f"a{n}" for n in range(PUBLISHED_PER_SUBMITTER)]
    assert window(ledger, ME, many) == []
    assert window(ledger, OTHER, [wish("b", "bo")]) == [wish("b", "bo")]


def test_places_are_given_by_priority_and_then_one_user_after_another() -> None:
    low = [wish(f"low{number}", "cy", 0) for number in range(3)]
    ada = [wish(f"a{number}", "ada") for number in range(3)]
    bo = [wish(f"b{number}", "bo") for number in range(2)]

    chosen = [one.search for one in window(new_ledger(), ME, [*low, *ada, *bo])]

    assert chosen == ["a0", "b0", "a1", "b1", "a2", "low0", "low1", "low2"]


def test_what_holds_is_not_published_and_what_another_looks_after_is_taken_over() -> None:
    ledger = reserved(queued(new_ledger(), "runs", "mine"), "runs")
    ledger = queued(ledger, "theirs", submitter=OTHER)

    chosen = window(ledger, ME, [wish("runs"), wish("mine"), wish("theirs"), wish("new")])

    assert [one.search for one in chosen] == ["theirs", "new"]


def test_all_together_publish_no_more_than_a_ledger_holds() -> None:
    ledger = new_ledger()
    for number in range(12):
        wishes = [wish(f"{number}-{n}", f"u{number}-{n}") for n in range(100)]
        ledger = queued(ledger, *window(ledger, f"serve-{number}", wishes))

    assert len(ledger.tickets) == PUBLISHED_IN_ALL
    assert window(ledger, "serve-12", [wish("late", "late")]) == []


def test_a_submitter_with_a_thousand_waiting_users_leaves_a_place_for_another() -> None:
    """Fault Q14."""
    crowd = [wish(f"a{number}", f"u{number}") for number in range(PUBLISHED_IN_ALL)]
    ledger = queued(new_ledger(), *window(new_ledger(), ME, crowd))

    assert window(ledger, OTHER, [wish("b", "bo")]) == [wish("b", "bo")]


# -- the policy ------------------------------------------------------------------------------------


def test_a_change_of_policy_says_who_when_and_what() -> None:
    ledger = change_policy(new_ledger(ceiling=3), "root", LATER, ceiling=5, cap=2)

    assert ledger is not None
    said = "ceiling 3 -> 5, per-user cap none -> 2"
    assert ledger.policy == Policy(5, 2, version=1, changes=(Change(LATER, "root", said),))
    uncapped = change_policy(ledger, "ada", LATER, cap=0)
    assert uncapped is not None
    assert uncapped.policy.user_cap is None
    assert uncapped.policy.version == 2
    assert uncapped.policy.changes[-1] == Change(LATER, "ada", "per-user cap 2 -> none")


def test_a_change_that_changes_nothing_is_none() -> None:
    ledger = new_ledger(ceiling=3)

    assert change_policy(ledger, "root", LATER) is None
    assert change_policy(ledger, "root", LATER, ceiling=3, cap=0) is None


@pytest.mark.parametrize("values", [{"ceiling": -1}, {"cap": -1}])
def test_a_negative_number_is_a_mistake(values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be 0 or more, not -1"):
        change_policy(new_ledger(), "root", LATER, **values)


def test_a_lowered_ceiling_keeps_what_runs() -> None:
    """Fault B9."""
    ledger = queued(new_ledger(ceiling=5), *[f"s{number}" for number in range(4)])
    for number in range(4):
        ledger = reserved(ledger, f"s{number}")

    lowered = change_policy(ledger, "root", LATER, ceiling=2)

    assert lowered is not None
    assert lowered.holds == ledger.holds


def test_the_latest_changes_are_kept() -> None:
    ledger = new_ledger(ceiling=0)
    for ceiling in range(1, KEPT_CHANGES + 5):
        ledger = change_policy(ledger, "root", LATER, ceiling=ceiling) or ledger

    assert len(ledger.policy.changes) == KEPT_CHANGES
    assert ledger.policy.changes[-1].what == "ceiling 23 -> 24"
    assert ledger.policy.version == 24


def test_the_policy_of_the_highest_version_that_anybody_remembers_is_the_newest() -> None:
    seed, older, newer = Policy(3), Policy(5, version=4), Policy(1, version=9)

    assert newest_policy(seed, [older, None, newer]) == newer
    assert newest_policy(seed, [None]) == newest_policy(seed, []) == seed
