"""What an API server answers is told apart: values, troubles, and what has to be granted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from kube_script import DATE, UID, Said, Script, answer, bookmark, event, lease, page, status

from blastyard.domain.errors import CallerMistake, Misconfigured, Unavailable
from blastyard.kube.client import PAGE, Client, Selection
from blastyard.kube.error import ServerTrouble
from blastyard.kube.outcome import (
    Absent,
    AlreadyExists,
    Conflict,
    Deleted,
    Denied,
    Found,
    Object,
)
from blastyard.kube.resource import JOBS, LEASES, Resource
from blastyard.kube.watching import Bookmark, Changed, Expired, Gone

LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/lab/leases"
HTML = b"<html><h1>502 Bad Gateway</h1></html>"

VERBS: dict[str, Callable[[Client], object]] = {
    "get": lambda client: client.get(LEASES, "x"),
    "create": lambda client: client.create(LEASES, {"metadata": {"name": "x"}}),
    "update": lambda client: client.replace(LEASES, lease()),
    "patch": lambda client: client.patch(LEASES, "x", {}),
    "delete": lambda client: client.delete(LEASES, "x", UID),
    "deletecollection": lambda client: client.delete_collection(LEASES, Selection("a=b")),
    "list": lambda client: client.listing(LEASES, Object),
}


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
    script = Script(page(["a", "b"], continued="more"), page(["c"]))
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


# -- what is raised ------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_credential_is_no_answer_to_anything(verb: str) -> None:
    with pytest.raises(Misconfigured, match="does not accept this credential") as caught:
        VERBS[verb](Script(status(401, "Unauthorized")).client())

    assert caught.value.code == "cluster_forbidden"


@pytest.mark.parametrize("verb", VERBS)
def test_a_credential_that_may_not_is_told_what_to_grant(verb: str) -> None:
    message = f'leases.coordination.k8s.io "x" is forbidden: User "me" cannot {verb} resource'

    with pytest.raises(Misconfigured) as caught:
        VERBS[verb](Script(status(403, "Forbidden", message)).client())

    error = caught.value
    assert error.code == "cluster_forbidden"
    assert f"{verb} leases.coordination.k8s.io" in error.message
    assert 'namespace "lab"' in error.message
    assert 'User "me"' in error.message
    rule = f'"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["{verb}"]'
    assert rule in error.next_step
    # a rule with names never allows these
    assert ("resourceNames" in error.next_step) == (verb in ("get", "update", "patch", "delete"))


@pytest.mark.parametrize("code", [403, 422])
def test_what_an_admission_policy_refuses_is_a_value(code: int) -> None:
    message = (
        "leases \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' "
        "denied request: no"
    )
    refused = status(code, "Forbidden" if code == 403 else "Invalid", message)

    for verb in ("create", "update", "patch", "delete"):
        assert VERBS[verb](Script(refused).client()) == Denied(code, message)


def test_a_quota_that_is_used_up_passes_and_is_not_the_credentials_fault() -> None:
    message = 'jobs.batch "x" is forbidden: exceeded quota: q, used: count/jobs.batch=1'

    with pytest.raises(ServerTrouble, match="exceeded quota"):
        VERBS["create"](Script(status(403, "Forbidden", message)).client())


def test_a_namespace_that_is_missing_or_going_is_named() -> None:
    missing = status(404, "NotFound", 'namespaces "lab" not found', kind="namespaces", name="lab")
    going = status(403, "Forbidden", causes=[{"reason": "NamespaceTerminating"}])

    for said, words in ((missing, "no namespace 'lab'"), (going, "'lab' is being deleted")):
        with pytest.raises(Misconfigured, match=words) as caught:
            VERBS["create"](Script(said).client())
        assert caught.value.code == "cluster_misconfigured"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "said",
    [
        answer(HTML, 502),
        answer(HTML, 403),
        answer(HTML, 401),
        answer(HTML, 409),
        answer(HTML, 200),
        answer(b"", 200),
        answer(b'{"kind":"Lease","meta', 200),
        answer(b"[]", 200),
        answer({}, 200),
        answer(lease("other"), 302),
        status(500, "InternalError"),
        status(503, "ServiceUnavailable"),
        status(400, "BadRequest", "no"),
        status(422, "Invalid", "no"),
        answer(b"\xff\xfe", 200),
    ],
)
def test_what_tells_nothing_is_unavailable(verb: str, said: Any) -> None:
    with pytest.raises(ServerTrouble) as caught:
        VERBS[verb](Script(said).client())

    assert caught.value.code == "cluster_unavailable"
    assert caught.value.status == said.status
    assert caught.value.next_step


@pytest.mark.parametrize("verb", ["get", "create", "update", "patch"])
@pytest.mark.parametrize(
    "wrong",
    [
        lease("another"),
        {"kind": "Lease", "metadata": {"name": "x", "uid": UID}},
        {"kind": "Lease", "metadata": {"name": "x", "resourceVersion": "5"}},
        {"kind": "Lease", "metadata": None},
    ],
)
def test_another_object_than_that_asked_for_is_not_believed(verb: str, wrong: Object) -> None:
    with pytest.raises(ServerTrouble, match="cannot be read"):
        VERBS[verb](Script(answer(wrong)).client())


def test_what_a_throttling_server_asks_for_is_passed_on() -> None:
    by_header = answer({"kind": "Status", "reason": "TooManyRequests"}, 429, retry_after=3.0)
    by_body = status(429, "TooManyRequests", retryAfterSeconds=7)

    for said, seconds in ((by_header, 3.0), (by_body, 7.0)):
        with pytest.raises(ServerTrouble) as caught:
            VERBS["update"](Script(said).client())
        assert (caught.value.status, caught.value.retry_after) == (429, seconds)


@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_sent_twice(verb: str) -> None:
    for trouble in (ServerTrouble("reset", ""), status(500, "InternalError"), answer(HTML, 429)):
        script = Script(trouble, answer(lease()))
        with pytest.raises(Unavailable):
            VERBS[verb](script.client())
        assert len(script.calls) == 1


# -- clock and observer --------------------------------------------------------------------------


def test_every_answer_tells_the_time_refusals_included() -> None:
    client = Script(status(404, "NotFound")).client()

    assert client.get(LEASES, "x") is None
    assert client.clock.now(1.0) == DATE


def test_every_request_is_observed_lost_ones_included() -> None:
    script = Script(answer(lease()), ServerTrouble("reset", ""), page(["a"]), Said())
    client = script.client()

    client.get(LEASES, "x")
    with pytest.raises(ServerTrouble):
        client.get(LEASES, "x")
    client.listing(LEASES, Object)
    client.watch(LEASES, Object, "9")

    assert script.observed == [
        ("get", "leases", 200),
        ("get", "leases", 0),
        ("list", "leases", 200),
        ("watch", "leases", 200),
    ]


def test_what_belongs_to_the_cluster_has_no_namespace_in_its_path() -> None:
    nodes = Resource("", "v1", "nodes", "Node", namespaced=False)
    script = Script(status(403, "Forbidden"))

    with pytest.raises(Misconfigured, match='get nodes "x" in the cluster'):
        script.client().get(nodes, "x")
    assert script.calls[0].path == "/api/v1/nodes/x"


# -- watches -------------------------------------------------------------------------------------


def test_a_watch_tells_what_happens_in_its_order() -> None:
    told = [
        event("ADDED", lease(version="6")),
        event("MODIFIED", lease(version="7")),
        b"",
        bookmark("8"),
        event("DELETED", lease(version="9")),
    ]
    script = Script(Said(told))
    watching = script.client().watch(LEASES, Object, "5", Selection("a=b"), 240)

    assert list(watching.events(90)) == [
        Changed(lease(version="6"), "6"),
        Changed(lease(version="7"), "7"),
        Bookmark("8"),
        Gone(lease(version="9"), "9"),
    ]
    assert script.calls[0].query == {
        "watch": "true",
        "resourceVersion": "5",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "240",
        "labelSelector": "a=b",
    }


def test_a_watch_that_is_too_old_says_so_at_once_or_in_an_event() -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    at_once = Said(status=410, body=msgspec.json.encode(gone))
    later = Said([event("ADDED", lease()), event("ERROR", gone), event("ADDED", lease())])

    assert list(Script(at_once).client().watch(LEASES, Object, "1").events(1)) == [Expired()]
    assert list(Script(later).client().watch(LEASES, Object, "1").events(1)) == [
        Changed(lease(), "5"),
        Expired(),
    ]


def test_other_errors_in_a_watch_are_raised_as_what_they_are() -> None:
    busy = {"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 4}}
    inside = Script(Said([event("ERROR", busy)])).client().watch(LEASES, Object, "1")
    with pytest.raises(ServerTrouble) as caught:
        list(inside.events(1))
    assert (caught.value.status, caught.value.retry_after) == (429, 4)

    refused = Said(status=403, body=status(403, "Forbidden").body)
    with pytest.raises(Misconfigured, match="watch leases"):
        Script(refused).client().watch(LEASES, Object, "1")
    assert refused.closed


@pytest.mark.parametrize(
    "line", [b"{", HTML, event("ADDED", {}), event("ADDED", lease())[:-9], b'{"type":"ADDED"}']
)
def test_an_event_that_cannot_be_read_breaks_the_watch(line: bytes) -> None:
    watching = Script(Said([line])).client().watch(LEASES, Object, "1")

    with pytest.raises(ServerTrouble, match="cannot be read"):
        list(watching.events(1))
