"""The checker of recordings accuses nobody of what the protocol allows."""

from __future__ import annotations

import pytest
from history_stage import Story


@pytest.fixture
def story() -> Story:
    return Story()


def test_a_stand_in_is_told_by_the_note_of_its_search(story: Story) -> None:
    """Its label is an id of its own."""
    story.ticket("s1")
    holder = story.enter("s1")
    story.reserve("s1")
    fence = f"{story.uid}/{story.fence}"
    story.job("finalizer", "r-s1", marker=True, id="s1", holder=holder, fence=fence)
    story.say("submitting", "s1", holder=holder, ids=["s1"])
    story.say("submitted", "s1", holder=holder, ids=["s1"], code=7)
    story.say("releasing", "s1", holder=holder)
    story.say("released", "s1", holder=holder, version=story.lease(""))
    story.say("ended", "s1", outcome="failed")
    assert story.rules() == []


@pytest.mark.parametrize(("began", "rules"), [(False, []), (True, ["unseen by peers"])])
def test_a_reserved_hold_must_be_seen_once_a_command_of_it_may_have_run(
    story: Story, began: bool, rules: list[str]
) -> None:
    story.ticket("s1")
    holder = story.enter("s1")
    story.reserve("s1")
    if began:
        story.say("submitting", "s1", holder=holder, ids=["s1"])
        story.say("submitted", "s1", holder=holder, ids=["s1"], code=8)
    story.say("releasing", "s1", holder=holder)
    story.say("released", "s1", holder=holder, version=story.lease(""))
    story.say("ended", "s1", outcome="failed")
    assert story.rules() == rules


@pytest.mark.parametrize(("retired", "rules"), [(True, []), (False, ["over-resumption"])])
def test_who_resumes_is_counted_with_what_its_own_swap_has_left(
    retired: bool, rules: list[str]
) -> None:
    """A search that has ended is retired by the swap that resumes another one."""
    story = Story(ceiling=1)
    for search in ("s1", "s2"):
        story.ticket(search)
    made = story.admit("s1")
    story.ceiling = 2
    story.enter("s2")
    story.reserve("s2")
    story.ceiling = 1
    for title in made:
        story.complete(title)
    if retired:
        del story.holds["s1"]
    story.fence += 1
    story.holds["s2"] |= {"fence": story.fence, "attempt": 2}
    story.ledger()
    for search in ("s1", "s2"):
        story.say("ended", search, outcome="completed")
    assert story.rules() == rules


@pytest.mark.parametrize(("ended", "rules"), [(True, []), (False, ["over-admission by a peer"])])
def test_peers_go_by_finalizers_and_not_by_companions(ended: bool, rules: list[str]) -> None:
    """The hold of a search that has ended stays until somebody retires it, with its companion."""
    story = Story(ceiling=1)
    story.ticket("s1")
    submit, finalizer = story.admit("s1")
    story.job("submit", "s1", marker=True, id="s1")
    story.complete(submit)
    if ended:
        story.complete(finalizer)
    story.foreign_end("f1", story.foreign("f1"))
    story.say("ended", "s1", outcome="completed")
    assert story.rules(peers_ceiling=1) == rules


@pytest.mark.parametrize(("began", "rules"), [(False, []), (True, ["over-admission by a peer"])])
def test_a_peer_may_begin_beside_a_reservation_of_which_nothing_has_begun(
    story: Story, began: bool, rules: list[str]
) -> None:
    """It cannot see it; whoever resumes it counts anew."""
    story.ticket("s1")
    holder = story.enter("s1")
    story.reserve("s1")
    if began:
        story.job("finalizer", "r-s1", marker=True, id="s1")
        story.say("submitting", "s1", holder=holder, ids=["s1"])
        story.say("submitted", "s1", holder=holder, ids=["s1"], code=8)
    story.say("releasing", "s1", holder=holder)
    story.say("released", "s1", holder=holder, version=story.lease(""))
    story.foreign_end("f1", story.foreign("f1"))
    story.say("ended", "s1", outcome="failed")
    assert story.rules(peers_ceiling=1) == rules


@pytest.mark.parametrize(("died", "rules"), [(True, []), (False, ["order"])])
def test_the_searches_of_the_dead_may_be_overtaken_before_their_signs_of_life_lapse(
    story: Story, died: bool, rules: list[str]
) -> None:
    for search in ("s1", "s2"):
        story.ticket(search)
    story.tickets["s2"]["submitter"] = "serve-2"
    if died:
        story.say("died", "", "serve-1")
    story.deeds = [
        type(deed)(deed.at, "serve-2" if deed.search == "s2" else deed.who, deed.what, deed.search)
        for deed in story.deeds
    ]
    holder = "blastyard-s2-1"
    story.say("acquired", "s2", "serve-2", holder=holder, version=story.lease(holder))
    story.reserve("s2")
    for search in ("s1", "s2"):
        story.say("ended", search, "serve-2", outcome="completed")
    assert story.rules() == rules
