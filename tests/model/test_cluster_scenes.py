"""Scenes of the submit lease and of run slots, in which each rule is seen to be needed."""

from __future__ import annotations

from contextlib import suppress

import pytest
from scene_stage import STAND_IN, Died, Peer, Scene
from story_stage import fails_with, must

from blastyard.admission.kubernetes.marker_job import stand_in_id
from blastyard.admission.ledger import HoldState
from blastyard.admission.outcome import Granted, Waiting
from blastyard.admission.port import LEDGER
from blastyard.admission.stay import Stay
from blastyard.domain.errors import Unavailable
from blastyard.testing.foreign.command import Order
from blastyard.testing.foreign.lease import Busy


@fails_with("no settle after a failure")
def test_a_create_that_timed_out_lands_on_a_slot_that_is_still_kept(scene: Scene) -> None:
    one, other = scene.yard("exec-1"), scene.yard("serve-2")
    stay, granted = one.admit("one")
    one.gate.marking.markers.delete_search("one")  # its command has failed
    assert stay.fail("one", granted.fence)
    one.gate.leave(stay)

    scene.pass_time(20, one, other)
    outcome = other.ask("two")
    scene.makes("one")  # what was on its way all the time
    must(isinstance(outcome, Waiting), "two run at a ceiling of one")

    scene.pass_time(60, one, other)
    assert not scene.running()  # deleted once more
    assert isinstance(other.ask("two"), Granted)


@fails_with("no recount")
def test_who_resumes_gives_way_to_a_peer_that_could_not_see_its_reservation(scene: Scene) -> None:
    one, peer = scene.yard("serve-1"), Peer(scene)
    one.meets[f"before:create:{STAND_IN}",] = one.cut_off
    with pytest.raises(Unavailable):
        one.admit("one")
    one.is_cut_off = False
    one.gate.beat()  # out of Gate A again
    assert one.gate.ledger().holds["one"].state is HoldState.RESERVED

    assert peer.tries("its")
    must(isinstance(one.ask("one", 2), Waiting), "two run at a ceiling of one")
    scene.complete("its")
    assert isinstance(one.ask("one", 2), Granted)


@fails_with("resumed under its old fence", "no fence check")
def test_an_attempt_that_was_succeeded_cannot_fail_what_its_successor_does(scene: Scene) -> None:
    one = scene.yard("serve-1")
    stay, first = one.admit("one")
    one.gate.leave(stay)
    second = one.ask("one", 2)
    assert isinstance(second, Granted)
    must(not stay.fail("one", first.fence), "the first attempt has failed the second")
    assert one.gate.ledger().holds["one"].failed_at is None


@fails_with("fence without uid")
def test_a_grant_of_a_lost_ledger_is_not_believed_by_its_successor(scene: Scene) -> None:
    """The server's clock was put back, so that the next ledger counts from where this one did."""
    one = scene.yard("serve-1")
    stay, granted = one.admit("one")
    scene.lose(LEDGER)
    scene.clock_error = -scene.scheduler.now
    other = scene.yard("serve-2")
    hold = other.gate.ledger().holds["one"]
    assert hold.fence == granted.fence.number
    must(not stay.confirm("one", granted.fence), "a grant of the lost ledger is believed")


@fails_with("markers not asserted")
def test_peers_count_what_a_dead_holder_reserved_when_the_lease_is_free_again(
    scene: Scene,
) -> None:
    one, peer = scene.yard("serve-1"), Peer(scene)

    def dies() -> None:
        scene.kill(one)
        raise Died

    one.meets[f"before:create:{STAND_IN}",] = dies
    with suppress(Died):
        one.admit("one")
    scene.pass_time(31)
    other = scene.yard("serve-2")
    assert isinstance(other.ask("two"), Waiting)  # and so it has taken the lease, and cleared it
    must(stand_in_id("one") in peer.counts(), "peers do not count a hold of ours")


@fails_with("a partial submission is adopted")
def test_what_a_dead_command_left_half_done_is_not_taken_for_its_submission(scene: Scene) -> None:
    one, other = scene.yard("exec-1"), scene.yard("serve-2")
    one.admit("one")
    scene.command.begin(Order("one", 1))
    scene.kill(one)
    scene.pass_time(120, other)
    hold = other.gate.ledger().holds["one"]
    must(hold.state is HoldState.RESERVED, "Jobs without their finalizer were adopted")


@fails_with("a clock of its own on the lease")
def test_a_peer_judges_by_its_own_clock_and_finds_us_inside(scene: Scene) -> None:
    one, peer = scene.yard("serve-1"), Peer(scene)
    stay, _ = one.admit("one")
    assert isinstance(stay, Stay)
    assert stay.is_trusted
    must(isinstance(peer.gate.acquire("elb-its"), Busy), "two inside Gate A")


@fails_with("no patient turn")
def test_a_head_that_always_learns_late_of_a_free_slot_has_its_turn_at_last(scene: Scene) -> None:
    late, quick = scene.yard("serve-1"), scene.yard("serve-2")
    quick.computes("first")
    assert isinstance(late.ask("late"), Waiting)
    before = "first"
    for number in range(6):
        quick.gate.let_go(before)
        scene.pass_time(1, late, quick)
        scene.pass_time(2, late, quick)  # that it is free was seen for longer than a turn
        before = f"quick-{number}"
        outcome = quick.ask(before)
        scene.pass_time(17, late, quick)
        if isinstance(late.ask("late"), Granted):
            assert number == 3
            return
        assert isinstance(outcome, Granted)
    must(False, "the head was passed over again and again")
