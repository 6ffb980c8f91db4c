"""Permissions, policies and their installation, without a cluster: texts, and odd answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from blastyard.domain.errors import BlastyardError, CallerMistake, Misconfigured, Unavailable
from blastyard.kube import install, policy, rbac
from blastyard.kube.policy import Refusal, refusal
from blastyard.kube.review import Access, Verdict, accesses, rules_to_add
from blastyard.kube.rights import check, judge
from blastyard.kube.wire import Answer, Call

DOCS = Path(__file__).parents[2] / "docs"
ACCESS = Access("list", "batch", "jobs", "lab")


class Script:
    """A wire that gives prepared answers to reviews, and to all else, and keeps the calls."""

    def __init__(self, review: Answer, others: Sequence[Answer] = ()) -> None:
        self._review = review
        self._others = iter(others)
        self.calls: list[Call] = []

    def send(self, call: Call) -> Answer:
        self.calls.append(call)
        return self._review if call.path.endswith("accessreviews") else next(self._others)


def answer(status: int, body: object) -> Answer:
    text = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return Answer(status, text, None, None, 0.0, 0.0)


def status(code: int, reason: str, message: str, **details: Any) -> Answer:
    said = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return answer(code, {**said, "details": details})


def reviewed(**said: Any) -> Answer:
    return answer(201, {"kind": "SelfSubjectAccessReview", "status": said})


YES = reviewed(allowed=True)
NO_LEASE = status(403, "Forbidden", "leases is forbidden")


# -- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "Lab", "lab_1", "-lab", "lab-", "lab.x", "lab\n", "lab/x", "läb", "a" * 64]
)
def test_what_cannot_be_a_namespace_is_refused_before_any_request(name: str) -> None:
    wire = Script(YES)
    for ask in (rbac.manifests, policy.manifests, install.manifests):
        with pytest.raises(CallerMistake, match="cannot be the name of a namespace"):
            ask(name)
    with pytest.raises(CallerMistake):
        check(wire, name)
    assert wire.calls == []


@pytest.mark.parametrize("name", ["", "Lab", "a_b", "a..b", ".a", "a.", "system:x", "a" * 250])
def test_what_cannot_be_a_service_account_is_refused(name: str) -> None:
    with pytest.raises(CallerMistake, match="cannot be the name of a ServiceAccount"):
        install.manifests("lab", name)


@pytest.mark.parametrize("name", ["a", "0", "a-b", "a" * 63])
def test_what_can_be_a_namespace_is_taken(name: str) -> None:
    assert len(install.manifests(name, "worker.blast", enforce=True)) == 7


# -- texts -------------------------------------------------------------------------------------


def test_everything_is_in_the_namespace_unless_enforcement_is_asked_for() -> None:
    plain, enforced = install.manifests("lab"), install.manifests("lab", enforce=True)

    assert {each["metadata"].get("namespace") for each in plain} == {"lab"}
    assert enforced[:3] == plain
    assert {each["apiVersion"] for each in enforced[3:]} == {"admissionregistration.k8s.io/v1"}


def test_the_role_has_every_verb_that_is_needed_once_and_no_wildcard() -> None:
    [role] = [each for each in install.manifests("lab") if each["kind"] == "Role"]

    granted = [
        (verb, *rule["apiGroups"], *rule["resources"], *rule.get("resourceNames", [""]))
        for rule in role["rules"]
        for verb in rule["verbs"]
    ]

    asked = accesses(rbac.needed("lab"), "lab")
    assert granted == [(each.verb, each.group, each.resource, each.name) for each in asked]
    assert len(set(granted)) == len(granted)
    assert "*" not in str(role["rules"])


def test_the_submit_lease_and_the_ledger_have_the_names_that_peers_know() -> None:
    assert rbac.submit_lease_name("lab") == "elb-blast-submit-lab"
    assert rbac.ledger_name("lab") == "elb-blast-ledger-lab"


def test_two_accounts_of_a_namespace_have_a_binding_each() -> None:
    names = {
        manifest["metadata"]["name"]
        for account in ("blastyard", "worker", "other")
        for manifest in install.manifests("lab", account)
        if manifest["kind"] == "RoleBinding"
    }

    assert names == {"blastyard", "blastyard-worker", "blastyard-other"}


@pytest.mark.parametrize("enforce", [False, True])
def test_the_printed_text_says_the_same_as_what_is_applied(enforce: bool) -> None:
    wanted = install.manifests("lab", enforce=enforce)

    text = install.rendered(wanted)

    assert list(yaml.safe_load_all(text)) == wanted
    assert "{" not in text  # to be read by people
    assert "&id" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_printed_role_says_what_each_rule_is_for() -> None:
    text = install.rendered(install.manifests("lab"))

    for permission in rbac.needed("lab"):
        assert f": {permission.why}\n" in text


def test_a_policy_is_about_one_namespace_and_only_about_finalizers_of_ours() -> None:
    kinds: dict[str, list[dict[str, Any]]] = {}
    for each in policy.manifests("lab"):
        assert each["metadata"]["name"].endswith("-lab")
        kinds.setdefault(each["kind"], []).append(each["spec"])

    for spec in kinds["ValidatingAdmissionPolicy"]:
        labels = spec["matchConstraints"]["objectSelector"]["matchLabels"]
        assert labels == {"app": "finalizer", "blastyard/managed": "true"}
        assert spec["failurePolicy"] == "Fail"
    for spec in kinds["ValidatingAdmissionPolicyBinding"]:
        labels = spec["matchResources"]["namespaceSelector"]["matchLabels"]
        assert labels == {"kubernetes.io/metadata.name": "lab"}
        assert spec["paramRef"]["parameterNotFoundAction"] == "Deny"
        assert spec["validationActions"] == ["Deny"]


def test_the_documented_permissions_are_those_of_the_role() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (DOCS / "enforcement.md").read_text().splitlines()
        if re.match(r"\| (core|[a-z0-9.]+) \| [a-z]+ \|", line)
    ]

    assert rows == [
        [
            each.group or "core",
            each.resource,
            each.name or "any",
            ", ".join(each.verbs),
            each.why,
        ]
        for each in rbac.needed("NAMESPACE")
    ]


# -- what was missing --------------------------------------------------------------------------


def test_missing_verbs_of_one_resource_become_one_rule() -> None:
    asked = accesses(rbac.needed("lab"), "lab")
    refused = {("watch", "jobs"), ("patch", "jobs"), ("update", "configmaps"), ("get", "leases")}
    verdicts = [Verdict(each, (each.verb, each.resource) not in refused, "") for each in asked]

    assert rules_to_add(verdicts) == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "verbs": ["update"],
            "resourceNames": ["elb-blast-ledger-lab"],
        },
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["watch", "patch"]},
    ]


def test_an_access_reads_as_the_api_server_would_say_it() -> None:
    assert str(ACCESS) == 'list jobs.batch in the namespace "lab"'
    named = Access("get", "", "configmaps", "lab", "x")
    assert str(named) == 'get configmaps "x" in the namespace "lab"'
    assert str(Access("get", "", "configmaps", "")) == "get configmaps in the cluster"


# -- odd answers to a review -------------------------------------------------------------------


def test_an_authorizer_that_failed_is_told_and_allows_nothing() -> None:
    said = reviewed(allowed=False, evaluationError='role "blastyard" not found')

    [verdict] = judge(Script(said), [ACCESS])

    assert verdict == Verdict(ACCESS, False, 'role "blastyard" not found')


def test_an_account_that_may_not_even_ask_is_told_so() -> None:
    said = status(403, "Forbidden", "system:anonymous cannot create selfsubjectaccessreviews")

    with pytest.raises(Misconfigured, match=r"may not even ask .*system:anonymous") as caught:
        judge(Script(said), [ACCESS])
    assert caught.value.code == "cluster_forbidden"


@pytest.mark.parametrize(
    "said",
    [
        answer(502, b"<html>bad gateway</html>"),
        answer(200, b"<html>log in</html>"),
        answer(201, b'{"status": {"allo'),
        answer(201, {"kind": "SelfSubjectAccessReview"}),
        answer(201, {"status": {"allowed": "yes"}}),
        answer(201, b"\xff\xfe"),
        answer(403, b"<html>forbidden by the proxy</html>"),
        status(500, "InternalError", "etcdserver: request timed out"),
        status(429, "TooManyRequests", "try later"),
    ],
)
def test_an_answer_that_decides_nothing_is_never_taken_for_a_verdict(said: Answer) -> None:
    """Fault A13."""
    with pytest.raises(Unavailable) as caught:
        check(Script(said, [NO_LEASE]), "lab")
    assert caught.value.code == "cluster_unavailable"


def test_what_a_review_says_of_the_namespace_is_asked_without_making_anything() -> None:
    wire = Script(YES, [answer(201, {"kind": "Lease"})])

    check(wire, "lab")

    [other] = [call for call in wire.calls if not call.path.endswith("accessreviews")]
    assert other.method == "POST"
    assert other.query == {"dryRun": "All"}


# -- odd answers to an installation ------------------------------------------------------------

NOT_FOUND = status(404, "NotFound", "not found", kind="serviceaccounts", name="blastyard")


def applied(version: str, name: str = "blastyard", code: int = 200) -> Answer:
    metadata = {"name": name, "uid": "u", "resourceVersion": version}
    return answer(code, {"kind": "Some", "metadata": metadata})


def fails(*others: Answer, enforce: bool = False) -> BlastyardError:
    wanted = install.manifests("lab", enforce=enforce)
    with pytest.raises(BlastyardError) as caught:
        install.apply(Script(YES, others), wanted[3:] if enforce else wanted)
    return caught.value


def test_an_object_that_was_not_there_is_created_and_one_that_differs_is_changed() -> None:
    others = [NOT_FOUND, applied("1"), applied("2"), applied("3"), applied("4"), applied("4")]

    done = install.apply(Script(YES, others), install.manifests("lab"))

    assert [each.outcome for each in done] == ["created", "changed", "unchanged"]


def test_objects_are_applied_under_our_name_over_whoever_set_them() -> None:
    wire = Script(YES, [NOT_FOUND, applied("1")] * 3)

    install.apply(wire, install.manifests("lab"))

    patches = [call for call in wire.calls if call.method == "PATCH"]
    assert [msgspec.json.decode(call.body) for call in patches] == install.manifests("lab")
    assert {call.content_type for call in patches} == {"application/apply-patch+yaml"}
    assert all(call.query == {"fieldManager": "blastyard", "force": "true"} for call in patches)


def test_an_answer_that_was_lost_halfway_says_what_was_applied() -> None:
    error = fails(NOT_FOUND, applied("1"), answer(502, b"<html>"))

    assert isinstance(error, Unavailable)
    assert error.code == "cluster_unavailable"
    assert error.message.endswith("applied before that: ServiceAccount blastyard (created)")


def test_a_cluster_that_has_no_policies_is_told_so() -> None:
    error = fails(answer(404, b"404 page not found\n"), enforce=True)

    assert error.code == "cluster_misconfigured"
    assert "does not know ValidatingAdmissionPolicy" in error.message
    assert "1.30" in error.next_step
    assert "without --enforce" in error.next_step


def test_a_policy_of_the_cluster_that_refuses_is_not_taken_for_a_missing_right() -> None:
    said = "x is forbidden: ValidatingAdmissionPolicy 'theirs' with binding 'b' denied request: no"

    error = fails(NOT_FOUND, status(403, "Forbidden", said))

    assert error.code == "cluster_misconfigured"
    assert "'theirs'" in error.message


# -- whose refusal it is -----------------------------------------------------------------------


def denial(policy_name: str, text: str, subject: str = 'jobs.batch "r-1"') -> str:
    return (
        f"{subject} is forbidden: ValidatingAdmissionPolicy '{policy_name}' with binding "
        f"'{policy_name}' denied request: {text}"
    )


@pytest.mark.parametrize("subject", ['jobs.batch "r-1"', "jobs.batch"])
def test_a_refusal_of_ours_is_recognized_with_and_without_a_name(subject: str) -> None:
    text = denial("blastyard-holder-lab", "blastyard: too late", subject)

    assert refusal(403, text) == Refusal("holder", "too late")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (403, 'jobs.batch is forbidden: User "ada" cannot create resource "jobs" in API group'),
        (403, 'jobs.batch "r-1" is forbidden: exceeded quota: all, requested: count/jobs.batch=1'),
        (403, denial("theirs", "blastyard: no")),
        (403, denial("blastyard-other-lab", "no")),
        (403, f'x is forbidden: User "{denial("blastyard-fence-lab", "a")}" cannot create'),
        (422, 'Job.batch "r-1" is invalid: spec.template: Required value'),
        (409, denial("blastyard-fence-lab", "blastyard: no")),
        (201, denial("blastyard-fence-lab", "blastyard: no")),
        (403, ""),
    ],
)
def test_what_others_refuse_is_not_taken_for_ours(code: int, text: str) -> None:
    assert refusal(code, text) is None
