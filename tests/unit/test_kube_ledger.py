"""Ledger and submitters in a namespace, their time, and glances without an informer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_memory import (
    CONFIGMAPS,
    LEASES,
    LEDGER_NAME,
    NAMESPACE,
    Cluster,
    Hand,
    record,
)
from kube_script import Script, status

from blastyard.admission.kubernetes import codec
from blastyard.admission.kubernetes.documents import KubernetesDocumentStore
from blastyard.admission.lease import Held, judge
from blastyard.admission.port import ABSENT, LEASE, LEDGER, Snapshot
from blastyard.admission.record import _see
from blastyard.admission.timing import Timings
from blastyard.domain.errors import Unavailable
from blastyard.kube.client import Client
from blastyard.kube.error import ServerTrouble

ME = "submitter/me"


AT = "2026-12-01T00:16:40.000000Z"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(Hand())
    yield cluster
    cluster.close()


def held(snapshot: Snapshot) -> object:
    """Who is inside Gate A, as a gate reads it."""
    return judge(_see(snapshot), Timings())


# -- ledger and submitters -----------------------------------------------------------------------


def test_the_ledger_stands_as_it_is_with_its_fence_beside_it(cluster: Cluster) -> None:
    store = cluster.store()
    body = b'{"uid":"0-1",\n"fence":7,\n"tickets":{}}\n'
    made = store.swap(LEDGER, ABSENT, body)
    assert made is not None
    found = cluster.api.documents("configmaps", NAMESPACE)[LEDGER_NAME]
    assert found["data"] == {"ledger": body.decode(), "fence": "0-1/7"}

    cluster.send("PATCH", f"{CONFIGMAPS}/{LEDGER_NAME}", {"data": {"note": "by hand"}})
    store.swap(LEDGER, store.read(LEDGER).version, b"no ledger at all")

    found = cluster.api.documents("configmaps", NAMESPACE)[LEDGER_NAME]
    assert found["data"] == {"ledger": "no ledger at all", "note": "by hand"}


def test_a_configmap_without_a_ledger_is_an_unreadable_ledger_and_not_an_absent_one(
    cluster: Cluster,
) -> None:
    cluster.send("POST", CONFIGMAPS, {"metadata": {"name": LEDGER_NAME}})

    found = cluster.store().read(LEDGER)

    assert found.body == b""
    assert found.version != ABSENT


def test_a_ledger_that_is_being_deleted_admits_nobody(cluster: Cluster) -> None:
    store = cluster.store()
    store.swap(LEDGER, ABSENT, b"{}")
    keep = {"metadata": {"finalizers": ["example.org/keep"]}}
    cluster.send("PATCH", f"{CONFIGMAPS}/{LEDGER_NAME}", keep)
    version = store.read(LEDGER).version
    cluster.send("DELETE", f"{CONFIGMAPS}/{LEDGER_NAME}")

    for ask in (store.read, store.glance, lambda name: store.scan("")):
        with pytest.raises(Unavailable, match="being deleted") as caught:
            ask(LEDGER)
        assert caught.value.code == "ledger_unreadable"
    assert store.swap(LEDGER, version, b"late") is None


def test_a_sign_of_life_shows_who_and_when_and_changes_the_object(cluster: Cluster) -> None:
    clock = cluster.clock
    assert isinstance(clock, Hand)
    store = cluster.store()
    version: object = ABSENT
    renewed = []
    for _ in range(3):
        done = store.swap(ME, version, b"me")
        assert done is not None
        version = done.version
        (found,) = cluster.api.documents("leases", NAMESPACE).values()
        renewed.append(found["spec"]["renewTime"])
        clock.seconds += 10

    assert found["metadata"]["labels"] == {"blastyard/kind": "submitter"}
    assert found["metadata"]["annotations"] == {"blastyard/submitter": "me"}
    assert found["spec"]["holderIdentity"] == "me"
    assert found["spec"]["leaseDurationSeconds"] == 45
    assert len(set(renewed)) == 3
    assert renewed == sorted(renewed)
    # the first asks what time it is, once
    assert [verb for verb, _, _ in cluster.requests] == ["get", "create", "update", "update"]


def test_a_scan_is_one_request_and_passes_over_what_is_not_a_submitters(cluster: Cluster) -> None:
    store = cluster.store()
    store.swap(ME, ABSENT, b"me")
    (mine,) = cluster.api.documents("leases", NAMESPACE).values()
    copy = {
        "metadata": {"name": "copy", "labels": mine["metadata"]["labels"]},
        "spec": mine["spec"],
    }
    cluster.send("POST", LEASES, copy)
    bare = {"metadata": {"name": "bare", "labels": mine["metadata"]["labels"]}}
    cluster.send("POST", LEASES, bare)
    cluster.put_lease({"holderIdentity": "x"})
    cluster.requests.clear()

    assert list(store.scan("submitter/")) == [ME]
    assert cluster.requests == [("list", "leases", 200)]


# -- time ----------------------------------------------------------------------------------------


@given(
    written=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)),
    age=st.floats(0, 1000),
    behind=st.floats(0, 1),
)
def test_no_age_is_exaggerated_whatever_the_stamp_leaves_out(
    written: datetime, age: float, behind: float
) -> None:
    at = written.replace(tzinfo=UTC)
    now = at + timedelta(seconds=age - min(age, behind))

    told = codec.stamped_at(at.replace(microsecond=0), now)

    assert told is not None
    assert told <= now
    assert now - told <= timedelta(seconds=age)
    assert now - told >= timedelta(seconds=age - behind - 1.001)


def test_a_stamp_of_a_clock_that_was_put_back_stays_in_the_future() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    told = codec.stamped_at(now + timedelta(minutes=10), now)

    assert told is not None
    assert told > now
    assert codec.stamped_at(None, now) is None


def test_without_any_stamp_the_age_is_that_of_what_was_seen_from_here(cluster: Cluster) -> None:
    clock = cluster.clock
    assert isinstance(clock, Hand)
    cluster.put_lease({"holderIdentity": "blastyard-9-1"})
    cluster.put_lease({"holderIdentity": "blastyard-9-1"}, managedFields=[{}])
    assert "managedFields" not in cluster.lease()["metadata"]
    store = cluster.store()
    store.read(LEASE)

    clock.seconds += 29
    young = held(store.read(LEASE))
    clock.seconds += 3
    old = held(store.read(LEASE))

    assert isinstance(young, Held)
    assert not isinstance(old, Held)
    assert isinstance(held(cluster.store().read(LEASE)), Held)  # who has just come


# -- glances without an informer -----------------------------------------------------------------


def test_glances_without_an_informer_are_reads_at_most_one_a_second(cluster: Cluster) -> None:
    clock = cluster.clock
    assert isinstance(clock, Hand)
    store = cluster.store()

    for name in (LEASE, LEDGER):
        cluster.requests.clear()
        glances = [store.glance(name) for _ in range(50)]
        assert len(cluster.requests) == 1
        assert [glance.version for glance in glances] == [ABSENT] * 50
        clock.seconds += 1.5
        store.glance(name)
        assert len(cluster.requests) == 2
        clock.seconds += 1.5


def test_a_server_that_cannot_be_reached_is_not_asked_by_everybody_who_waits(
    cluster: Cluster,
) -> None:
    clock = cluster.clock
    assert isinstance(clock, Hand)
    reset = ServerTrouble("reset", "")
    script = Script(reset, reset, status(404, "NotFound"))
    client = Client(script, NAMESPACE, clock.monotonic)
    store = KubernetesDocumentStore(client, cluster.informer(client), clock.monotonic)

    for tries in (1, 2):
        for _ in range(20):
            with pytest.raises(Unavailable):
                store.glance(LEDGER)
        assert len(script.calls) == tries
        clock.seconds += 1.5

    assert store.glance(LEDGER).version == ABSENT


def test_a_glance_says_whether_it_is_fresh(cluster: Cluster) -> None:
    store = cluster.store()
    store.swap(LEASE, ABSENT, record("a"))

    assert not store.glance(LEASE).is_fresh
    assert store.read(LEASE).is_fresh


def test_a_glance_sees_ones_own_swap_at_once(cluster: Cluster) -> None:
    store = cluster.store()
    store.glance(LEDGER)
    made = store.swap(LEDGER, ABSENT, b"1")
    assert made is not None
    assert store.glance(LEDGER).body == b"1"
    changed = store.swap(LEDGER, made.version, b"2")
    assert changed is not None
    assert store.glance(LEDGER).body == b"2"
    store.swap(LEDGER, changed.version, None)
    assert store.glance(LEDGER).body is None


def test_a_lost_answer_is_raised_and_found_by_reading_again(cluster: Cluster) -> None:
    class Losing:
        """Applies a write, and loses its answer."""

        def __init__(self, wire) -> None:
            self.wire = wire
            self.loses = False

        def send(self, call):
            answer = self.wire.send(call)
            if self.loses and call.method != "GET":
                raise ServerTrouble("reset", "")
            return answer

    wire = Losing(cluster.api)
    client = Client(wire, NAMESPACE, cluster.clock.monotonic)
    store = KubernetesDocumentStore(client, cluster.informer(client), cluster.clock.monotonic)
    made = store.swap(LEASE, ABSENT, record())
    assert made is not None

    wire.loses = True
    with pytest.raises(Unavailable):
        store.swap(LEASE, made.version, record("blastyard-1-1", AT))

    assert store.read(LEASE).body == record("blastyard-1-1", AT)
    wire.loses = False
    assert store.swap(LEASE, made.version, record("blastyard-2-1", AT)) is None


def test_a_seen_lease_may_be_written_back_as_it_was_seen(cluster: Cluster) -> None:
    cluster.put_lease({"holderIdentity": "peer", "renewTime": AT})
    store = cluster.store()
    seen = store.read(LEASE)

    done = store.swap(LEASE, seen.version, record("peer", AT))

    assert done is not None
    assert done.version != seen.version
    assert done.body == seen.body
