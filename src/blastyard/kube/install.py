"""What an operator installs once in a namespace: printed for a look, or applied.

Applied by server-side apply, so that doing it again changes nothing, and a newer blastyard changes
only what differs. Rights are asked for first: either the whole is applied or, as far as can be
known before, nothing.

Without ``enforce`` everything is namespaced, and a namespace's administrator may apply it. The
policies of ``enforce`` belong to the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal

import msgspec
import yaml

from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable
from blastyard.kube import policy, rbac
from blastyard.kube.client import FIELD_MANAGER
from blastyard.kube.error import Status, status_of
from blastyard.kube.outcome import Absent, Denied, Found, Object, settled
from blastyard.kube.rbac import Manifest
from blastyard.kube.resource import CONFIGMAPS, LEASES, Resource
from blastyard.kube.review import Access
from blastyard.kube.rights import judge
from blastyard.kube.wire import Answer, Call, Wire

_APPLY: Final = "application/apply-patch+yaml"
_WIDTH: Final = 96
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_RESOURCES: Final = {
    each.kind: each
    for each in (
        Resource("", "v1", "serviceaccounts", "ServiceAccount"),
        Resource(_RBAC, "v1", "roles", "Role"),
        Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
        Resource(
            _ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False
        ),
        Resource(
            _ADMISSION,
            "v1",
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
            False,
        ),
    )
}
_PARAMETERS: Final = {each.kind: each for each in (LEASES, CONFIGMAPS)}
_ESCALATION: Final = "attempting to grant RBAC permissions"
_VERBS: Final = ("get", "create", "patch")
"""What applying an object takes: ``create`` too, when the patch finds nothing."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one object."""

    kind: str
    name: str
    outcome: Literal["created", "changed", "unchanged"]


def manifests(
    namespace: str, service_account: str = rbac.NAME, *, enforce: bool = False
) -> list[Manifest]:
    """Everything to install in the namespace, in the order in which it is applied.

    Raises ``CallerMistake`` for names that Kubernetes does not allow.
    """
    wanted = rbac.manifests(namespace, service_account)
    return [*wanted, *policy.manifests(namespace)] if enforce else wanted


def rendered(documents: Iterable[Any]) -> str:
    """The same as YAML, one document after another, as ``kubectl apply -f -`` reads it."""
    return "---\n".join(_comment(each) + _yaml(each) for each in documents)


class _Dumper(yaml.SafeDumper):
    """Lists of words on one line, and text of several lines as it is."""


def _words(dumper: _Dumper, words: list[Any]) -> Any:
    flat = all(isinstance(word, str) for word in words)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", words, flow_style=flat)


def _text(dumper: _Dumper, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(list, _words)
_Dumper.add_representer(str, _text)


def _yaml(each: Any) -> str:
    text: str = yaml.dump(each, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)
    return text


def _comment(each: Any) -> str:
    """Why each rule of our Role is there, for whoever has to approve it."""
    if not isinstance(each, dict) or each.get("kind") != "Role":
        return ""
    permissions = rbac.needed(each["metadata"]["namespace"])
    whys = [f"#   {each.name or each.resource}: {each.why}\n" for each in permissions]
    return "".join(["# What each rule is for:\n", *whys])


def missing(wire: Wire, wanted: Sequence[Manifest]) -> tuple[Access, ...]:
    """The rights that :func:`apply` needs and this credential does not have.

    Whoever makes a policy must be allowed to read every object of the kind of its parameter. That
    one may only grant what one has is not asked for beforehand: there are two ways around it, and
    :func:`apply` passes on what the API server says of it.
    """
    asked = dict.fromkeys(
        access
        for each in wanted
        for access in (*(_access(verb, each, "") for verb in _VERBS), *_parameter(each))
    )
    return tuple(verdict.access for verdict in judge(wire, asked) if not verdict.allowed)


def _parameter(wanted: Manifest) -> tuple[Access, ...]:
    kind = wanted.get("spec", {}).get("paramKind")
    if kind is None:
        return ()
    resource = _PARAMETERS[kind["kind"]]
    return (Access("get", resource.group, resource.plural, ""),)


def apply(wire: Wire, wanted: Sequence[Manifest]) -> tuple[Applied, ...]:
    """Make the cluster have all of it, and nothing besides; says what that changed.

    Raises ``Misconfigured`` where the credential may not (``cluster_forbidden``, which names every
    missing right) or the cluster cannot have it, and ``Unavailable``, which leaves open whether the
    object it names was applied: apply again.
    """
    absent = missing(wire, wanted)
    if absent:
        raise _forbidden(absent)
    done: list[Applied] = []
    for each in wanted:
        try:
            done.append(_apply(wire, each))
        except BlastyardError as error:
            kind = Unavailable if isinstance(error, Unavailable) else Misconfigured
            message = f"{error.message}; {_so_far(done)}"
            raise kind(error.code, message, error.next_step) from error
    return tuple(done)


def _forbidden(absent: Sequence[Access]) -> Misconfigured:
    listed = "".join(f"\n  {access}" for access in absent)
    next_step = "pass the output of --dry-run to somebody who may apply it (kubectl apply -f -)"
    if all(not access.namespace for access in absent):
        next_step = (
            "without --enforce the rest can be applied; for the policies pass the output of "
            "--dry-run --enforce to an administrator of the cluster (kubectl apply -f -)"
        )
    return Misconfigured("cluster_forbidden", f"this credential may not{listed}", next_step)


def _so_far(done: Sequence[Applied]) -> str:
    names = ", ".join(f"{each.kind} {each.name} ({each.outcome})" for each in done)
    return f"applied before that: {names}" if done else "nothing was applied before that"


def _apply(wire: Wire, wanted: Manifest) -> Applied:
    kind, name = wanted["kind"], wanted["metadata"]["name"]
    reading = wire.send(Call("GET", _path(wanted)))
    if reading.status == HTTPStatus.NOT_FOUND and status_of(reading.body) is None:
        raise _unknown(wanted)  # the path itself is not known: "404 page not found"
    before = settled(_access("get", wanted, name), reading, Found, Absent)
    query = {"fieldManager": FIELD_MANAGER, "force": "true"}
    body = msgspec.json.encode(wanted)
    answer = wire.send(Call("PATCH", _path(wanted), query, body, _APPLY))
    status = status_of(answer.body)
    if status and (refused := _refused(answer, status, f"{kind} {name}")):
        raise refused
    match settled(_access("patch", wanted, name), answer, Found, Denied):
        case Denied(message=message):
            raise Misconfigured(
                "cluster_misconfigured",
                f"a policy of the cluster refuses {kind} {name}: {message}",
                "ask whoever made that policy",
            )
        case Found(object=after):
            return Applied(kind, name, _outcome(before, after))


def _outcome(before: Found | Absent, after: Object) -> Literal["created", "changed", "unchanged"]:
    if isinstance(before, Absent):
        return "created"
    version = before.object["metadata"]["resourceVersion"]
    return "unchanged" if version == after["metadata"]["resourceVersion"] else "changed"


def _refused(answer: Answer, status: Status, what: str) -> Misconfigured | None:
    """The error for refusals that only an installation meets."""
    if answer.status == HTTPStatus.FORBIDDEN and _ESCALATION in status.message:
        return Misconfigured(
            "cluster_forbidden",
            f"the cluster refuses {what}: {status.message}",
            "nobody may grant what he may not do himself: pass the output of --dry-run to an "
            "administrator (kubectl apply -f -)",
        )
    if answer.status == HTTPStatus.UNPROCESSABLE_ENTITY:
        return Misconfigured(
            "cluster_misconfigured",
            f"the cluster cannot have {what} as it should be: {status.message}",
            "if what stands in its place is not needed, delete it and install again",
        )
    return None


def _unknown(wanted: Manifest) -> Misconfigured:
    return Misconfigured(
        "cluster_misconfigured",
        f"this API server does not know {wanted['kind']} ({wanted['apiVersion']})",
        "policies came with Kubernetes 1.30; an older cluster does without --enforce",
    )


def _access(verb: str, wanted: Manifest, name: str) -> Access:
    resource = _RESOURCES[wanted["kind"]]
    namespace = wanted["metadata"].get("namespace", "")
    return Access(verb, resource.group, resource.plural, namespace, name)


def _path(wanted: Manifest) -> str:
    metadata = wanted["metadata"]
    return _RESOURCES[wanted["kind"]].path(metadata.get("namespace", ""), metadata["name"])
