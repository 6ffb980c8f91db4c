"""The informer on a real API server that is paused, killed and started again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kube_stage import Stage
from waiting_stage import CLOCK, until

from blastyard.admission.kubernetes.documents import KubernetesDocumentStore
from blastyard.admission.kubernetes.job_sight import JobSight
from blastyard.admission.kubernetes.watch import Informer
from blastyard.admission.port import ABSENT, LEDGER
from blastyard.domain.errors import Unavailable
from blastyard.kube.reflector import Pace
from blastyard.kube.resource import CONFIGMAPS, JOBS, LEASES
from blastyard.testing.controlplane import ControlPlane

SOON = 20.0
NAMESPACE = "mistreated"


@pytest.fixture(scope="module")
def mistreated(own_control_plane: ControlPlane) -> ControlPlane:
    own_control_plane.create_namespace(NAMESPACE)
    return own_control_plane


@pytest.fixture
def stage(mistreated: ControlPlane, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(mistreated, NAMESPACE, tmp_path)
    yield stage
    stage.close()


@pytest.fixture
def following(stage: Stage) -> tuple[KubernetesDocumentStore, Informer]:
    """A store whose informer follows, and notices silence soon."""
    client = stage.client()
    pace = Pace(quiet=2.0, shortest_pause=0.05, longest_pause=0.5)
    informer = Informer(client, CLOCK.monotonic, pace=pace)
    informer.start()
    stage.closers.insert(0, informer.close)
    until(lambda: all(map(informer.follows, (LEASES, CONFIGMAPS, JOBS))))
    return KubernetesDocumentStore(client, informer, CLOCK.monotonic), informer


def written(store: KubernetesDocumentStore, body: bytes) -> None:
    assert store.swap(LEDGER, store.read(LEDGER).version, body) is not None


def test_a_server_that_was_killed_is_followed_again(
    mistreated: ControlPlane, stage: Stage, following: tuple[KubernetesDocumentStore, Informer]
) -> None:
    store, informer = following
    other = stage.store()
    written(other, b"before")
    until(lambda: store.glance(LEDGER).body == b"before")

    mistreated.stop_api()
    try:
        with pytest.raises(Unavailable) as caught:
            other.read(LEDGER)
        assert caught.value.code == "cluster_unavailable"
        until(lambda: not informer.follows(LEASES))
    finally:
        mistreated.start_api()
    until(lambda: informer.follows(LEASES) and informer.follows(CONFIGMAPS))
    stage.requests.clear()
    written(other, b"after")

    until(lambda: store.glance(LEDGER).body == b"after")
    # by the stream: nobody had to list or read for it
    assert [each for each in stage.requests if each[0] == "list"] == []
    assert len([each for each in stage.requests if each[0] == "get"]) == 1


def test_a_server_that_stands_still_is_unavailable_and_followed_again(
    mistreated: ControlPlane, stage: Stage, following: tuple[KubernetesDocumentStore, Informer]
) -> None:
    store, informer = following
    written(store, b"1")
    mistreated.pause_api()
    try:
        began = CLOCK.monotonic()
        with pytest.raises(Unavailable, match="nothing came for 5 s"):
            store.read(LEDGER)
        assert CLOCK.monotonic() - began < 6
        until(lambda: not informer.follows(CONFIGMAPS))
    finally:
        mistreated.resume_api()

    until(lambda: informer.follows(CONFIGMAPS))
    written(stage.store(), b"2")
    until(lambda: store.glance(LEDGER).body == b"2")


def test_a_companion_that_is_deleted_unfinished_is_told_from_one_that_succeeded(
    stage: Stage,
) -> None:
    told: list[JobSight] = []
    client = stage.client()
    informer = Informer(client, CLOCK.monotonic, deserted=told.append)
    informer.start()
    stage.closers.insert(0, informer.close)
    until(lambda: informer.follows(JOBS))
    for name in ("cancelled", "succeeds"):
        pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
        labels = {"app": "submit", "elb-job-id": "s"}
        metadata = {"name": name, "labels": labels}
        client.create(JOBS, {"metadata": metadata, "spec": {"template": pod, "suspend": True}})
    until(lambda: len(informer.jobs.all()) == 2)
    now = "2026-01-01T00:00:00Z"
    ends = ("SuccessCriteriaMet", "Complete")
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in ends]
    end = {"succeeded": 1, "startTime": now, "completionTime": now, "conditions": conditions}

    client.patch(JOBS, "succeeds", {"status": end}, "status")
    until(lambda: [each.name for each in informer.jobs.all()] == ["cancelled"])
    for name in ("succeeds", "cancelled"):
        found = client.get(JOBS, name)
        assert found is not None
        client.delete(JOBS, name, found.object["metadata"]["uid"])

    until(lambda: [each.name for each in told] == ["cancelled"])
    assert informer.jobs.all() == []


def test_glances_before_anything_was_heard_are_reads(stage: Stage) -> None:
    store = stage.store()
    written(store, b"x")

    assert stage.store().glance(LEDGER).body == b"x"
    assert stage.store().glance("submitter/nobody").version == ABSENT
