"""What an API server answers is told apart: values, troubles, and what has to be granted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kube_script import UID, Script, answer, lease, page, status

from blastyard.domain.errors import CallerMistake
from blastyard.kube.client import PAGE, Selection
from blastyard.kube.error import ServerTrouble
from blastyard.kube.outcome import (
    Absent,
    AlreadyExists,
    Conflict,
    Deleted,
    Found,
    Object,
)
from blastyard.kube.resource import JOBS, LEASES

LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/lab/leases"
HTML = b"<html><h1>502 Bad Gateway</h1></html>"


class Named(msgspec.Struct):
    """An item of which only this is needed."""

    metadata: dict[str, str]


# -- verbs ---------------------------------------------------------------------------------------


def test_get_is_one_plain_request_that_no_cache_may_answer() -> None:
    script = Script(answer(lease()))

    assert script.client().get(LEASES, "x") == Found(lease(), 1.0)
    assert [(call.method, call.path, dict(call.query)) for call in script.calls] == [
        ("GET", f"{LEASE_PATH}/x", {})
    ]


def test_what_is_not_there_is_none_only_by_the_servers_own_word() -> None:
    assert Script(status(404, "NotFound", kind="leases")).client().get(LEASES, "x") is None

    for other in (answer(b"404 page not found", 404), answer(HTML, 404), answer({}, 404)):
        with pytest.raises(ServerTrouble, match="answered 404"):
            Script(other).client().get(LEASES, "x")


def test_create_posts_the_kind_and_says_if_it_is_there_already() -> None:
    script = Script(answer(lease(), 201), status(409, "AlreadyExists"))
    client = script.client()

    assert client.create(LEASES, {"metadata": {"name": "x"}}) == Found(lease(), 1.0)
    assert client.create(LEASES, {"metadata": {"name": "x"}}) == AlreadyExists()
    assert (script.calls[0].method, script.calls[0].path) == ("POST", LEASE_PATH)
    assert script.calls[0].query == {"fieldManager": "blastyard"}
    assert script.body(0) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "x"},
    }


@pytest.mark.parametrize(
    "refused", [status(409, "Conflict"), status(404, "NotFound", kind="configmaps")]
)
def test_replacing_what_changed_or_went_is_a_conflict(refused: Any) -> None:
    script = Script(refused)

    assert script.client().replace(LEASES, lease()) == Conflict()
    assert (script.calls[0].method, script.calls[0].path) == ("PUT", f"{LEASE_PATH}/x")


@pytest.mark.parametrize("missing", ["uid", "resourceVersion"])
def test_nothing_is_replaced_without_uid_and_version(missing: str) -> None:
    new = lease()
    del new["metadata"][missing]
    script = Script()

    with pytest.raises(ValueError, match="uid and resourceVersion"):
        script.client().replace(LEASES, new)

    assert script.calls == []


def test_patch_merges_into_an_object_or_its_subresource() -> None:
    script = Script(answer(lease()), status(404, "NotFound"), status(409, "Conflict"))
    client = script.client()

    assert isinstance(client.patch(JOBS, "x", {"status": {}}, "status"), Found)
    assert client.patch(JOBS, "x", {}) == Absent()
    assert client.patch(JOBS, "x", {}) == Conflict()
    call = script.calls[0]
    assert (call.method, call.path) == ("PATCH", "/apis/batch/v1/namespaces/lab/jobs/x/status")
    assert call.content_type == "application/merge-patch+json"
    assert script.observed[0] == ("patch", "jobs/status", 200)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (answer({"kind": "Status", "status": "Success"}), Deleted()),
        (answer(lease()), Deleted()),
        (status(404, "NotFound"), Absent()),
        (status(409, "Conflict", kind="Lease"), Conflict()),
    ],
)
def test_delete_names_the_uid_it_means(said: Any, outcome: object) -> None:
    script = Script(said)

    assert script.client().delete(LEASES, "x", UID, "5") == outcome
    assert script.body() == {
        "preconditions": {"uid": UID, "resourceVersion": "5"},
        "propagationPolicy": "Background",
    }


def test_a_collection_is_deleted_by_a_selector_and_never_as_a_whole() -> None:
    script = Script(answer({"kind": "JobList", "items": []}))
    client = script.client()

    assert client.delete_collection(JOBS, Selection("elb-job-id=x")) == Deleted()
    assert script.calls[0].query == {"labelSelector": "elb-job-id=x"}
    with pytest.raises(ValueError, match="by a selector"):
        client.delete_collection(JOBS, Selection())


@pytest.mark.parametrize("name", ["Lab", "a" * 64, "", "x/y"])
def test_what_cannot_be_a_namespace_is_refused_before_any_request(name: str) -> None:
    with pytest.raises(CallerMistake):
        Script().client(name)


# -- lists ---------------------------------------------------------------------------------------


def test_a_list_has_all_pages_of_one_version() -> None:
    script = Script(page(["a", "b"], "9", "more"), page(["c"], "10"))
    selection = Selection("app=x", "status.successful=0")

    listing = script.client().listing(LEASES, Named, selection)

    assert [item.metadata["name"] for item in listing.items] == ["a", "b", "c"]
    assert (listing.version, listing.sent_at, listing.received_at) == ("9", 0.5, 1.0)
    wanted = {"labelSelector": "app=x", "fieldSelector": "status.successful=0", "limit": str(PAGE)}
    assert [dict(call.query) for call in script.calls] == [wanted, {**wanted, "continue": "more"}]


def test_a_list_that_the_server_forgot_starts_over_and_keeps_nothing() -> None:
    expired = status(410, "Expired")
    script = Script(page(["a"], "8", "more"), expired, page(["b"], "9", "more"), page(["c"]))

    listing = script.client().listing(LEASES, Object)

    assert [item["metadata"]["name"] for item in listing.items] == ["b", "c"]
    assert listing.version == "9"
    assert "continue" not in script.calls[2].query


def test_a_list_that_is_forgotten_again_and_again_is_given_up() -> None:
    script = Script(*[status(410, "Expired")] * 10)

    with pytest.raises(ServerTrouble, match="forgot 3 times"):
        script.client().listing(LEASES, Object)

    assert len(script.calls) == 3


@pytest.mark.parametrize(
    "second",
    [answer(HTML, 502), answer(b'{"metadata":{"resourceVersion":"9"},"items":[{"me'), answer({})],
)
def test_a_list_in_part_is_no_list(second: Any) -> None:
    script = Script(page(["a"], continued="more"), second)

    with pytest.raises(ServerTrouble):
        script.client().listing(LEASES, Object)


def test_an_empty_list_may_be_null() -> None:
    empty = answer({"metadata": {"resourceVersion": "9"}, "items": None})

    assert Script(empty).client().listing(LEASES, Object).items == []
