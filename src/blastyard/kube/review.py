"""Access to an API server, verb by verb, and what it decided about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from blastyard.domain.errors import Misconfigured
from blastyard.kube.rbac import Permission, rule


@dataclass(frozen=True, slots=True)
class Access:
    """One verb on one resource. ``namespace`` is ``""`` for a cluster's own; ``name`` for any."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str = ""

    def __str__(self) -> str:
        """In words, as the API server says it."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        name = f' "{self.name}"' if self.name else ""
        where = f'in the namespace "{self.namespace}"' if self.namespace else "in the cluster"
        return f"{self.verb} {resource}{name} {where}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the API server decided. ``reason`` is its own, and often empty."""

    access: Access
    allowed: bool
    reason: str


def accesses(permissions: Iterable[Permission], namespace: str) -> tuple[Access, ...]:
    """The permissions verb by verb."""
    return tuple(
        Access(verb, each.group, each.resource, namespace, each.name)
        for each in permissions
        for verb in each.verbs
    )


def rules_to_add(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    """The least rules of a Role that would allow what was refused."""
    missing: dict[tuple[str, str, str], list[str]] = {}
    for verdict in verdicts:
        if not verdict.allowed:
            access = verdict.access
            key = (access.group, access.resource, access.name)
            missing.setdefault(key, []).append(access.verb)
    return [
        rule(Permission(group, resource, tuple(verbs), "", name))
        for (group, resource, name), verbs in missing.items()
    ]


def absent_namespace(namespace: str) -> Misconfigured:
    """The error for a namespace that is not there."""
    return Misconfigured(
        "cluster_misconfigured",
        f"the cluster has no namespace {namespace!r}",
        f"create it (kubectl create namespace {namespace}), or name another",
    )
