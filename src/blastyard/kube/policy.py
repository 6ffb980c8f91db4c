"""The API server itself refuses the finalizer of a submitter that has lost its right.

Two ValidatingAdmissionPolicies, optional, for the Jobs ``app=finalizer`` that blastyard makes in
one namespace (label :data:`MANAGED`; nobody else's are looked at):

* ``holder``: annotation :data:`HOLDER` equals ``spec.holderIdentity`` of the submit lease;
* ``fence``: annotation :data:`FENCE` equals what the ledger's ConfigMap has under
  :data:`FENCE_KEY`, which every swap of the ledger writes beside its text: CEL reads no JSON.

So a process that was stopped for minutes and then goes on can create nothing: its turn is over, or
its grant is not the latest one.

Not guaranteed: each API server judges by its own watch of the two parameters. It follows a change
within milliseconds, and until then still judges by the value before. A creation that is refused
*just after* a claim was written is therefore worth repeating for a moment (:class:`Refusal` says
what the server compared with); and a stale one could still be let in for that long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from blastyard.kube.rbac import LABELS, Manifest, check_namespace, ledger_name, submit_lease_name

MANAGED: Final = "blastyard/managed"
"""Label of every finalizer that blastyard makes, stand-ins included; its value is ``"true"``."""
HOLDER: Final = "blastyard/holder"
FENCE: Final = "blastyard/fence"
FENCE_KEY: Final = "fence"

_API: Final = "admissionregistration.k8s.io/v1"
_PREFIX: Final = "blastyard: "
_DENIED: Final = re.compile(
    # the resource, and the object's name where it has one (apimachinery, errors.NewForbidden)
    r'\S+(?: "[^"]*")? is forbidden: '
    r"ValidatingAdmissionPolicy 'blastyard-(?P<rule>holder|fence)-(?P<namespace>[a-z0-9-]+)' "
    r"with binding '[^']*' denied request: (?P<text>.*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One policy: what the object says must equal what the parameter says."""

    name: str
    annotation: str
    param_api: str
    param_kind: str
    current: str
    """CEL: what holds now, ``''`` when nothing does."""
    subject: str
    """What it is, in words."""
    nothing: str
    """What is said of it when nothing holds."""


HOLDER_RULE: Final = Rule(
    name="holder",
    annotation=HOLDER,
    param_api="coordination.k8s.io/v1",
    param_kind="Lease",
    current="""\
has(params.spec) && has(params.spec.holderIdentity)
  ? params.spec.holderIdentity
  : ''""",
    subject="holder of the submit lease",
    nothing="nobody",
)
FENCE_RULE: Final = Rule(
    name="fence",
    annotation=FENCE,
    param_api="v1",
    param_kind="ConfigMap",
    current=f"""\
has(params.data) && '{FENCE_KEY}' in params.data
  ? params.data['{FENCE_KEY}']
  : ''""",
    subject="fence of the ledger",
    nothing="not written",
)
RULES: Final = {rule.name: rule for rule in (HOLDER_RULE, FENCE_RULE)}


@dataclass(frozen=True, slots=True)
class Refusal:
    """One of our policies refused a creation. The credential is good; the right is gone.

    ``rule`` is ``holder`` or ``fence``; ``message`` says what was compared.
    """

    rule: str
    message: str


def refusal(status: int, message: str) -> Refusal | None:
    """Whether an answer is a refusal by a policy of ours, and which; ``None`` = something else.

    ``message`` is that of the ``Status`` the API server answered with. A wrong value is a 403, a
    lease or ledger that is not there a 422. A credential that may not create Jobs gets a 403 too,
    but in other words, and so does a quota.
    """
    if status not in (403, 422):
        return None
    found = _DENIED.fullmatch(message)
    if found is None:
        return None
    text = found["text"]
    if not text.startswith(_PREFIX):  # the API server's own words, as when there is no parameter
        subject = RULES[found["rule"]].subject
        text = f"the API server could not look up the {subject}: {text}"
    return Refusal(found["rule"], text.removeprefix(_PREFIX))


def manifests(namespace: str) -> list[Manifest]:
    """Both policies and their bindings, for one namespace; needs cluster rights to apply.

    Raises ``CallerMistake`` for what cannot be a namespace.
    """
    check_namespace(namespace)
    parameters = {"holder": submit_lease_name(namespace), "fence": ledger_name(namespace)}
    return [
        manifest
        for rule in RULES.values()
        for manifest in (
            _policy(rule, namespace),
            _binding(rule, namespace, parameters[rule.name]),
        )
    ]


def policy_name(rule: Rule, namespace: str) -> str:
    """Of the policy and of its binding, which are not namespaced themselves."""
    return f"blastyard-{rule.name}-{namespace}"


def _policy(rule: Rule, namespace: str) -> Manifest:
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": policy_name(rule, namespace), "labels": dict(LABELS)},
        "spec": {
            "failurePolicy": "Fail",
            "paramKind": {"apiVersion": rule.param_api, "kind": rule.param_kind},
            "matchConstraints": {
                "objectSelector": {"matchLabels": {"app": "finalizer", MANAGED: "true"}},
                "resourceRules": [
                    {
                        "apiGroups": ["batch"],
                        "apiVersions": ["v1"],
                        "resources": ["jobs"],
                        "operations": ["CREATE"],
                        "scope": "Namespaced",
                    }
                ],
            },
            "variables": [
                {"name": "claimed", "expression": _claimed(rule)},
                {"name": "current", "expression": rule.current},
            ],
            "validations": [
                {
                    "expression": (
                        "variables.current != '' && variables.claimed == variables.current"
                    ),
                    "messageExpression": _told(rule),
                    # said where the values themselves cannot be shown
                    "message": f"{_PREFIX}this finalizer does not carry the {rule.subject}",
                    "reason": "Forbidden",
                }
            ],
        },
    }


def _claimed(rule: Rule) -> str:
    annotations = "object.metadata.annotations"
    return f"""\
has({annotations}) && '{rule.annotation}' in {annotations}
  ? {annotations}['{rule.annotation}']
  : ''"""


def _told(rule: Rule) -> str:
    return f"""\
'{_PREFIX}the {rule.subject} is '
  + (variables.current == '' ? '{rule.nothing}' : variables.current)
  + ', and this finalizer carries '
  + (variables.claimed == '' ? 'none' : variables.claimed)"""


def _binding(rule: Rule, namespace: str, parameter: str) -> Manifest:
    name = policy_name(rule, namespace)
    param: dict[str, Any] = {
        "name": parameter,
        "namespace": namespace,
        "parameterNotFoundAction": "Deny",
    }
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name, "labels": dict(LABELS)},
        "spec": {
            "policyName": name,
            "paramRef": param,
            "matchResources": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
            },
            "validationActions": ["Deny"],
        },
    }
