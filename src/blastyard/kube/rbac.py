"""What blastyard may do in a namespace, and the Role that says so.

One table (:func:`needed`). The Role that is installed and the check of a credential
(:mod:`blastyard.kube.rights`) both come from it, so that they cannot differ.

Two things that RBAC cannot say, and what follows:

* A rule with ``resourceNames`` never allows ``create``, and allows ``list`` and ``watch`` only to a
  request with the field selector ``metadata.name=<name>``. So the ledger is watched by that
  selector, and all other ConfigMaps of the namespace stay out of reach.
* There is no rule for a *prefix* of names. Submitter leases are named by a hash, so the rule for
  leases has no names, and allows the deletion of the submit lease too, which nobody ever does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from blastyard.domain.errors import CallerMistake

Manifest = Mapping[str, Any]
"""One Kubernetes object, as it is applied."""

NAME: Final = "blastyard"
"""Of the Role and its binding, and of the ServiceAccount unless another is asked for."""

LABELS: Final = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": NAME}

_RBAC: Final = "rbac.authorization.k8s.io"
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_LABEL_LENGTH: Final = 63
_NAME_LENGTH: Final = 253


@dataclass(frozen=True, slots=True)
class Permission:
    """Verbs on one resource of one API group (``""`` is the core), and why blastyard needs them.

    ``name`` is that of the only object it is about; ``""`` means any.
    """

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    name: str = ""


def submit_lease_name(namespace: str) -> str:
    """The Lease that says who is inside Gate A; every submitter knows it by this name."""
    return f"elb-blast-submit-{namespace}"


def ledger_name(namespace: str) -> str:
    """The ConfigMap that has the ledger."""
    return f"elb-blast-ledger-{namespace}"


def needed(namespace: str) -> tuple[Permission, ...]:
    """Everything blastyard asks of the API server in its namespace, enforcement aside."""
    return (
        Permission(
            "coordination.k8s.io",
            "leases",
            ("get", "list", "watch", "create", "update", "delete"),
            "the submit lease, and one lease for each submitter, deleted when it retires",
        ),
        Permission(
            "",
            "configmaps",
            ("get", "list", "watch", "update"),
            "the ledger, watched by its name",
            ledger_name(namespace),
        ),
        Permission("", "configmaps", ("create",), "the first ledger"),
        Permission(
            "batch",
            "jobs",
            ("get", "list", "watch", "create", "patch", "delete", "deletecollection"),
            "the census, markers and their deadline, and what a failed submission left",
        ),
    )


def rule(permission: Permission) -> dict[str, Any]:
    """The permission as one rule of a Role."""
    said: dict[str, Any] = {
        "apiGroups": [permission.group],
        "resources": [permission.resource],
        "verbs": list(permission.verbs),
    }
    if permission.name:
        said["resourceNames"] = [permission.name]
    return said


def manifests(namespace: str, service_account: str = NAME) -> list[Manifest]:
    """ServiceAccount, Role and RoleBinding, in the order in which they are applied.

    Raises ``CallerMistake`` for names that Kubernetes does not allow.
    """
    check_namespace(namespace)
    check_account(service_account)
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": _metadata(service_account, namespace),
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": _metadata(NAME, namespace),
            "rules": [rule(each) for each in needed(namespace)],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": _metadata(_binding_name(service_account), namespace),
            "subjects": [
                {"kind": "ServiceAccount", "name": service_account, "namespace": namespace}
            ],
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": NAME},
        },
    ]


def _binding_name(service_account: str) -> str:
    """Each account has a binding of its own: installing for one takes nothing from another."""
    return NAME if service_account == NAME else f"{NAME}-{service_account}"


def _metadata(name: str, namespace: str) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "labels": dict(LABELS)}


def check_namespace(namespace: str) -> None:
    """Raise ``CallerMistake`` unless this can be a namespace (RFC 1123 label)."""
    if not _LABEL.fullmatch(namespace) or len(namespace) > _LABEL_LENGTH:
        raise CallerMistake(
            "request_invalid",
            f"{namespace!r} cannot be the name of a namespace",
            "at most 63 of a-z, 0-9 and '-', beginning and ending with a letter or a digit",
        )


def check_account(name: str) -> None:
    """Raise ``CallerMistake`` unless this can be a ServiceAccount (RFC 1123 subdomain)."""
    parts = name.split(".")
    if not all(_LABEL.fullmatch(part) for part in parts) or len(name) > _NAME_LENGTH - len(NAME):
        raise CallerMistake(
            "request_invalid",
            f"{name!r} cannot be the name of a ServiceAccount",
            "a-z, 0-9, '-' and '.', beginning and ending with a letter or a digit",
        )
