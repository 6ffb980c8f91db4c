"""The Role is enough, each verb of it is needed, and installing it says what it did."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from people_stage import People, config_map, job, lease
from waiting_stage import until

from blastyard.domain.errors import Misconfigured
from blastyard.kube import install, rbac
from blastyard.kube.http import HttpWire
from blastyard.kube.review import Verdict, accesses, rules_to_add
from blastyard.kube.rights import check
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_request import MERGE_PATCH

RBAC = "/apis/rbac.authorization.k8s.io/v1"
VERBS = [
    (each.resource, verb, bool(each.name)) for each in rbac.needed("any") for verb in each.verbs
]


def role(namespace: str) -> list[dict[str, Any]]:
    return [rbac.rule(each) for each in rbac.needed(namespace)]


def missing(verdicts: Sequence[Verdict]) -> list[str]:
    return [str(verdict.access) for verdict in verdicts if not verdict.allowed]


@pytest.fixture
def people(control_plane: ControlPlane) -> Iterator[People]:
    with People(control_plane) as made:
        yield made


@pytest.fixture
def account(namespace: str, people: People) -> HttpWire:
    """An account made by ``gate install``, which has the Role and nothing else."""
    install.apply(people.admin(), install.manifests(namespace))
    wire = people.account(namespace, rbac.NAME)
    until(lambda: not missing(check(wire, namespace)))
    return wire


def test_an_account_with_exactly_the_role_passes_the_check(
    account: HttpWire, namespace: str
) -> None:
    verdicts = check(account, namespace)

    assert [verdict.access for verdict in verdicts] == list(
        accesses(rbac.needed(namespace), namespace)
    )
    assert missing(verdicts) == []
    assert rules_to_add(verdicts) == []


@pytest.mark.parametrize(("resource", "verb", "named"), VERBS)
def test_a_verb_that_was_taken_out_is_named_with_the_rule_that_grants_it(
    namespace: str, resource: str, verb: str, named: bool, people: People
) -> None:
    """Fault A12."""
    rules = role(namespace)
    for rule in rules:
        if rule["resources"] == [resource] and ("resourceNames" in rule) == named:
            rule["verbs"].remove(verb)
            expected = {**rule, "verbs": [verb]}
    wire = people.new_account(namespace, "lame", [rule for rule in rules if rule["verbs"]])

    until(lambda: len(missing(check(wire, namespace))) == 1)
    verdicts = check(wire, namespace)

    [name] = missing(verdicts)
    assert name.startswith(f"{verb} {resource}")
    assert f'in the namespace "{namespace}"' in name
    assert rules_to_add(verdicts) == [expected]


def test_the_check_changes_nothing(
    control_plane: ControlPlane, account: HttpWire, namespace: str
) -> None:
    check(account, namespace)

    for path in (
        f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
        f"/apis/batch/v1/namespaces/{namespace}/jobs",
    ):
        assert control_plane.admin.send("GET", path).expect(200)["items"] == []


def test_a_namespace_that_is_not_there_is_said_so(people: People) -> None:
    """Fault A12."""
    with pytest.raises(Misconfigured, match="no namespace 'nowhere'") as caught:
        check(people.admin(), "nowhere")
    assert caught.value.code == "cluster_misconfigured"

    with pytest.raises(Misconfigured, match="no namespace 'nowhere'"):
        install.apply(people.admin(), install.manifests("nowhere"))


def test_a_credential_that_is_not_known_is_told_from_one_that_may_not(
    namespace: str, people: People
) -> None:
    """Fault A12."""
    nobody = people.with_token("expired")

    with pytest.raises(Misconfigured, match="does not accept this credential") as caught:
        check(nobody, namespace)
    assert caught.value.code == "cluster_forbidden"


class Requester:
    """Sends as the account and says the status."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.requests = control_plane.requests(control_plane.token_for(namespace, rbac.NAME))
        self.leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self.maps = f"/api/v1/namespaces/{namespace}/configmaps"
        self.jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"

    def status(self, method: str, path: str, document: object = None, kind: str = "") -> int:
        return self.requests.send(method, path, document, kind=kind).status


@pytest.fixture
def requester(control_plane: ControlPlane, account: HttpWire, namespace: str) -> Requester:
    return Requester(control_plane, namespace)


WATCH = "watch=1&timeoutSeconds=1"


def test_the_role_is_enough_for_leases(requester: Requester) -> None:
    one = f"{requester.leases}/mine"
    assert requester.status("POST", requester.leases, lease("mine")) == 201
    assert requester.status("GET", one) == 200
    assert requester.status("GET", requester.leases) == 200
    assert requester.status("GET", f"{requester.leases}?{WATCH}") == 200
    document = requester.requests.send("GET", one).document
    assert requester.status("PUT", one, document) == 200
    assert requester.status("DELETE", one) == 200


def test_the_role_is_enough_for_the_ledger_watched_by_its_name(
    requester: Requester, namespace: str
) -> None:
    name = rbac.ledger_name(namespace)
    one = f"{requester.maps}/{name}"
    selector = f"fieldSelector=metadata.name%3D{name}"
    assert requester.status("POST", requester.maps, config_map(name, {"ledger": "{}"})) == 201
    assert requester.status("GET", one) == 200
    assert requester.status("GET", f"{requester.maps}?{selector}") == 200
    assert requester.status("GET", f"{requester.maps}?{WATCH}&{selector}") == 200
    assert requester.status("PUT", one, config_map(name, {"ledger": "{ }"})) == 200


def test_the_role_is_enough_for_markers_and_what_a_submission_left(requester: Requester) -> None:
    one = f"{requester.jobs}/marker"
    assert requester.status("POST", requester.jobs, job("marker", {"app": "submit"})) == 201
    assert requester.status("GET", one) == 200
    assert requester.status("GET", f"{requester.jobs}?labelSelector=app%3Dsubmit") == 200
    assert requester.status("GET", f"{requester.jobs}?{WATCH}") == 200
    later = {"spec": {"activeDeadlineSeconds": 300_000}}
    assert requester.status("PATCH", one, later, MERGE_PATCH) == 200
    assert requester.status("DELETE", one) == 200
    assert requester.status("DELETE", f"{requester.jobs}?labelSelector=elb-job-id%3Dx") == 200


def test_the_role_allows_nothing_else(
    control_plane: ControlPlane, requester: Requester, namespace: str
) -> None:
    name = rbac.ledger_name(namespace)
    for each in (name, "elb-scripts"):
        control_plane.admin.send("POST", requester.maps, config_map(each, {})).expect(201)
    other = requester.maps.replace(namespace, "default")

    refused = [
        ("GET", f"{requester.maps}/elb-scripts"),
        ("PUT", f"{requester.maps}/elb-scripts"),
        ("GET", requester.maps),
        ("GET", f"{requester.maps}?{WATCH}"),
        ("GET", f"{requester.maps}?fieldSelector=metadata.name%3Delb-scripts"),
        ("DELETE", f"{requester.maps}/{name}"),
        ("DELETE", requester.maps),
        ("GET", f"{other}/{name}"),
        ("GET", f"/api/v1/namespaces/{namespace}/pods"),
        ("GET", f"/api/v1/namespaces/{namespace}/secrets"),
        ("GET", f"/api/v1/namespaces/{namespace}"),
        ("PUT", f"{requester.jobs}/marker/status"),
        ("GET", "/apis/batch/v1/jobs"),
    ]
    statuses = {
        (method, path): requester.status(method, path, {} if method == "PUT" else None)
        for method, path in refused
    }

    assert statuses == dict.fromkeys(refused, 403)


def outcomes(done: Sequence[install.Applied]) -> list[str]:
    return [each.outcome for each in done]


def test_installing_twice_changes_nothing_the_second_time(namespace: str, people: People) -> None:
    wire, wanted = people.admin(), install.manifests(namespace)

    assert outcomes(install.apply(wire, wanted)) == ["created"] * 3
    assert outcomes(install.apply(wire, wanted)) == ["unchanged"] * 3


def test_installing_puts_a_changed_role_right_and_says_so(
    control_plane: ControlPlane, namespace: str, people: People
) -> None:
    wire, wanted = people.admin(), install.manifests(namespace)
    install.apply(wire, wanted)
    path = f"{RBAC}/namespaces/{namespace}/roles/{rbac.NAME}"
    control_plane.admin.send("PATCH", path, {"rules": []}, kind=MERGE_PATCH).expect(200)

    done = install.apply(wire, wanted)

    assert outcomes(done) == ["unchanged", "changed", "unchanged"]
    assert control_plane.admin.send("GET", path).document["rules"] == role(namespace)


def test_what_is_printed_is_accepted_by_kubectl(
    control_plane: ControlPlane, namespace: str, people: People
) -> None:
    wanted = install.manifests(namespace, "worker")
    command = [control_plane.kubectl, f"--kubeconfig={control_plane.kubeconfig}", "apply", "-f-"]

    done = subprocess.run(
        command, input=install.rendered(wanted), text=True, capture_output=True, check=True
    )

    assert done.stdout.splitlines() == [
        "serviceaccount/worker created",
        "role.rbac.authorization.k8s.io/blastyard created",
        "rolebinding.rbac.authorization.k8s.io/blastyard-worker created",
    ]
    wire = people.account(namespace, "worker")
    until(lambda: not missing(check(wire, namespace)))
    # taken over from kubectl without a quarrel
    assert "created" not in outcomes(install.apply(people.admin(), wanted))


INSTALLER = [
    {
        "apiGroups": ["", "rbac.authorization.k8s.io"],
        "resources": ["serviceaccounts", "roles", "rolebindings"],
        "verbs": ["get", "create", "patch"],
    }
]


def test_an_administrator_of_the_namespace_can_install_all_but_the_policies(
    control_plane: ControlPlane, namespace: str, people: People
) -> None:
    wire = people.new_account(namespace, "head", [*INSTALLER, *role(namespace)])
    wanted = install.manifests(namespace, enforce=True)
    until(lambda: len(install.missing(wire, wanted)) == 8)

    with pytest.raises(Misconfigured) as caught:
        install.apply(wire, wanted)

    assert caught.value.code == "cluster_forbidden"
    for kind in ("policies", "policybindings"):
        for verb in ("get", "create", "patch"):
            resource = f"validatingadmission{kind}.admissionregistration.k8s.io"
            assert f"{verb} {resource} in the cluster" in caught.value.message
    assert "get leases.coordination.k8s.io in the cluster" in caught.value.message
    assert "get configmaps in the cluster" in caught.value.message
    assert "without --enforce" in caught.value.next_step
    path = f"{RBAC}/namespaces/{namespace}/roles/{rbac.NAME}"
    assert control_plane.admin.send("GET", path).status == 404  # nothing by halves
    assert outcomes(install.apply(wire, install.manifests(namespace))) == ["created"] * 3


def test_every_right_that_installing_lacks_is_named(namespace: str, people: People) -> None:
    wire = people.new_account(namespace, "guest")

    with pytest.raises(Misconfigured) as caught:
        install.apply(wire, install.manifests(namespace))

    resources = ("serviceaccounts", "roles.rbac.auth", "rolebindings.rbac.auth")
    for resource in resources:
        for verb in ("get", "create", "patch"):
            assert f"{verb} {resource}" in caught.value.message
    assert "--dry-run" in caught.value.next_step


def test_who_may_not_grant_what_he_has_not_is_told_by_the_servers_words(
    namespace: str, people: People
) -> None:
    wire = people.new_account(namespace, "clerk", INSTALLER)
    wanted = install.manifests(namespace)
    until(lambda: not install.missing(wire, wanted))

    with pytest.raises(Misconfigured, match="attempting to grant RBAC permissions") as caught:
        install.apply(wire, wanted)

    assert caught.value.code == "cluster_forbidden"
    assert "ServiceAccount blastyard (created)" in caught.value.message
    assert "administrator" in caught.value.next_step


def test_a_binding_that_leads_elsewhere_is_not_replaced(
    control_plane: ControlPlane, namespace: str, people: People
) -> None:
    binding = {
        "metadata": {"name": rbac.NAME},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "other"},
    }
    path = f"{RBAC}/namespaces/{namespace}/rolebindings"
    control_plane.admin.send("POST", path, binding).expect(201)

    with pytest.raises(Misconfigured, match="cannot change roleRef") as caught:
        install.apply(people.admin(), install.manifests(namespace))
    assert "Role blastyard (created)" in caught.value.message
