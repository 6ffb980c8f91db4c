"""The API server in memory does what a test tells it to; the rest is in its contract."""

from __future__ import annotations

from itertools import islice

import msgspec
import pytest
from api_stage import Stage, types

from blastyard.kube.wire import Call
from blastyard.testing.contract_api import Json, Said, config_map, job

QUIET = 10.0
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_pages_are_no_larger_than_the_server_likes(stage: Stage) -> None:
    for name in "abc":
        stage.maps.post(config_map(name, {}))
    stage.wire.page_size = 2

    first = stage.maps.list(limit="500")
    second = stage.maps.list(limit="500", continue_=first.document["metadata"]["continue"])

    assert [first.names, second.names] == [["a", "b"], ["c"]]
    assert stage.maps.list().names == ["a", "b", "c"]


def test_pages_can_expire_while_watches_go_on(stage: Stage) -> None:
    for name in "ab":
        stage.maps.post(config_map(name, {}))
    begin = str(stage.wire.revision)
    token = stage.maps.list(limit="1").document["metadata"]["continue"]

    stage.wire.expire_pages()

    assert stage.maps.list(limit="1", continue_=token).outcome == (410, "Expired")
    stage.maps.delete("a")
    stream = stage.watch(resourceVersion=begin)
    assert types(islice(stream.lines(QUIET), 1)) == ["DELETED"]


def allowed(stage: Stage, verb: str, resource: str) -> bool:
    """What an access review says."""
    attributes = {"verb": verb, "resource": resource, "namespace": "lab"}
    body = msgspec.json.encode({"spec": {"resourceAttributes": attributes}})
    said = Said(stage.wire.send(Call("POST", REVIEW, body=body)))
    assert said.status == 201
    return bool(said.document["status"]["allowed"])


def test_what_is_forbidden_is_403_and_reviews_say_so(stage: Stage) -> None:
    stage.maps.post(config_map("a", {}))
    stage.wire.access.forbidden |= {("update", "configmaps"), ("watch", "*")}

    said = stage.maps.put("a", config_map("a", {"x": "y"}))

    assert said.outcome == (403, "Forbidden")
    assert 'cannot update resource "configmaps" in API group ""' in said.document["message"]
    assert stage.maps.get("a").status == 200
    assert stage.watch().status == 403
    reviewed = [("update", "configmaps"), ("get", "configmaps"), ("watch", "jobs")]
    assert [allowed(stage, *one) for one in reviewed] == [False, True, False]


def test_a_credential_that_is_none_is_401_everywhere(stage: Stage) -> None:
    stage.wire.access.known = False

    assert stage.maps.list().outcome == (401, "Unauthorized")
    assert Said(stage.wire.send(Call("POST", REVIEW, body=b"{}"))).status == 401
    assert stage.watch().status == 401


def test_a_namespace_that_is_removed_takes_everything_with_it(stage: Stage) -> None:
    stream = stage.watch()
    stage.maps.post(config_map("a", {}, finalizers=["blastyard.test/held"]))

    stage.wire.remove_namespace("lab")

    assert types(islice(stream.lines(QUIET), 2)) == ["ADDED", "DELETED"]
    assert stage.maps.post(config_map("a", {})).status == 404
    stage.wire.add_namespace("lab")
    assert stage.maps.post(config_map("a", {})).status == 201


def test_every_writer_is_named(stage: Stage) -> None:
    stage.maps.post(config_map("a", {"x": "1", "y": "1"}))
    peer = stage.wire.client("peer")
    body = msgspec.json.encode(config_map("a", {"x": "2", "y": "1"}))
    stage.scheduler.run(lambda: False, 5.0)

    said = Said(peer.send(Call("PUT", f"{stage.maps.collection}/a", body=body)))

    entries = said.document["metadata"]["managedFields"]
    written = {entry["manager"]: (entry["time"], entry["fieldsV1"]) for entry in entries}
    assert written == {
        "blastyard": ("2031-05-01T12:00:00Z", {"f:data": {".": {}, "f:y": {}}}),
        "peer": ("2031-05-01T12:00:05Z", {"f:data": {"f:x": {}}}),
    }


def test_two_servers_of_one_seed_give_the_same_uids() -> None:
    def uids(seed: int) -> list[str]:
        maps = Stage(seed).maps
        return [maps.post(config_map(name, {})).uid for name in "ab"]

    assert uids(1) == uids(1) != uids(2)
    assert len(set(uids(1))) == 2


@pytest.mark.parametrize(
    ("spec", "due"),
    [
        ({}, None),
        ({"activeDeadlineSeconds": 90}, 90.0),
        ({"activeDeadlineSeconds": 90, "suspend": True}, None),
        ({"activeDeadlineSeconds": 90, "managedBy": "x.test/y"}, None),
    ],
)
def test_it_is_known_when_a_job_will_be_due(stage: Stage, spec: Json, due: float | None) -> None:
    begin = stage.now()
    stage.jobs.post(job("a", **spec))

    found = stage.wire.next_due()

    assert (found and (found - begin).total_seconds()) == due


def test_a_job_is_due_no_earlier_than_it_says(stage: Stage) -> None:
    stage.jobs.post(job("a", activeDeadlineSeconds=90, ttlSecondsAfterFinished=30))
    fate: list[tuple[float, str]] = []
    for at in (89.0, 90.0, 119.0, 120.0):
        stage.scheduler.run(lambda: False, at)
        stage.wire.tick()
        found = stage.jobs.get("a")
        conditions = found.document.get("status", {})
        state = "gone" if found.status == 404 else str("conditions" in conditions)
        fate.append((at, state))

    assert fate == [(89.0, "False"), (90.0, "True"), (119.0, "True"), (120.0, "gone")]
    assert stage.wire.next_due() is None


def test_a_job_that_is_resumed_begins_then(stage: Stage) -> None:
    stage.jobs.post(job("a", suspend=True, activeDeadlineSeconds=90))
    stage.scheduler.run(lambda: False, 500.0)
    stage.jobs.patch("a", {"spec": {"suspend": False}})

    stage.wire.tick()

    status = stage.jobs.get("a").document["status"]
    assert status["startTime"] == "2031-05-01T12:08:20Z"
    assert [(one["type"], one["status"]) for one in status["conditions"]] == [
        ("Suspended", "False")
    ]


def test_the_controller_is_the_writer_of_a_jobs_status(stage: Stage) -> None:
    stage.jobs.post(job("a"))
    stage.wire.complete("lab", "a")

    entries = stage.jobs.get("a").document["metadata"]["managedFields"]

    writers = {(entry["manager"], entry.get("subresource", "")) for entry in entries}
    assert writers == {("blastyard", ""), ("kube-controller-manager", "status")}


def test_a_job_that_is_not_there_cannot_end(stage: Stage) -> None:
    with pytest.raises(KeyError):
        stage.wire.complete("lab", "a")
    with pytest.raises(KeyError):
        stage.wire.fail("lab", "a")


@pytest.mark.parametrize(
    "call",
    [
        Call("GET", "/api/v1/namespaces/lab/pods"),
        Call("GET", "/apis/batch/v1/jobs"),
        Call("GET", "/api/v1/namespaces/lab/configmaps", {"watch": "1"}),
        Call("POST", "/api/v1/namespaces/lab/configmaps", {}, b'{"metadata":{"generateName":"a"}}'),
        Call("GET", "/api/v1/namespaces/lab/configmaps", {"resourceVersionMatch": "Exact"}),
    ],
)
def test_what_is_not_done_here_says_so_rather_than_something_else(stage: Stage, call: Call) -> None:
    with pytest.raises(NotImplementedError):
        stage.wire.send(call)
