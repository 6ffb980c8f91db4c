"""Scenes of programs that poll beside a queue, in which each rule is seen to be needed."""

from __future__ import annotations

from scene_stage import Peer, Scene, Yard
from story_stage import fails_with, must

from blastyard.admission.hold import Attempt
from blastyard.admission.outcome import Granted, Reason, Waiting
from blastyard.admission.stay import Stay
from blastyard.admission.ticket import Wish

POLL = 30.0
"""Seconds between two tries of a peer."""


@fails_with("courtesy counted from the denial")
def test_who_was_denied_is_left_the_first_slot_that_falls_free(scene: Scene) -> None:
    """However long every slot was still taken after the denial."""
    one, other, peer = scene.yard("exec-1"), scene.yard("serve-2"), Peer(scene)
    one.submits("one")
    assert isinstance(other.ask("two"), Waiting)
    scene.pass_time(5, one, other)
    assert not peer.tries("its")
    scene.pass_time(60, one, other)

    scene.complete("one")
    scene.pass_time(1, one, other)
    outcome = other.ask("two")
    must(not isinstance(outcome, Granted), "the queue took the slot that was owed")
    assert isinstance(outcome, Waiting)
    assert outcome.reason is Reason.COURTESY
    scene.pass_time(POLL, one, other)
    assert peer.tries("its")


@fails_with("a denial starts the debt again", ceiling=2)
def test_a_program_that_is_denied_again_and_again_is_owed_one_slot(scene: Scene) -> None:
    """It has a ceiling of its own, below ours, and so is denied though a slot is free."""
    one, other, peer = scene.yard("exec-1"), scene.yard("serve-2"), Peer(scene, ceiling=1)
    one.submits("one")
    other.gate.publish([Wish("two", "ada", 1)])
    scene.pass_time(5, one, other)
    assert not peer.tries("its")
    for _ in range(4):
        for _ in range(6):
            scene.pass_time(POLL / 6, one, other)
            if isinstance(other.ask("two"), Granted):
                return
        assert not peer.tries("its")
    must(False, "a slot is left alone for ever")


def _runs_inside(scene: Scene, one: Yard, peer: Peer, search: str) -> bool:
    """A command that takes as long as a peer pauses; whether the peer found room meanwhile."""
    one.gate.publish([Wish(search, "ada", 1)])
    stay = one.gate.enter(search, 1)
    assert isinstance(stay, Stay)
    granted = stay.reserve(Attempt(search, 1, one.name))
    if not isinstance(granted, Granted):
        one.gate.leave(stay)
        scene.pass_time(POLL, one)
        return peer.tries("its")
    for _ in range(3):
        scene.pass_time(POLL / 3, one)
    found = peer.tries("its")
    assert stay.confirm(search, granted.fence)
    one.gate.leave(stay)
    one.gate.let_go(search)
    return found


@fails_with("no pause after long use")
def test_a_program_that_always_finds_the_lease_taken_gets_in_at_last(scene: Scene) -> None:
    one, peer = scene.yard("serve-1"), Peer(scene)
    began = scene.scheduler.now
    for number in range(40):
        if _runs_inside(scene, one, peer, f"one-{number}"):
            assert 600 < scene.scheduler.now - began < 700
            return
    must(False, "it never got in")
