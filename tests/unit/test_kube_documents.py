"""Documents in a namespace: one request a swap, nobody else's work touched, no age exaggerated."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from kube_memory import (
    LEASE_NAME,
    LEASES,
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
from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Misconfigured
from blastyard.testing.contract_cluster_documents import KubernetesDocumentStoreContract
from blastyard.testing.contract_documents import OpenStore

ME = "submitter/me"
AT = "2026-12-01T00:16:40.000000Z"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(Hand())
    yield cluster
    cluster.close()


class TestContractInMemory(KubernetesDocumentStoreContract):
    @pytest.fixture
    def open_store(self) -> Iterator[OpenStore]:
        cluster = Cluster(SystemClock())
        yield lambda: cluster.following()[0]
        cluster.close()


def held(snapshot: Snapshot) -> object:
    """Who is inside Gate A, as a gate reads it."""
    return judge(_see(snapshot), Timings())


# -- requests ------------------------------------------------------------------------------------


def test_a_swap_is_one_request_after_a_read_and_after_ones_own_swap(cluster: Cluster) -> None:
    store = cluster.store()
    made = store.swap(LEDGER, store.read(LEDGER).version, b"1")
    assert made is not None
    changed = store.swap(LEDGER, made.version, b"2")
    assert changed is not None
    other = cluster.store()
    assert other.swap(LEDGER, other.read(LEDGER).version, b"3") is not None
    assert store.swap(LEDGER, changed.version, b"4") is None

    assert [verb for verb, _, _ in cluster.requests] == [
        "get", "create", "update", "get", "update", "update",
    ]  # fmt: skip


def test_a_version_that_was_never_seen_here_is_fetched_first(cluster: Cluster) -> None:
    made = cluster.store().swap(LEDGER, ABSENT, b"1")
    assert made is not None
    cluster.requests.clear()

    assert cluster.store().swap(LEDGER, made.version, b"2") is not None
    assert cluster.store().swap(LEDGER, made.version, b"3") is None

    assert [verb for verb, _, _ in cluster.requests] == ["get", "update", "get"]


def test_a_version_of_another_document_is_a_conflict(cluster: Cluster) -> None:
    store = cluster.store()
    mine = store.swap(ME, ABSENT, b"1")
    assert mine is not None
    assert store.swap(LEDGER, ABSENT, b"1") is not None

    assert store.swap(LEDGER, mine.version, b"2") is None
    assert store.swap(LEDGER, mine.version, None) is None


def test_what_was_deleted_is_not_made_anew_by_a_late_swap(cluster: Cluster) -> None:
    store = cluster.store()
    seen = store.swap(LEASE, ABSENT, record("a"))
    assert seen is not None
    cluster.send("DELETE", f"{LEASES}/{LEASE_NAME}")

    assert store.swap(LEASE, seen.version, record("b")) is None

    cluster.put_lease({"holderIdentity": "peer"})
    assert store.swap(LEASE, seen.version, record("b")) is None
    assert cluster.lease()["spec"]["holderIdentity"] == "peer"


def test_the_submit_lease_is_never_deleted(cluster: Cluster) -> None:
    store = cluster.store()
    made = store.swap(LEASE, ABSENT, record())
    assert made is not None

    for version in (ABSENT, made.version):
        with pytest.raises(ValueError, match="never deleted"):
            store.swap(LEASE, version, None)

    assert store.read(LEASE).version == made.version


@pytest.mark.parametrize("name", ["", "submitter", "submitter/", "other", "lease/x"])
def test_what_is_no_document_of_admission_is_the_callers_mistake(
    cluster: Cluster, name: str
) -> None:
    store = cluster.store()
    for ask in (store.read, store.glance, lambda name: store.swap(name, ABSENT, b"x")):
        with pytest.raises(ValueError, match="no document of admission"):
            ask(name)
    assert cluster.requests == []


def test_a_policy_of_the_cluster_that_refuses_a_document_is_named(cluster: Cluster) -> None:
    message = "leases \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied"
    script = Script(status(404, "NotFound"), status(422, "Invalid", message))
    client = script.client()
    store = KubernetesDocumentStore(client, cluster.informer(client), lambda: 1.0)

    with pytest.raises(Misconfigured, match=r"refuses the lease: .*'p'"):
        store.swap(LEASE, store.read(LEASE).version, record("a"))


# -- the submit lease among peers ----------------------------------------------------------------


def test_only_our_own_fields_of_a_lease_are_changed(cluster: Cluster) -> None:
    cluster.put_lease(
        {"holderIdentity": "peer", "leaseTransitions": 4, "acquireTime": AT},
        labels={"a": "b"},
        annotations={"c": "d"},
        finalizers=["example.org/keep"],
    )
    store = cluster.store()
    seen = store.read(LEASE)

    store.swap(LEASE, seen.version, record("blastyard-1-1", AT, lease_duration_seconds=900))

    kept, spec = cluster.lease()["metadata"], cluster.lease()["spec"]
    assert (kept["labels"], kept["annotations"]) == ({"a": "b"}, {"c": "d"})
    assert kept["finalizers"] == ["example.org/keep"]
    assert spec == {
        "holderIdentity": "blastyard-1-1",
        "leaseDurationSeconds": 900,
        "renewTime": AT,
        "leaseTransitions": 4,
    }


def test_a_lease_survives_peers_who_put_the_whole_body(cluster: Cluster) -> None:
    store = cluster.store()
    made = store.swap(LEASE, ABSENT, record("blastyard-1-1", AT))
    assert made is not None
    cluster.put_lease({"holderIdentity": "peer-1", "renewTime": AT})  # the labels are gone
    cluster.put_lease({})

    seen = store.read(LEASE)

    assert seen.body == record()
    assert store.swap(LEASE, seen.version, record("blastyard-2-1", AT)) is not None
    outcome = held(store.read(LEASE))
    assert isinstance(outcome, Held)
    assert outcome.holder == "blastyard-2-1"


@pytest.mark.parametrize(
    ("spec", "body"),
    [
        ({}, record()),
        ({"holderIdentity": ""}, record()),
        ({"holderIdentity": None, "renewTime": None, "acquireTime": None}, record()),
        ({"holderIdentity": " "}, record(" ")),
        (
            {"holderIdentity": "p", "leaseDurationSeconds": 30, "renewTime": AT, "acquireTime": AT},
            record("p", AT, lease_duration_seconds=30, acquire_time=AT),
        ),
        (
            {"holderIdentity": "p", "renewTime": "2026-12-01T01:16:40.000000+01:00"},
            record("p", AT),
        ),
    ],
)
def test_whatever_peers_write_is_read_as_they_mean_it(
    cluster: Cluster, spec: dict[str, object], body: bytes
) -> None:
    cluster.put_lease(spec)

    assert cluster.store().read(LEASE).body == body


def test_a_lease_without_a_spec_is_free() -> None:
    bare = {"metadata": {"name": LEASE_NAME, "uid": "u", "resourceVersion": "1"}}

    assert codec.body_in(LEASE, bare) == record()
    assert codec.body_in(LEASE, {**bare, "spec": None}) == record()


def test_times_in_any_form_are_left_as_they_are() -> None:
    for text in ("2026-12-01T00:00:00Z", "yesterday", "2026-12-01T00:00:00.1234567+05:30"):
        found = {
            "metadata": {"name": LEASE_NAME, "uid": "u", "resourceVersion": "1"},
            "spec": {"holderIdentity": "p", "renewTime": text, "acquireTime": text},
        }
        assert codec.body_in(LEASE, found) == record("p", text, acquire_time=text)


def test_a_lease_that_is_being_deleted_is_nobodys_to_take(cluster: Cluster) -> None:
    cluster.put_lease({"holderIdentity": ""}, finalizers=["example.org/keep"])
    cluster.send("DELETE", f"{LEASES}/{LEASE_NAME}")
    store = cluster.store()

    for seen in (store.read(LEASE), store.glance(LEASE)):
        outcome = held(seen)
        assert isinstance(outcome, Held)
        assert outcome.holder == "being deleted"
        assert outcome.until is None


def test_a_cleared_lease_is_stamped_by_the_clearing(cluster: Cluster) -> None:
    """A field that is only taken away would leave the stamp of the last renewal."""
    clock = cluster.clock
    assert isinstance(clock, Hand)
    store = cluster.store()
    made = store.swap(LEASE, ABSENT, record("blastyard-1-1", AT))
    assert made is not None
    clock.seconds += 100

    cleared = store.swap(LEASE, made.version, record())

    assert cleared is not None
    assert cleared.body == record()
    assert cleared.stamped_at is not None
    assert cleared.now - cleared.stamped_at <= timedelta(seconds=1)
    assert cluster.lease()["spec"] == {"holderIdentity": ""}


def test_the_same_body_written_again_is_a_new_writing_with_a_new_stamp(cluster: Cluster) -> None:
    """Which is how a stamp of a clock that was put back is made good."""
    clock = cluster.clock
    assert isinstance(clock, Hand)
    for name, body in ((LEASE, record("blastyard-1-1", AT)), (LEDGER, b"{}"), (ME, b"me")):
        store = cluster.store()
        versions = [store.read(name).version]
        for _ in range(4):
            clock.seconds += 100
            done = store.swap(name, versions[-1], body)
            assert done is not None
            assert done.body == body
            assert done.stamped_at is not None
            assert done.now - done.stamped_at <= timedelta(seconds=1)
            versions.append(done.version)
        assert len(set(versions)) == 5
