"""Documents in a real namespace keep the contract of a store, among whatever else writes there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from kube_stage import Stage
from waiting_stage import CLOCK

from blastyard.admission.lease import SubmitLease
from blastyard.admission.ledger import encode
from blastyard.admission.port import ABSENT, LEASE, LEDGER
from blastyard.domain.errors import Misconfigured
from blastyard.kube.error import ServerTrouble
from blastyard.kube.outcome import Object
from blastyard.kube.resource import LEASES
from blastyard.testing.contract_cluster_documents import KubernetesDocumentStoreContract
from blastyard.testing.contract_documents import SOON, OpenStore
from blastyard.testing.controlplane import ControlPlane

AT = "2026-12-01T00:16:40.000000Z"


def record(holder: str = "", renewed: str | None = None) -> bytes:
    """The body of a submit lease."""
    return encode(SubmitLease(holder, renew_time=renewed))


@pytest.fixture
def stage(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(control_plane, namespace, tmp_path)
    yield stage
    stage.close()


class TestContract(KubernetesDocumentStoreContract):
    """Each store is one of a process of its own: with its own connections and informer."""

    @pytest.fixture
    def open_store(self, stage: Stage) -> OpenStore:
        return lambda: stage.store(follows=True)


def test_the_role_that_is_installed_suffices_for_everything_but_deleting_the_ledger(
    stage: Stage,
) -> None:
    token = stage.account()
    store, other = stage.store(token, follows=True), stage.store(token, follows=True)
    watch = other.watch()
    lease = store.swap(LEASE, store.read(LEASE).version, record("blastyard-1-1", AT))
    ledger = store.swap(LEDGER, store.read(LEDGER).version, b"{}")
    mine = store.swap("submitter/me", ABSENT, b"me")
    assert lease is not None
    assert ledger is not None
    assert mine is not None

    assert store.swap(LEASE, lease.version, record()) is not None
    assert store.swap(LEDGER, ledger.version, b"[]") is not None
    while other.glance(LEDGER).body != b"[]" or other.glance(LEASE).body != record():
        assert watch.wait(SOON)
    assert store.swap("submitter/me", mine.version, None) is not None
    assert dict(store.scan("submitter/")) == {}
    with pytest.raises(Misconfigured, match="delete configmaps"):
        store.swap(LEDGER, store.read(LEDGER).version, None)


def test_an_empty_holder_is_written_and_restamps_the_lease(stage: Stage) -> None:
    store = stage.store()
    made = store.swap(LEASE, ABSENT, record("blastyard-1-1", AT))
    assert made is not None
    cleared = store.swap(LEASE, made.version, record())
    assert cleared is not None
    (entry,) = _lease(stage)["metadata"]["managedFields"]
    again = store.swap(LEASE, cleared.version, record())

    assert _lease(stage)["spec"] == {"holderIdentity": ""}
    assert entry["manager"] == "blastyard"
    assert "f:holderIdentity" in entry["fieldsV1"]["f:spec"]
    assert again is not None
    assert again.version != cleared.version


def test_fields_of_others_are_kept_on_the_submit_lease(stage: Stage) -> None:
    spec = {
        "holderIdentity": "",
        "leaseTransitions": 3,
        "acquireTime": "2026-01-01T02:00:00.000001+02:00",
    }
    name = f"elb-blast-submit-{stage.namespace}"
    metadata = {"name": name, "labels": {"a": "b"}, "annotations": {"c": "d"}}
    path = f"/apis/coordination.k8s.io/v1/namespaces/{stage.namespace}/leases"
    stage.plane.admin.send("POST", path, {"metadata": metadata, "spec": spec}).expect(201)
    store = stage.store()

    done = store.swap(LEASE, store.read(LEASE).version, record("blastyard-1-1", AT))

    assert done is not None
    kept = _lease(stage)
    assert kept["spec"] == {
        "holderIdentity": "blastyard-1-1",
        "renewTime": AT,
        "leaseTransitions": 3,
    }
    assert (kept["metadata"]["labels"], kept["metadata"]["annotations"]) == ({"a": "b"}, {"c": "d"})


def test_a_lease_that_is_being_deleted_counts_as_held(stage: Stage) -> None:
    store = stage.store()
    store.swap(LEASE, ABSENT, record())
    name = f"elb-blast-submit-{stage.namespace}"
    client = stage.client()
    keep = {"metadata": {"finalizers": ["example.org/keep"]}}
    client.patch(LEASES, name, keep)
    client.delete(LEASES, name, _lease(stage)["metadata"]["uid"])

    assert store.read(LEASE).body == record("being deleted", "being deleted")

    client.patch(LEASES, name, {"metadata": {"finalizers": None}})
    assert store.read(LEASE).version == ABSENT


def test_a_ledger_of_the_largest_size_is_swapped_and_a_larger_one_refused(stage: Stage) -> None:
    store = stage.store()
    made = store.swap(LEDGER, ABSENT, b"x" * 1_000_000)
    assert made is not None

    with pytest.raises(ServerTrouble, match="422"):
        store.swap(LEDGER, made.version, b"x" * 1_100_000)

    assert store.read(LEDGER).version == made.version


def test_the_time_of_a_store_is_that_of_the_server_or_less(stage: Stage) -> None:
    store = stage.store()
    told = [(store.read(LEASE).now, CLOCK.now()) for _ in range(200)]  # the same machine
    behind = [now - said for said, now in told]

    assert min(behind) >= timedelta(0)
    assert behind[-1] <= timedelta(seconds=1.1)


def _lease(stage: Stage) -> Object:
    found = stage.client().get(LEASES, f"elb-blast-submit-{stage.namespace}")
    assert found is not None
    return found.object
