"""Scenes of what peers see of our searches, in which each rule is seen to be needed."""

from __future__ import annotations

import pytest
from scene_stage import STAND_IN, Peer, Scene
from story_stage import fails_with, must

from blastyard.admission.kubernetes.marker_job import stand_in_id
from blastyard.admission.outcome import Granted, Waiting
from blastyard.domain.errors import Unavailable


@fails_with("submit job before the finalizer")
def test_peers_count_a_stand_in_from_its_first_job_on(scene: Scene) -> None:
    one, peer = scene.yard("serve-1"), Peer(scene)
    points = (f"after:create:{STAND_IN}",)
    one.meets[points] = one.cut_off
    with pytest.raises(Unavailable):
        one.admit("one")
    one.is_cut_off = False
    one.gate.beat()  # out of Gate A again
    assert "one" in one.gate.ledger().holds
    must(stand_in_id("one") in peer.counts(), "peers do not count a hold of ours")


@fails_with("ledger before list")
def test_a_marker_made_between_the_two_reads_of_a_sweep_is_not_swept(scene: Scene) -> None:
    one, other, peer = scene.yard("serve-1"), scene.yard("serve-2"), Peer(scene)
    other.gate.ledger()
    first_read = ("after:list:jobs", "after:get:configmaps/")
    other.meets[first_read] = lambda: one.admit("one")
    other.gate.marking.sweep()
    must(stand_in_id("one") in peer.counts(), "the stand-in of a new hold was swept")


@fails_with("a parent is shown by its parts")
def test_peers_count_a_split_search_between_two_of_its_parts(scene: Scene) -> None:
    one, peer = scene.yard("serve-1"), Peer(scene)
    one.computes("all")
    one.submits("part-1", family="all")
    scene.pass_time(15, one)
    assert "part-1" in peer.counts()

    scene.complete("part-1")
    must(bool(peer.counts()), "peers count nothing of a search that goes on")
    scene.pass_time(15, one)
    one.submits("part-2", family="all")
    assert {"part-2", stand_in_id("all")} <= peer.counts()


@fails_with("cancel unnoticed")
def test_a_search_that_a_peer_cancels_while_it_merges_gives_its_slot_back(scene: Scene) -> None:
    """Its own companions have ended: that ours was deleted is the only sign."""
    one, other, peer = scene.yard("exec-1"), scene.yard("serve-2"), Peer(scene)
    one.submits("one")
    scene.complete("one", "submit", "blast")
    scene.pass_time(15, one, other)
    assert isinstance(other.ask("two"), Waiting)

    peer.cancels("one")
    scene.pass_time(30, one, other)
    must("one" not in other.gate.ledger().holds, "it has its slot for ever")
    assert not scene.running()
    assert isinstance(other.ask("two"), Granted)
