"""What was seen last is told apart by its version, however late an answer or an event comes."""

from __future__ import annotations

from typing import Any

import pytest
from kube_memory import LEASE_NAME, record
from kube_script import DATE, UID, answer

from blastyard.admission.kubernetes.sighting import Sightings, order_of
from blastyard.admission.port import ABSENT, LEASE
from blastyard.kube.clock import ServerClock


def lease(version: int, holder: str = "", uid: str = UID) -> dict[str, Any]:
    metadata = {"name": LEASE_NAME, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"holderIdentity": holder}}


@pytest.fixture
def seen() -> Sightings:
    clock = ServerClock()
    clock.observe(answer())
    return Sightings(clock)


def latest(seen: Sightings) -> object:
    found = seen.latest(LEASE)
    return found and found.body


def ours(name: str) -> bool:
    return name == LEASE


def test_what_is_older_is_no_news(seen: Sightings) -> None:
    assert seen.see(LEASE, lease(10, "b"), 1.0)[1]

    sighting, is_news = seen.see(LEASE, lease(9, "a"), 2.0)

    assert not is_news
    assert sighting.body == record("a")  # for whoever read it
    assert latest(seen) == record("b")
    assert not seen.see(LEASE, lease(10, "b"), 3.0)[1]
    assert seen.see(LEASE, lease(11, "c"), 4.0)[1]


def test_an_old_deletion_does_not_undo_what_was_made_since(seen: Sightings) -> None:
    seen.see(LEASE, lease(10, "a"), 1.0)
    seen.see(LEASE, lease(15, "b", uid="other"), 2.0)

    assert not seen.see_deleted(LEASE, 12, 3.0)
    assert latest(seen) == record("b")
    assert seen.see_deleted(LEASE, 16, 4.0)
    assert latest(seen) is None
    assert not seen.see_deleted(LEASE, 16, 5.0)


def test_what_was_deleted_does_not_come_back_by_a_late_answer(seen: Sightings) -> None:
    seen.see(LEASE, lease(10, "a"), 1.0)
    seen.see_deleted(LEASE, 12, 2.0)

    assert not seen.see(LEASE, lease(11, "a"), 3.0)[1]
    assert latest(seen) is None
    assert seen.see(LEASE, lease(13, "b", uid="other"), 4.0)[1]


def test_an_answer_that_there_is_none_says_nothing_of_what_was_seen_since(seen: Sightings) -> None:
    seen.see(LEASE, lease(10, "a"), 5.0)

    assert not seen.see_absent(LEASE, asked_at=4.0)
    assert latest(seen) == record("a")
    assert seen.see_absent(LEASE, asked_at=6.0)
    assert latest(seen) is None
    assert not seen.see_absent(LEASE, asked_at=7.0)


def test_a_list_does_not_undo_what_was_written_while_it_was_on_its_way(seen: Sightings) -> None:
    seen.see(LEASE, lease(10, "a"), 5.0)

    assert seen.replace(ours, {LEASE: lease(9)}, 4.0, 6.0) == ([], [])
    assert seen.replace(ours, {}, 4.0, 6.0) == ([], [])
    assert latest(seen) == record("a")


def test_a_later_list_counts_for_more_even_when_the_cluster_went_back(seen: Sightings) -> None:
    seen.see(LEASE, lease(1000, "a"), 1.0)

    assert seen.replace(ours, {LEASE: lease(500, "b")}, 4.0, 6.0) == ([LEASE], [])
    assert latest(seen) == record("b")
    assert seen.replace(ours, {LEASE: lease(500, "b")}, 7.0, 8.0) == ([], [])
    assert seen.replace(ours, {}, 9.0, 10.0) == ([], [LEASE])
    assert latest(seen) is None


def test_a_list_says_nothing_of_documents_it_is_not_about(seen: Sightings) -> None:
    seen.see(LEASE, lease(10, "a"), 1.0)

    assert seen.replace(lambda name: name != LEASE, {}, 4.0, 6.0) == ([], [])
    assert latest(seen) == record("a")


def test_absent_documents_are_forgotten_in_the_end(seen: Sightings) -> None:
    for number in range(10):
        seen.see_absent(f"submitter/{number}", 1.0)

    seen.replace(ours, {}, 50.0, 50.0)
    assert seen.latest("submitter/1") is not None
    seen.replace(ours, {}, 70.0, 70.0)
    assert seen.latest("submitter/1") is None


def test_only_the_objects_that_were_seen_last_are_kept(seen: Sightings) -> None:
    for number in range(1, 200):
        seen.keep(LEASE, lease(number), b"")

    assert seen.kept(LEASE, f"{UID}/199") is not None
    assert seen.kept(LEASE, f"{UID}/1") is None
    assert seen.kept("ledger", f"{UID}/199") is None


def test_a_version_that_is_no_number_is_always_news(seen: Sightings) -> None:
    assert (order_of(f"{UID}/12"), order_of("12"), order_of("x"), order_of("")) == (12, 12, 0, 0)
    found = lease(0)
    for text in ("b", "a"):
        found["metadata"]["resourceVersion"] = text
        assert seen.see(LEASE, found, 1.0)[1]


def test_a_sighting_of_what_is_absent_is_an_absent_document(seen: Sightings) -> None:
    seen.see_absent(LEASE, 1.0)
    sighting = seen.latest(LEASE)
    assert sighting is not None

    snapshot = sighting.snapshot(DATE, is_fresh=False)

    assert (snapshot.version, snapshot.body, snapshot.stamped_at) == (ABSENT, None, None)
