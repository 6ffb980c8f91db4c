"""The client against a real API server: what it answers is what the unit tests assume."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kube_stage import Stage

from blastyard.admission.kubernetes.job_sight import SEARCHES, UNSUCCESSFUL, Job, sight
from blastyard.kube.client import Selection
from blastyard.kube.outcome import (
    Absent,
    AlreadyExists,
    Conflict,
    Deleted,
    Found,
    Object,
)
from blastyard.kube.resource import CONFIGMAPS, JOBS, LEASES, Resource
from blastyard.kube.watching import Bookmark, Changed, Gone
from blastyard.testing.controlplane import ControlPlane

SOON = 10.0


@pytest.fixture
def stage(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(control_plane, namespace, tmp_path)
    yield stage
    stage.close()


def named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name}, **more}


def job(name: str, app: str = "blast", **spec: Any) -> Object:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
    labels = {"app": app, "elb-job-id": "s"}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"template": pod, "suspend": True, **spec},
    }


def found(outcome: object) -> Object:
    assert isinstance(outcome, Found), outcome
    return outcome.object


# -- verbs ---------------------------------------------------------------------------------------


def test_an_object_is_made_changed_and_deleted_at_the_version_that_is_named(stage: Stage) -> None:
    client = stage.client()
    assert client.get(CONFIGMAPS, "x") is None

    made = found(client.create(CONFIGMAPS, named("x", data={"a": "1"})))
    assert client.create(CONFIGMAPS, named("x")) == AlreadyExists()
    changed = found(client.replace(CONFIGMAPS, {**made, "data": {"a": "2"}}))
    assert client.replace(CONFIGMAPS, {**made, "data": {"a": "3"}}) == Conflict()
    patched = found(client.patch(CONFIGMAPS, "x", {"data": {"b": "4"}}))
    assert patched["data"] == {"a": "2", "b": "4"}
    assert client.patch(CONFIGMAPS, "y", {}) == Absent()
    stale = {"metadata": {"resourceVersion": changed["metadata"]["resourceVersion"]}}
    assert client.patch(CONFIGMAPS, "x", stale) == Conflict()

    uid, old = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    other = "00000000-0000-4000-8000-000000000000"
    assert client.delete(CONFIGMAPS, "x", other) == Conflict()
    assert client.delete(CONFIGMAPS, "x", uid, old) == Conflict()
    assert client.delete(CONFIGMAPS, "x", uid) == Deleted()
    assert client.delete(CONFIGMAPS, "x", uid) == Absent()
    assert client.replace(CONFIGMAPS, made) == Conflict()


@pytest.mark.parametrize("resource", [LEASES, CONFIGMAPS])
def test_what_was_deleted_or_made_anew_is_not_replaced(stage: Stage, resource: Resource) -> None:
    client = stage.client()
    made = found(client.create(resource, named("x")))
    client.delete(resource, "x", made["metadata"]["uid"])

    assert client.replace(resource, made) == Conflict()
    assert client.get(resource, "x") is None
    again = found(client.create(resource, named("x")))
    assert client.replace(resource, made) == Conflict()
    version = again["metadata"]["resourceVersion"]
    made["metadata"]["resourceVersion"] = version
    assert client.replace(resource, made) == Conflict()


def test_jobs_are_ended_by_their_status_and_deleted_with_what_they_own(stage: Stage) -> None:
    client = stage.client()
    found(client.create(JOBS, job("x")))
    now = "2026-01-01T00:00:00Z"
    failure = [
        {"type": kind, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": now}
        for kind in ("FailureTarget", "Failed")
    ]

    outcome = client.patch(
        JOBS, "x", {"status": {"conditions": failure, "startTime": now}}, "status"
    )

    assert found(outcome)["status"]["conditions"][-1]["type"] == "Failed"
    assert client.delete_collection(JOBS, Selection("elb-job-id=s")) == Deleted()
    assert client.listing(JOBS, Object).items == []


def test_a_list_is_complete_however_many_pages_it_has(stage: Stage) -> None:
    client = stage.client()
    with ThreadPoolExecutor(4) as pool:
        names = [f"x-{number:04}" for number in range(1100)]
        list(pool.map(lambda name: client.create(CONFIGMAPS, named(name)), names))
    stage.requests.clear()

    listing = client.listing(
        CONFIGMAPS, Object, Selection(fields="metadata.name!=kube-root-ca.crt")
    )

    assert sorted(item["metadata"]["name"] for item in listing.items) == names
    assert stage.requests == [("list", "configmaps", 200)] * 3
    assert client.clock.now(listing.received_at).year >= 2026


# -- watches -------------------------------------------------------------------------------------


def test_a_watch_tells_everything_after_the_list(stage: Stage) -> None:
    client = stage.client()
    listing = client.listing(LEASES, Object)
    made = found(client.create(LEASES, named("x")))
    changed = found(client.replace(LEASES, {**made, "spec": {"holderIdentity": "me"}}))
    client.delete(LEASES, "x", made["metadata"]["uid"])

    watching = client.watch(LEASES, Object, listing.version, seconds=30)
    events = watching.events(SOON)
    told = [next(events) for _ in range(3)]
    watching.close()

    assert [type(each) for each in told] == [Changed, Changed, Gone]
    assert [each.object["spec"].get("holderIdentity") for each in told[1:]] == ["me", "me"]  # type: ignore[union-attr]
    assert isinstance(told[1], Changed)
    assert told[1].version == changed["metadata"]["resourceVersion"]
    assert list(events) == []


def test_a_watch_ends_when_its_time_is_over_with_a_bookmark(stage: Stage) -> None:
    client = stage.client()
    told: list[object] = []
    for _ in range(5):  # a busy server may leave one out
        listing = client.listing(LEASES, Object)
        told += client.watch(LEASES, Object, listing.version, seconds=4).events(SOON)
        if told:
            break

    assert [type(each) for each in told] == [Bookmark] * len(told)
    assert told


def test_jobs_are_decoded_to_what_is_needed_of_them(stage: Stage) -> None:
    client = stage.client()
    found(client.create(JOBS, job("a", "finalizer", activeDeadlineSeconds=60)))
    found(client.create(JOBS, job("b", "other")))

    listing = client.listing(JOBS, Job, Selection(SEARCHES, UNSUCCESSFUL))

    (seen,) = map(sight, listing.items)
    assert (seen.name, seen.app, seen.search, seen.has_ended) == ("a", "finalizer", "s", False)
    assert seen.counted.deadline_seconds == 60
    assert seen.counted.created_at.tzinfo is not None
