"""What a real API server refuses, and what it says of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kube_stage import Stage
from waiting_stage import CLOCK

from blastyard.domain.errors import Misconfigured
from blastyard.kube.client import Client, Selection
from blastyard.kube.config import Wanted, find
from blastyard.kube.error import ServerTrouble
from blastyard.kube.http import HttpWire
from blastyard.kube.outcome import (
    Denied,
    Found,
    Object,
)
from blastyard.kube.resource import CONFIGMAPS, JOBS, LEASES
from blastyard.testing.controlplane import ControlPlane

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


SOON = 10.0


@pytest.fixture
def stage(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(control_plane, namespace, tmp_path)
    yield stage
    stage.close()


def named(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name}, **more}


def found(outcome: object) -> Object:
    assert isinstance(outcome, Found), outcome
    return outcome.object


# -- refusals ------------------------------------------------------------------------------------


def test_an_account_without_a_role_is_told_what_to_grant(stage: Stage) -> None:
    client = stage.client(stage.account([]))
    asks = {
        "get": lambda: client.get(LEASES, "x"),
        "create": lambda: client.create(LEASES, named("x")),
        "list": lambda: client.listing(LEASES, Object),
        "watch": lambda: client.watch(LEASES, Object, "1"),
        "update": lambda: client.replace(
            LEASES, {"metadata": {"name": "x", "uid": "u", "resourceVersion": "1"}}
        ),
        "patch": lambda: client.patch(LEASES, "x", {}),
        "delete": lambda: client.delete(LEASES, "x", "u"),
        "deletecollection": lambda: client.delete_collection(LEASES, Selection("a=b")),
    }
    for verb, ask in asks.items():
        with pytest.raises(Misconfigured) as caught:
            ask()
        assert caught.value.code == "cluster_forbidden"
        assert f"to {verb} leases.coordination.k8s.io" in caught.value.message
        assert f'namespace "{stage.namespace}"' in caught.value.message
        assert f'"verbs":["{verb}"]' in caught.value.next_step


def test_a_subresource_is_named_in_what_to_grant(stage: Stage) -> None:
    client = stage.client(stage.account())

    with pytest.raises(Misconfigured, match=r"patch jobs/status\.batch") as caught:
        client.patch(JOBS, "x", {"status": {}}, "status")

    assert '"resources":["jobs/status"]' in caught.value.next_step


def test_an_unknown_token_is_no_answer(stage: Stage) -> None:
    client = stage.client("no-such-token")

    with pytest.raises(Misconfigured, match="does not accept this credential") as caught:
        client.get(LEASES, "x")

    assert caught.value.code == "cluster_forbidden"


def test_a_namespace_that_is_not_there_is_named(control_plane: ControlPlane, stage: Stage) -> None:
    wire = HttpWire(stage.target().endpoint, CLOCK.monotonic)
    client = Client(wire, "no-such-place", CLOCK.monotonic)

    assert client.get(LEASES, "x") is None
    with pytest.raises(Misconfigured, match="no namespace 'no-such-place'") as caught:
        client.create(LEASES, named("x"))

    assert caught.value.code == "cluster_misconfigured"
    wire.close()


def test_a_namespace_that_is_being_deleted_is_named(stage: Stage) -> None:
    client = stage.client()
    found(client.create(LEASES, {"metadata": {"name": "x", "finalizers": ["example.org/keep"]}}))
    stage.plane.delete_namespace(stage.namespace)

    with pytest.raises(Misconfigured, match="is being deleted") as caught:
        client.create(LEASES, named("y"))

    assert caught.value.code == "cluster_misconfigured"
    client.patch(LEASES, "x", {"metadata": {"finalizers": None}})


def test_a_policy_that_refuses_is_told_from_a_credential_that_may_not(stage: Stage) -> None:
    client = stage.client()
    name = f"refuse-{stage.namespace}"
    rules = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
        "operations": ["CREATE", "UPDATE"],
    }
    validation = {"expression": "object.metadata.name != 'x'", "message": "not that one"}
    spec = {"matchConstraints": {"resourceRules": [rules]}, "failurePolicy": "Fail"}
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}}
    forbidding = {**validation, "reason": "Forbidden"}
    admin = stage.plane.admin
    policy = {**named(name), "spec": {**spec, "validations": [forbidding]}}
    binding = {
        **named(name),
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": where},
    }
    bindings = POLICIES.replace("policies", "policybindings")
    admin.send("POST", POLICIES, policy).expect(201)
    admin.send("POST", bindings, binding).expect(201)
    try:
        outcome: object = None
        latest = CLOCK.monotonic() + SOON
        while not isinstance(outcome, Denied) and CLOCK.monotonic() < latest:  # it takes a moment
            outcome = client.create(CONFIGMAPS, named("x"))
        assert isinstance(outcome, Denied)
        assert outcome.status == 403
        assert "not that one" in outcome.message
        assert isinstance(client.create(CONFIGMAPS, named("y")), Found)
    finally:
        admin.send("DELETE", f"{bindings}/{name}")
        admin.send("DELETE", f"{POLICIES}/{name}")


def test_what_the_server_finds_wrong_is_quoted_and_changes_nothing(stage: Stage) -> None:
    client = stage.client()
    spec = {"holderIdentity": "x", "renewTime": "2026-01-01T00:00:00Z"}

    for wrong in (spec, {**spec, "renewTime": None, "leaseDurationSeconds": 0}):
        with pytest.raises(ServerTrouble) as caught:
            client.create(LEASES, named("x", spec=wrong))
        assert caught.value.status in (400, 422)
        assert "Seconds" in caught.value.message or "time" in caught.value.message
    assert client.get(LEASES, "x") is None


def test_a_server_of_another_cluster_is_told_from_one_that_is_down(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    path = control_plane.write_kubeconfig(
        tmp_path / "kubeconfig", control_plane.admin_token, namespace
    )
    text = path.read_text()
    line = next(line for line in text.splitlines() if "certificate-authority-data" in line)
    path.write_text(text.replace(line, ""))  # what the system trusts has nothing to do with it
    wire = HttpWire(find(Wanted({}, tmp_path, str(path)), CLOCK.now).endpoint, CLOCK.monotonic)
    client = Client(wire, namespace, CLOCK.monotonic)

    with pytest.raises(Misconfigured, match="not of the cluster that the kubeconfig") as caught:
        client.get(LEASES, "x")

    assert caught.value.code == "cluster_misconfigured"
    wire.close()
