"""What an API server's refusals mean to blastyard.

======================================  ==========================================================
answer                                  becomes
======================================  ==========================================================
401                                     ``Misconfigured('cluster_forbidden')``
403, the credential may not             ``Misconfigured('cluster_forbidden')``, with what to grant
403, the namespace is being deleted     ``Misconfigured('cluster_misconfigured')``
404, there is no such namespace         ``Misconfigured('cluster_misconfigured')``
403, a quota is used up                 :class:`ServerTrouble`
429, 5xx, and what is no Kubernetes     :class:`ServerTrouble`, with its ``Retry-After``
400, 413, 415, 422                      :class:`ServerTrouble`: nothing was applied
======================================  ==========================================================

What an admission policy refused, what was changed meanwhile and what is not there are values
(:mod:`blastyard.kube.client`). A request that the server finds wrong (400, 422) is our mistake or
an API that differs from ours; it counts as *cannot tell*, because that stops what it was for, is
tried again a bounded number of times, and shows the server's words, whereas a crash would take the
searches along that did nothing wrong.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable
from blastyard.kube.rbac import Permission, rule
from blastyard.kube.review import Access, absent_namespace

_SHOWN: Final = 300
"""Characters of a server's words that are shown."""


class ServerTrouble(Unavailable):
    """``cluster_unavailable``: no answer, or one that tells nothing.

    ``status`` is the HTTP status, 0 where none came; ``retry_after`` is in seconds, ``None`` where
    the server did not say.
    """

    def __init__(
        self, message: str, next_step: str, status: int = 0, retry_after: float | None = None
    ) -> None:
        super().__init__("cluster_unavailable", message, next_step)
        self.status = status
        self.retry_after = retry_after


class Cause(msgspec.Struct, frozen=True):
    """One reason within a ``Status``."""

    reason: str = ""
    message: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """What a ``Status`` is about."""

    kind: str = ""
    name: str = ""
    retry_after_seconds: float | None = None
    causes: tuple[Cause, ...] | None = None


class Status(msgspec.Struct, frozen=True):
    """The object that an API server explains itself with (``meta/v1``)."""

    kind: str
    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


_STATUS: Final = msgspec.json.Decoder(Status)


def status_of(body: bytes) -> Status | None:
    """The ``Status`` in a body; ``None`` for anything else, such as a load balancer's page."""
    try:
        status = _STATUS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return status if status.kind == "Status" else None


def is_policy(code: int, status: Status | None) -> bool:
    """Whether an admission policy refused it, rather than the authorizer or the schema.

    The words are the API server's own (``plugin/policy/validating``): a validation that fails is a
    403 or 422 by the policy's choice, a missing parameter a 422.
    """
    return (
        code in (HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY)
        and status is not None
        and "ValidatingAdmissionPolicy '" in status.message
    )


def refusal(
    access: Access, code: int, body: bytes, retry_after: float | None = None
) -> BlastyardError:
    """The error for an answer that is neither a success nor a value."""
    status = status_of(body)
    if status is None or code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _trouble(access, code, body, retry_after)
    if code == HTTPStatus.UNAUTHORIZED:
        return Misconfigured(
            "cluster_forbidden",
            f"the API server does not accept this credential (401, asked to {access})",
            "log in again, or renew the token or certificate that the kubeconfig names",
        )
    if code == HTTPStatus.NOT_FOUND and status.details and status.details.kind == "namespaces":
        return absent_namespace(status.details.name or access.namespace)
    if code == HTTPStatus.FORBIDDEN and "exceeded quota" not in status.message:
        return _forbidden(access, status)
    return _trouble(access, code, body, retry_after)


def _forbidden(access: Access, status: Status) -> Misconfigured:
    causes = (status.details.causes or ()) if status.details else ()
    if any(cause.reason == "NamespaceTerminating" for cause in causes):
        return Misconfigured(
            "cluster_misconfigured",
            f"the namespace {access.namespace!r} is being deleted",
            "wait until it is gone and create it again, or use another one",
        )
    named = "" if access.verb in ("create", "list", "watch", "deletecollection") else access.name
    wanted = Permission(access.group, access.resource, (access.verb,), "", named)
    grant = msgspec.json.encode(rule(wanted)).decode()
    return Misconfigured(
        "cluster_forbidden",
        f"the cluster forbids this credential to {access}: {_words(status.message)}",
        f"add the rule {grant} to its Role; `blastyard gate install --dry-run` prints the Role",
    )


def _trouble(access: Access, code: int, body: bytes, retry_after: float | None) -> ServerTrouble:
    status = status_of(body)
    if status is None:
        said = "with something that is no Kubernetes object"
    else:
        said = f"{status.reason}: {_words(status.message)}"
    if retry_after is None and status and status.details:
        retry_after = status.details.retry_after_seconds
    if code in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
        next_step = "update blastyard if the cluster is newer; nothing was changed by this request"
    else:
        next_step = "try again; if it stays so, ask whoever runs the cluster"
    return ServerTrouble(
        f"the API server answered {code} when asked to {access}, {said}",
        next_step,
        code,
        retry_after,
    )


def _words(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
