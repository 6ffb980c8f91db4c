"""What became of a request about one object.

What is expected to happen among several writers is a value here; everything else is raised
(:mod:`blastyard.kube.error`). A success is believed only when it brings the object that was asked
for, and a refusal only when it is the API server's own ``Status``: what stands between us and the
server answers too, in its own way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar, overload

import msgspec

from blastyard.kube.error import ServerTrouble, is_policy, refusal, status_of
from blastyard.kube.review import Access
from blastyard.kube.wire import Answer

Object = dict[str, Any]
"""One Kubernetes object, with everything that stands in it."""

_OBJECT: Final = msgspec.json.Decoder(Object)

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Found:
    """An object as the server has it, and when its answer came (monotonic seconds)."""

    object: Object
    at: float


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no such object."""


@dataclass(frozen=True, slots=True)
class AlreadyExists:
    """There is an object of that name already."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """It was changed, or deleted and made again, since the version that was named."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """It is gone, or will be when whoever holds a finalizer on it lets go."""


@dataclass(frozen=True, slots=True)
class Denied:
    """An admission policy of the cluster refused it; the credential itself is good."""

    status: int
    message: str


_VALUES: Final[Mapping[tuple[int, str], Absent | AlreadyExists | Conflict]] = {
    (HTTPStatus.NOT_FOUND, "NotFound"): Absent(),
    (HTTPStatus.CONFLICT, "AlreadyExists"): AlreadyExists(),
    (HTTPStatus.CONFLICT, "Conflict"): Conflict(),
}


@overload
def settled(access: Access, answer: Answer, a: type[A], b: type[B], /) -> A | B: ...


@overload
def settled(access: Access, answer: Answer, a: type[A], b: type[B], c: type[C], /) -> A | B | C: ...


@overload
def settled(
    access: Access, answer: Answer, a: type[A], b: type[B], c: type[C], d: type[D], /
) -> A | B | C | D: ...


def settled(access: Access, answer: Answer, *expected: type[object]) -> object:
    """The outcome, when it is one of those; raises what else was answered."""
    outcome = _outcome(access, answer)
    if isinstance(outcome, expected):
        return outcome
    raise refusal(access, answer.status, answer.body, answer.retry_after)


def _outcome(access: Access, answer: Answer) -> object:
    """What an answer says; ``None`` for what is to be raised."""
    if is_success(answer.status):
        if access.verb in ("delete", "deletecollection"):
            return _deleted(access, answer)
        return Found(_object(access, answer), answer.received_at)
    status = status_of(answer.body)
    if status is None or (status.details and status.details.kind == "namespaces"):
        return None
    if is_policy(answer.status, status):
        return Denied(answer.status, status.message)
    return _VALUES.get((answer.status, status.reason))


def is_success(status: int) -> bool:
    """Whether the server did what it was asked."""
    return status in (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED)


def unreadable(access: Access, status: int, why: str) -> ServerTrouble:
    """The error for an answer that a Kubernetes API does not give."""
    return ServerTrouble(
        f"the answer ({status}) to {access} cannot be read: {why}",
        "look for a proxy or a load balancer that answers in the API server's place",
        status,
    )


def _object(access: Access, answer: Answer) -> Object:
    """The object in an answer, if it is the one that was asked for."""
    found = _decoded(access, answer)
    metadata = found.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != access.name:
        raise unreadable(access, answer.status, "it is not the object that was asked for")
    if not all(isinstance(metadata.get(key), str) for key in ("uid", "resourceVersion")):
        raise unreadable(access, answer.status, "it has no uid or no resourceVersion")
    return found


def _deleted(access: Access, answer: Answer) -> Deleted:
    """A deletion is answered with a ``Status``, the object, or a list of what was deleted."""
    if "kind" not in _decoded(access, answer):
        raise unreadable(access, answer.status, "it is no Kubernetes object")
    return Deleted()


def _decoded(access: Access, answer: Answer) -> Object:
    try:
        return _OBJECT.decode(answer.body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unreadable(access, answer.status, str(error)) from error
