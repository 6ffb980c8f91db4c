"""The API server refuses the finalizer of a submitter that lost its right, and nobody else's."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pytest
from people_stage import People, config_map, job, lease
from waiting_stage import until

from blastyard.admission.ledger import Fence
from blastyard.domain.errors import Misconfigured
from blastyard.kube import install, policy, rbac
from blastyard.kube.policy import FENCE, FENCE_KEY, HOLDER, MANAGED, Refusal, refusal
from blastyard.kube.rbac import Manifest
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_request import MERGE_PATCH, Answer

ME = "blastyard-0b8f-1"
OTHER = "blastyard-77aa-1"
OLD = Fence("3f2c", 41).text
NEW = Fence("3f2c", 42).text
API = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"

Policies = Callable[[str], Sequence[Manifest]]
Grant = Callable[[str, list[dict[str, Any]]], None]


class Yard:
    """A namespace with policies: who holds the lease, which fence is the latest, what is made."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.admin = control_plane.admin
        self.namespace = namespace
        self._made = 0
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._maps = f"/api/v1/namespaces/{namespace}/configmaps"
        self.jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"

    def hold(self, holder: str | None) -> None:
        self._put(self._leases, lease(rbac.submit_lease_name(self.namespace), holder))

    def grant(self, fence: str | None) -> None:
        data = {"ledger": "{}"} if fence is None else {"ledger": "{}", FENCE_KEY: fence}
        self._put(self._maps, config_map(rbac.ledger_name(self.namespace), data))

    def lose_lease(self) -> None:
        self.admin.send("DELETE", f"{self._leases}/{rbac.submit_lease_name(self.namespace)}")

    def lose_ledger(self) -> None:
        self.admin.send("DELETE", f"{self._maps}/{rbac.ledger_name(self.namespace)}")

    def _put(self, path: str, document: dict[str, Any]) -> None:
        one = f"{path}/{document['metadata']['name']}"
        there = self.admin.send("GET", one)
        if there.status == 404:
            self.admin.send("POST", path, document).expect(201)
            return
        document["metadata"] = there.document["metadata"]
        self.admin.send("PUT", one, document).expect(200)

    def create(
        self, labels: Mapping[str, str], annotations: Mapping[str, str], query: str = ""
    ) -> Answer:
        self._made += 1
        document = job(f"job-{self._made}", labels, annotations)
        return self.admin.send("POST", f"{self.jobs}{query}", document)

    def finalize(self, holder: str | None = ME, fence: str | None = NEW, query: str = "") -> Answer:
        """Create a finalizer of ours that carries these."""
        carried = {HOLDER: holder, FENCE: fence}
        annotations = {key: value for key, value in carried.items() if value is not None}
        return self.create({"app": "finalizer", MANAGED: "true"}, annotations, query)

    def would_refuse(self, holder: str | None = ME, fence: str | None = NEW) -> Refusal | None:
        """As :meth:`finalize`, without making it; ``None`` = it would be created."""
        return told(self.finalize(holder, fence, "?dryRun=All"))

    def settle(self, holder: str = ME, fence: str = NEW) -> None:
        """Wait until the API server judges by what was written last."""
        until(lambda: self.would_refuse(holder, fence) is None)


def told(answer: Answer) -> Refusal | None:
    if answer.ok:
        return None
    found = refusal(answer.status, answer.document["message"])
    assert found is not None, answer.document
    return found


def rule_of(found: Refusal | None) -> str:
    return found.rule if found else ""


@pytest.fixture
def people(control_plane: ControlPlane) -> Iterator[People]:
    with People(control_plane) as made:
        yield made


@pytest.fixture(scope="session")
def followed_parameters(control_plane: ControlPlane) -> None:
    """Policies that stay, of a namespace that does not exist.

    With the last policy that takes a ConfigMap the API server ends its watch of them for good, and
    would judge the next policy's tests by what it saw last.
    """
    for each in policy.manifests("nowhere"):
        kept = control_plane.admin.send("POST", f"{API}/{_plural(each)}", each)
        assert kept.status in (201, 409), kept.document


def _plural(manifest: Manifest) -> str:
    kind = "policies" if manifest["kind"].endswith("Policy") else "policybindings"
    return f"validatingadmission{kind}"


@pytest.fixture
def policies(control_plane: ControlPlane, followed_parameters: None) -> Iterator[Policies]:
    """The policies of a namespace; whatever is installed of them is removed afterwards."""
    wanted: dict[str, Sequence[Manifest]] = {}

    def of(namespace: str) -> Sequence[Manifest]:
        return wanted.setdefault(namespace, policy.manifests(namespace))

    yield of
    for each in chain.from_iterable(wanted.values()):
        control_plane.admin.send("DELETE", f"{API}/{_plural(each)}/{each['metadata']['name']}")


@pytest.fixture
def yard(control_plane: ControlPlane, namespace: str, policies: Policies, people: People) -> Yard:
    """Enforced by both policies; ``ME`` holds the lease, and the fence is ``NEW``."""
    install.apply(people.admin(), policies(namespace))
    yard = Yard(control_plane, namespace)
    yard.hold(ME)
    yard.grant(NEW)
    until(lambda: rule_of(yard.would_refuse(holder=OTHER)) == "holder")
    until(lambda: rule_of(yard.would_refuse(fence=OLD)) == "fence")
    yard.settle()
    return yard


def test_the_holder_with_the_latest_fence_may_create_its_finalizer(yard: Yard) -> None:
    made = yard.finalize().expect(201)

    assert made["metadata"]["annotations"] == {HOLDER: ME, FENCE: NEW}


def test_a_wrong_holder_is_refused_and_told_who_holds(yard: Yard) -> None:
    answer = yard.finalize(holder=OTHER)

    assert answer.status == 403
    said = f"the holder of the submit lease is {ME}, and this finalizer carries {OTHER}"
    assert told(answer) == Refusal("holder", said)


def test_a_stale_fence_is_refused_and_told_the_latest(yard: Yard) -> None:
    answer = yard.finalize(fence=OLD)

    assert answer.status == 403
    said = f"the fence of the ledger is {NEW}, and this finalizer carries {OLD}"
    assert told(answer) == Refusal("fence", said)


def test_the_same_number_of_a_ledger_that_was_lost_is_refused(yard: Yard) -> None:
    assert told(yard.finalize(fence=Fence("a-lost-one", 42).text)) is not None


@pytest.mark.parametrize(
    ("carried", "rule"),
    [({"holder": None}, "holder"), ({"fence": None}, "fence"), ({"holder": ""}, "holder")],
)
def test_a_finalizer_of_ours_that_carries_nothing_is_refused(
    yard: Yard, carried: dict[str, str | None], rule: str
) -> None:
    found = told(yard.finalize(**carried))

    assert found is not None
    assert found.rule == rule
    assert found.message.endswith("carries none")


@pytest.mark.parametrize("holder", [None, ""])
def test_while_nobody_holds_the_lease_nobody_creates_not_even_as_nobody(
    yard: Yard, holder: str | None
) -> None:
    yard.hold(holder)
    until(lambda: yard.would_refuse() is not None)

    for carried in (ME, "", None):
        found = told(yard.finalize(holder=carried))
        assert found is not None
        assert found.message.startswith("the holder of the submit lease is nobody")


def test_while_the_ledger_says_no_fence_nobody_creates(yard: Yard) -> None:
    yard.grant(None)
    until(lambda: yard.would_refuse() is not None)

    for carried in (NEW, "", None):
        found = told(yard.finalize(fence=carried))
        assert found is not None
        assert found.message.startswith("the fence of the ledger is not written")


def test_a_lease_that_is_missing_refuses(yard: Yard) -> None:
    yard.lose_lease()
    until(lambda: yard.would_refuse() is not None)

    answer = yard.finalize()

    found = told(answer)
    assert answer.status == 422
    assert found is not None
    assert found.rule == "holder"
    assert "could not look up the holder of the submit lease" in found.message


def test_a_ledger_that_is_missing_refuses(yard: Yard) -> None:
    yard.lose_ledger()
    until(lambda: yard.would_refuse() is not None)

    answer = yard.finalize()

    found = told(answer)
    assert answer.status == 422
    assert found is not None
    assert found.rule == "fence"
    assert "could not look up the fence of the ledger" in found.message


def test_a_holder_whose_name_cannot_be_shown_still_refuses_recognizably(yard: Yard) -> None:
    yard.hold("dashboard\nof somebody")
    until(lambda: yard.would_refuse() is not None)

    said = "this finalizer does not carry the holder of the submit lease"
    assert told(yard.finalize()) == Refusal("holder", said)


FOREIGN = {
    "a peer's finalizer": {"app": "finalizer", "elb-job-id": "job-1"},
    "a peer's search": {"app": "blast"},
    "a companion of ours": {"app": "submit", MANAGED: "true"},
    "a finalizer that says it is not ours": {"app": "finalizer", MANAGED: "false"},
    "something else": {},
}


@pytest.mark.parametrize("labels", FOREIGN.values(), ids=FOREIGN)
def test_what_is_no_finalizer_of_ours_is_not_looked_at(yard: Yard, labels: dict[str, str]) -> None:
    assert yard.create(labels, {}).status == 201

    yard.lose_lease()
    yard.lose_ledger()
    until(lambda: yard.would_refuse() is not None)

    assert yard.create(labels, {}).status == 201


def test_an_existing_finalizer_may_be_changed_and_deleted_by_anybody(yard: Yard) -> None:
    name = yard.finalize().expect(201)["metadata"]["name"]
    yard.hold(OTHER)
    until(lambda: yard.would_refuse() is not None)

    one = f"{yard.jobs}/{name}"
    document = yard.admin.send("GET", one).document
    document["spec"]["activeDeadlineSeconds"] += 1
    assert yard.admin.send("PUT", one, document).status == 200
    assert yard.admin.send("DELETE", one).status == 200


def test_another_namespace_is_not_touched(control_plane: ControlPlane, yard: Yard) -> None:
    elsewhere = f"{yard.namespace}-b"
    control_plane.create_namespace(elsewhere)

    assert Yard(control_plane, elsewhere).finalize(None, None).status == 201

    control_plane.delete_namespace(elsewhere)


def test_two_namespaces_are_enforced_each_by_its_own_lease_and_ledger(
    control_plane: ControlPlane, yard: Yard, policies: Policies, people: People
) -> None:
    other = Yard(control_plane, f"{yard.namespace}-b")
    control_plane.create_namespace(other.namespace)
    done = install.apply(people.admin(), policies(other.namespace))
    assert [each.outcome for each in done] == ["created"] * 4
    other.hold(OTHER)
    other.grant(OLD)
    until(lambda: rule_of(other.would_refuse(ME, OLD)) == "holder")
    until(lambda: rule_of(other.would_refuse(OTHER, NEW)) == "fence")
    other.settle(OTHER, OLD)

    assert yard.finalize(ME, NEW).status == 201
    assert other.finalize(OTHER, OLD).status == 201
    assert told(other.finalize(ME, NEW)) is not None
    assert told(yard.finalize(OTHER, OLD)) is not None

    control_plane.delete_namespace(other.namespace)


def test_after_a_takeover_the_new_holder_is_let_in_and_the_old_one_is_not(yard: Yard) -> None:
    for turn in range(10):
        holder, before = (OTHER, ME) if turn % 2 == 0 else (ME, OTHER)
        yard.hold(holder)
        yard.settle(holder)  # a server that does not know yet refuses, and says whom it knows

        assert yard.finalize(holder).status == 201
        assert rule_of(told(yard.finalize(before))) == "holder"


def test_after_a_later_grant_an_earlier_one_creates_nothing(yard: Yard) -> None:
    for number in range(43, 53):
        latest, before = (Fence("3f2c", each).text for each in (number, number - 1))
        yard.grant(latest)
        yard.settle(fence=latest)

        assert rule_of(told(yard.finalize(fence=before))) == "fence"


def test_a_missing_role_and_a_quota_are_not_taken_for_a_policy(
    control_plane: ControlPlane, yard: Yard, people: People
) -> None:
    """Fault A12."""
    people.new_account(yard.namespace, "guest")
    guest = control_plane.requests(control_plane.token_for(yard.namespace, "guest"))
    carried = {HOLDER: OTHER, FENCE: OLD}
    document = job("guest", {"app": "finalizer", MANAGED: "true"}, carried)

    answer = guest.send("POST", yard.jobs, document)

    assert answer.status == 403
    assert "cannot create resource" in answer.document["message"]
    assert refusal(answer.status, answer.document["message"]) is None

    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"count/jobs.batch": "0"}}}
    path = f"/api/v1/namespaces/{yard.namespace}/resourcequotas"
    yard.admin.send("POST", path, quota).expect(201)
    # what a controller does that is not part of the control plane of tests
    counted = {"status": {"hard": quota["spec"]["hard"], "used": {"count/jobs.batch": "0"}}}
    yard.admin.send("PATCH", f"{path}/none/status", counted, kind=MERGE_PATCH).expect(200)
    until(lambda: yard.create({"app": "blast"}, {}, "?dryRun=All").status == 403)

    answer = yard.create({"app": "blast"}, {})

    assert "exceeded quota" in answer.document["message"]
    assert refusal(answer.status, answer.document["message"]) is None


def test_installing_the_policies_twice_changes_nothing_the_second_time(
    yard: Yard, people: People
) -> None:
    done = install.apply(people.admin(), policy.manifests(yard.namespace))

    assert [each.outcome for each in done] == ["unchanged"] * 4


def test_what_is_printed_of_the_policies_is_taken_by_kubectl_without_a_warning(
    control_plane: ControlPlane, yard: Yard
) -> None:
    command = [control_plane.kubectl, f"--kubeconfig={control_plane.kubeconfig}", "apply", "-f-"]
    wanted = install.manifests(yard.namespace, enforce=True)

    done = subprocess.run(
        [*command, "--dry-run=server", "--server-side", "--force-conflicts"],
        input=install.rendered(wanted),
        text=True,
        capture_output=True,
        check=True,
    )

    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 7


ENFORCER = [
    {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
        "verbs": ["get", "create", "patch"],
    },
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
]
"""What is asked for when policies are to be installed."""


@pytest.fixture
def grant(control_plane: ControlPlane, namespace: str) -> Iterator[Grant]:
    """Gives an account of the namespace rights in the whole cluster, and takes them back."""
    granted = []

    def give(account: str, rules: list[dict[str, Any]]) -> None:
        name = f"{account}-{namespace}"
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
        named = {"metadata": {"name": name}}
        binding = {**named, "roleRef": role, "subjects": [subject]}
        for plural, document in (
            ("clusterroles", {**named, "rules": rules}),
            ("clusterrolebindings", binding),
        ):
            control_plane.admin.send("POST", f"{RBAC}/{plural}", document).expect(201)
            granted.append(f"{RBAC}/{plural}/{name}")

    yield give
    for path in granted:
        control_plane.admin.send("DELETE", path).expect(200)


def test_the_rights_that_are_asked_for_are_all_that_installing_the_policies_takes(
    namespace: str, grant: Grant, policies: Policies, people: People
) -> None:
    wire = people.new_account(namespace, "guard")
    grant("guard", ENFORCER)
    until(lambda: not install.missing(wire, policies(namespace)))

    done = install.apply(wire, policies(namespace))

    assert [each.outcome for each in done] == ["created"] * 4


def test_who_may_make_policies_but_not_read_their_parameters_is_told_so(
    namespace: str, grant: Grant, people: People
) -> None:
    wire = people.new_account(namespace, "guard")
    grant("guard", ENFORCER[:1])
    wanted = policy.manifests(namespace)
    until(lambda: len(install.missing(wire, wanted)) == 2)

    with pytest.raises(Misconfigured) as caught:
        install.apply(wire, wanted)

    assert caught.value.code == "cluster_forbidden"
    assert caught.value.message.splitlines()[1:] == [
        "  get leases.coordination.k8s.io in the cluster",
        "  get configmaps in the cluster",
    ]
