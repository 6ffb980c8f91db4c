"""What an API server refuses is told apart: values, troubles, and what has to be granted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kube_script import DATE, UID, Said, Script, answer, lease, page, status

from blastyard.domain.errors import Misconfigured, Unavailable
from blastyard.kube.client import Client, Selection
from blastyard.kube.error import ServerTrouble
from blastyard.kube.outcome import (
    Denied,
    Object,
)
from blastyard.kube.resource import LEASES, Resource

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
        for verb in ("create", "update", "patch", "delete"):
            with pytest.raises(Misconfigured, match=words) as caught:
                VERBS[verb](Script(said).client())
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
