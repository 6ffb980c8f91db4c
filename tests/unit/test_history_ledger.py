"""The judge of recordings: Gate B, the fences and the queue's order."""

from __future__ import annotations

import pytest
from history_stage import Story


@pytest.fixture
def story() -> Story:
    return Story()


# -- Gate B ------------------------------------------------------------------------------------


def test_a_fourth_hold_at_a_ceiling_of_three_is_found(story: Story) -> None:
    for name in ("s1", "s2", "s3", "s4"):
        story.ticket(name)
    for name in ("s1", "s2", "s3"):
        story.admit(name)
    story.enter("s4")
    story.reserve("s4")
    assert "over-admission" in story.rules()


def test_jobs_without_a_hold_count_beside_the_holds(story: Story) -> None:
    for name in ("s1", "s2", "s3"):
        story.ticket(name)
    story.foreign("f1")
    story.admit("s1")
    story.admit("s2")
    assert "over-admission" not in story.rules()
    story.enter("s3")
    story.reserve("s3")
    assert "over-admission" in story.rules()


def test_a_search_that_has_a_hold_and_is_seen_counts_once(story: Story) -> None:
    story.ceiling = 2
    for name in ("s1", "s2"):
        story.ticket(name)
        story.admit(name)
    assert "over-admission" not in story.rules()


def test_children_share_the_slot_of_their_family(story: Story) -> None:
    story.ceiling = 1
    for name in ("p", "c1", "c2"):
        story.ticket(name, family=None if name == "p" else "p")
        story.admit(name)
    assert "over-admission" not in story.rules()


def test_a_search_under_another_id_is_known_by_its_alias(story: Story) -> None:
    story.ceiling = 2
    story.ticket("s1")
    story.admit("s1")
    story.holds["s1"]["alias"] = "job-77"
    story.ledger()
    story.job("submit", "job-77")
    story.ticket("s2")
    story.admit("s2")
    assert "over-admission" not in story.rules()


def test_what_came_past_gate_a_in_this_turn_could_not_be_known(story: Story) -> None:
    story.ceiling = 1
    story.ticket("s1")
    story.ticket("s2")
    holder = story.enter("s1")
    story.foreign("r1", gate=False)
    story.reserve("s1")
    assert "over-admission" not in story.rules()
    story.end("s1", story.make("s1", holder))
    story.enter("s2")
    story.reserve("s2")
    assert "over-admission" in story.rules()


def test_a_finalizer_whose_companions_a_peer_deleted_is_a_phantom(story: Story) -> None:
    story.ceiling = 1
    submit, _ = story.foreign("f1")
    story.delete(submit)
    story.ticket("s1")
    story.admit("s1")
    assert "over-admission" not in story.rules()


def test_a_finalizer_that_merges_alone_is_none(story: Story) -> None:
    story.ceiling = 1
    submit, _ = story.foreign("f1")
    story.complete(submit)
    story.delete(submit)
    story.ticket("s1")
    story.admit("s1")
    assert "over-admission" in story.rules()


def test_a_lowered_ceiling_lets_nobody_in_before_there_is_room(story: Story) -> None:
    for name in ("s1", "s2", "s3"):
        story.ticket(name)
    story.admit("s1")
    story.admit("s2")
    story.ceiling = 2
    story.ledger()
    assert "over-admission" not in story.rules()
    story.admit("s3")
    assert "over-admission" in story.rules()


def test_a_hold_that_is_resumed_is_counted_anew(story: Story) -> None:
    story.ceiling = 1
    story.ticket("s1")
    story.enter("s1")
    story.reserve("s1")
    story.wait(1000)
    story.foreign("f1")
    story.fence += 1
    story.holds["s1"]["fence"] = story.fence
    story.ledger()
    assert "over-resumption" in story.rules()


def test_a_peer_that_starts_beside_a_reserved_hold_is_found(story: Story) -> None:
    story.ticket("s1")
    story.enter("s1")
    story.reserve("s1")
    story.say("submitting", "s1", holder="blastyard-s1-1")
    story.say("releasing", "s1", holder="blastyard-s1-1")
    story.job("finalizer", "r-s1", marker=True, search="s1", holder="blastyard-s1-1")
    story.lease("")
    story.foreign("f1")
    assert "over-admission by a peer" in story.rules(peers_ceiling=1)
    assert "over-admission by a peer" not in story.rules(peers_ceiling=2)


def test_a_hold_that_peers_cannot_see_when_gate_a_is_left_is_found(story: Story) -> None:
    story.ticket("s1")
    holder = story.enter("s1")
    story.reserve("s1")
    story.say("submitting", "s1", holder="blastyard-s1-1")
    story.leave("s1", holder)
    assert "unseen by peers" in story.rules()


def test_who_takes_over_must_make_a_hold_visible_before_it_leaves(story: Story) -> None:
    story.ticket("s1")
    story.enter("s1")
    story.reserve("s1")
    story.say("submitting", "s1", holder="blastyard-s1-1")
    story.wait(31)
    story.lease("blastyard-s2-1")
    assert "unseen by peers" not in story.rules()
    story.say("releasing", "s2", holder="blastyard-s2-1")
    story.lease("")
    assert "unseen by peers" in story.rules()


# -- the ledger --------------------------------------------------------------------------------


def test_a_fence_that_goes_back_is_found(story: Story) -> None:
    story.fence = 7
    story.ledger()
    story.fence = 6
    story.ledger()
    assert story.rules() == ["the fence went back"]


def test_a_new_ledger_may_begin_with_another_fence(story: Story) -> None:
    story.fence = 7
    story.ledger()
    story.uid, story.fence = "u2", 1
    story.ledger()
    assert story.rules() == []


def test_a_fence_that_is_granted_twice_is_found(story: Story) -> None:
    for name in ("s1", "s2"):
        story.ticket(name)
    story.admit("s1")
    story.fence -= 1
    story.enter("s2")
    story.reserve("s2")
    assert "a fence was used twice" in story.rules()


@pytest.mark.parametrize("fence", ["u1/5", "u0/1"])
def test_a_finalizer_made_with_a_former_fence_is_found(story: Story, fence: str) -> None:
    story.ticket("s1")
    story.admit("s1")
    story.lease("blastyard-s1-1")
    story.job("finalizer", "r-s1", marker=True, search="s1", holder="blastyard-s1-1", fence=fence)
    assert "stale fence" in story.rules()


def test_who_overtakes_within_one_user_and_priority_is_found(story: Story) -> None:
    story.ticket("s1")
    story.ticket("s2")
    story.admit("s2")
    assert "order" in story.rules()


@pytest.mark.parametrize(
    "obstacle",
    [
        {"user": "bob"},
        {"level": 0},
        {"parked_by": "op"},
        {"blocked": "waiting_for_database"},
        {"submitter": "gone"},
    ],
)
def test_who_cannot_go_or_is_of_another_kind_may_be_overtaken(
    story: Story, obstacle: dict[str, object]
) -> None:
    story.ticket("s1", **obstacle)
    story.ticket("s2")
    story.admit("s2")
    assert "order" not in story.rules()


def test_a_head_that_did_not_claim_may_be_passed_over(story: Story) -> None:
    story.ticket("s1")
    story.ticket("s2")
    story.enter("s2")
    story.tickets["s1"] = {**story.tickets["s1"], "passed": 1}
    story.reserve("s2")
    assert "order" not in story.rules()


def test_a_submitter_that_has_been_silent_may_be_overtaken(story: Story) -> None:
    story.ticket("s1")
    story.ticket("s2")
    story.wait(60)
    story.admit("s2")
    assert "order" not in story.rules()
