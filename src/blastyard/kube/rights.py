"""What a credential may do, asked of the API server itself, changing nothing.

Every authenticated account may create a ``SelfSubjectAccessReview``, and the server keeps none. A
``SelfSubjectRulesReview`` would be one request instead of one for each verb, but by its own
documentation its answer may be incomplete; an access review is the decision itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

import msgspec

from blastyard.domain.errors import Misconfigured
from blastyard.kube.error import refusal, status_of
from blastyard.kube.outcome import unreadable
from blastyard.kube.rbac import check_namespace, needed
from blastyard.kube.resource import LEASES, Resource
from blastyard.kube.review import Access, Verdict, absent_namespace, accesses
from blastyard.kube.wire import Answer, Call, Wire

_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False
)
_ASK: Final = Access("create", _REVIEWS.group, _REVIEWS.plural, "")


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    allowed: bool
    reason: str = ""
    evaluation_error: str = ""


class _Review(msgspec.Struct, frozen=True):
    status: _Status


def check(wire: Wire, namespace: str) -> tuple[Verdict, ...]:
    """A verdict on every verb of the Role (:func:`blastyard.kube.rbac.needed`), in its order.

    Raises ``CallerMistake`` for what cannot be a namespace, ``Misconfigured`` where there is no
    such namespace or the credential is not accepted at all, and ``Unavailable`` when it cannot be
    told.
    """
    check_namespace(namespace)
    _prove_namespace(wire, namespace)
    return judge(wire, accesses(needed(namespace), namespace))


def judge(wire: Wire, asked: Iterable[Access]) -> tuple[Verdict, ...]:
    """A verdict on each, one request each. Raises as :func:`check`, of namespaces nothing."""
    return tuple(_judge(wire, access) for access in asked)


def _judge(wire: Wire, access: Access) -> Verdict:
    attributes = {
        "verb": access.verb,
        "group": access.group,
        "resource": access.resource,
        "namespace": access.namespace,
        "name": access.name,
    }
    body = {
        "apiVersion": _REVIEWS.api_version,
        "kind": _REVIEWS.kind,
        "spec": {"resourceAttributes": attributes},
    }
    answer = wire.send(Call("POST", _REVIEWS.path(""), body=msgspec.json.encode(body)))
    if answer.status != HTTPStatus.CREATED:
        raise _unasked(answer)
    try:
        status = msgspec.json.decode(answer.body, type=_Review).status
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unreadable(_ASK, answer.status, str(error)) from error
    # an authorizer that failed has decided nothing; the verdict is that of the others
    reason = "; ".join(filter(None, (status.reason, status.evaluation_error)))
    return Verdict(access, status.allowed, reason)


def _unasked(answer: Answer) -> Exception:
    status = status_of(answer.body)
    if answer.status == HTTPStatus.FORBIDDEN and status:
        return Misconfigured(
            "cluster_forbidden",
            f"this credential may not even ask what it may do: {status.message}",
            "use the credential of an account; an anonymous request may do nothing here",
        )
    return refusal(_ASK, answer.status, answer.body, answer.retry_after)


def _prove_namespace(wire: Wire, namespace: str) -> None:
    """Raise ``Misconfigured`` when there is no such namespace, which no review would say.

    Asked by a creation that is not carried out (``dryRun``), so that no right to read namespaces is
    needed. Every answer but one leaves the matter open.
    """
    body = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": "blastyard-check", "namespace": namespace},
    }
    call = Call("POST", LEASES.path(namespace), {"dryRun": "All"}, msgspec.json.encode(body))
    answer = wire.send(call)
    status = status_of(answer.body) if answer.status == HTTPStatus.NOT_FOUND else None
    if status and status.details and status.details.kind == "namespaces":
        raise absent_namespace(namespace)
