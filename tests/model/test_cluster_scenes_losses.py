"""Scenes of lost ledgers, in which each rule is seen to be needed."""

from __future__ import annotations

from scene_stage import STAND_IN, Peer, Scene
from story_stage import fails_with, must

from blastyard.admission.kubernetes.marker_job import stand_in_id
from blastyard.admission.ledger import HoldState
from blastyard.admission.outcome import Granted, Reason, Refused, Waiting
from blastyard.admission.port import LEDGER, SUBMITTER
from blastyard.admission.restoration import Claim


def _reason(outcome: Granted | Waiting | Refused) -> Reason | None:
    return outcome.reason if isinstance(outcome, Waiting) else None


def _claims() -> tuple[Claim, ...]:
    """What the store of one says to be running."""
    return (Claim("one", "ada", 1, 1, HoldState.SUBMITTED, "serve-1"),)


@fails_with("nobody is waited for")
def test_nobody_is_admitted_before_all_who_live_have_made_their_claims(scene: Scene) -> None:
    """Somebody has deleted the ledger, and all Jobs with it."""
    one, other = scene.yard("serve-1", _claims), scene.yard("serve-2")
    one.computes("one")
    scene.delete("app in (finalizer,blast,submit)")
    scene.lose(LEDGER)
    must(_reason(other.ask("two")) is Reason.RESTORING, "two run at a ceiling of one")

    assert one.gate.ledger().holds["one"].state is HoldState.SUBMITTED
    assert _reason(other.ask("two")) is Reason.CAPACITY
    one.gate.let_go("one")
    assert isinstance(other.ask("two"), Granted)


@fails_with("markers make nobody known", ceiling=2)
def test_who_is_known_from_a_marker_only_is_waited_for_too(scene: Scene) -> None:
    """Its sign of life was deleted by hand as well; it may have more running than is marked."""
    one, other = scene.yard("serve-1", _claims), scene.yard("serve-2")
    one.computes("one")
    one.computes("more")
    scene.kill(one)
    scene.delete(f"elb-job-id={stand_in_id('more')}")
    scene.lose(SUBMITTER + "serve-1")
    scene.lose(LEDGER)
    must(_reason(other.ask("two")) is Reason.RESTORING, "three run at a ceiling of two")


@fails_with("markers say little")
def test_markers_say_whose_a_search_is_and_of_which_family(scene: Scene) -> None:
    """The submitter of a split search is down when the ledger is lost."""
    one, other = scene.yard("serve-1"), scene.yard("serve-2")
    one.computes("all")
    one.submits("part", family="all")
    scene.kill(one)
    scene.lose(LEDGER)
    holds = other.gate.ledger().holds
    assert holds.keys() == {"all", "part"}
    must(holds["part"].ticket.family == "all", "one search takes two slots")
    must({hold.ticket.user for hold in holds.values()} == {"ada"}, "nobody's cap counts them")
    must({hold.submitter for hold in holds.values()} == {"serve-1"}, "nobody may end them")


@fails_with("swept while claims are collected")
def test_a_marker_whose_hold_was_lost_with_the_ledger_is_left_alone(scene: Scene) -> None:
    """It was made when the next ledger had taken in what was there."""
    one, other, peer = scene.yard("serve-1"), scene.yard("serve-2"), Peer(scene)

    def loses() -> None:
        scene.lose(LEDGER)
        assert not other.gate.ledger().is_whole

    one.meets[f"before:create:{STAND_IN}",] = loses
    one.admit("one")
    other.gate.marking.sweep()
    must(stand_in_id("one") in peer.counts(), "peers do not count what is about to start")

    assert one.gate.ledger().is_whole
    assert one.gate.ledger().holds.keys() == {"one"}
