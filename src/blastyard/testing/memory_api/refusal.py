"""What the API server says when it does not do what it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blastyard.testing.memory_api.kind import Json, Kind

STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
TOO_OLD_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results."
)


class Refusal(Exception):
    """An answer that is an error: its HTTP status, and the Status object in its body."""

    def __init__(self, code: int, reason: str | None, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after: float | None = None
        self.document: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
        }
        if reason is not None:
            self.document["reason"] = reason
        self.document["code"] = code

    def about(self, kind: str, group: str = "", name: str = "", **more: object) -> Refusal:
        """This refusal, saying also what it is about."""
        parts = {"name": name, "group": group, "kind": kind, **more}
        self.document["details"] = {key: value for key, value in parts.items() if value}
        return self


@dataclass(frozen=True, slots=True)
class Fault:
    """One field that may not be as it is."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


def bad_request(message: str) -> Refusal:
    """400: it cannot be understood."""
    return Refusal(400, "BadRequest", message)


def undecodable(kind: Kind, why: str) -> Refusal:
    """400: the object is no such object."""
    return bad_request(f'{kind.name} in version "v1" cannot be handled as a {kind.name}: {why}')


def undecodable_patch(why: str) -> Refusal:
    """422: what the patch makes of the object is no such object."""
    refusal = Refusal(422, "Invalid", f' "" is invalid: patch: Invalid value: {why}')
    cause = {"reason": "FieldValueInvalid", "message": why, "field": "patch"}
    refusal.document["details"] = {"causes": [cause]}
    return refusal


def invalid(kind: Kind, name: str, faults: Sequence[Fault]) -> Refusal:
    """422: the object breaks rules."""
    said = [f"{fault.field}: {fault.message}" for fault in faults]
    listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    causes = [
        {"reason": fault.reason, "message": fault.message, "field": fault.field} for fault in faults
    ]
    refusal = Refusal(422, "Invalid", f'{kind.qualified_name} "{name}" is invalid: {listed}')
    return refusal.about(kind.name, kind.group, name, causes=causes)


def unversioned(kind: Kind, name: str) -> Refusal:
    """422: an update that does not say of what version."""
    why = "Invalid value: 0: must be specified for an update"
    said = f'{kind.qualified} "{name}" is invalid: metadata.resourceVersion: {why}'
    cause = {"reason": "FieldValueInvalid", "message": why, "field": "metadata.resourceVersion"}
    return Refusal(422, "Invalid", said).about(kind.plural, kind.group, name, causes=[cause])


def not_found(kind: Kind, name: str) -> Refusal:
    """404: there is no such object."""
    message = f'{kind.qualified} "{name}" not found'
    return Refusal(404, "NotFound", message).about(kind.plural, kind.group, name)


def no_namespace(name: str) -> Refusal:
    """404: there is no such namespace to create in."""
    message = f'namespaces "{name}" not found'
    return Refusal(404, "NotFound", message).about("namespaces", "", name)


def already_exists(kind: Kind, name: str) -> Refusal:
    """409: the name is taken."""
    message = f'{kind.qualified} "{name}" already exists'
    return Refusal(409, "AlreadyExists", message).about(kind.plural, kind.group, name)


def conflict(kind: Kind, name: str, why: str = STALE) -> Refusal:
    """409: it is not as the request takes it to be."""
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return Refusal(409, "Conflict", message).about(kind.plural, kind.group, name)


def forbidden(kind: Kind, name: str, why: str) -> Refusal:
    """403: this credential may not do that."""
    message = f'{kind.qualified} "{name}" is forbidden: {why}'
    if not name:
        message = f"{kind.qualified} is forbidden: {why}"
    return Refusal(403, "Forbidden", message).about(kind.plural, kind.group, name)


def unauthorized() -> Refusal:
    """401: this is no credential."""
    return Refusal(401, "Unauthorized", "Unauthorized")


def expired(message: str) -> Refusal:
    """410: the history it needs is gone."""
    return Refusal(410, "Expired", message)


def from_the_future(asked: int, now: int) -> Refusal:
    """504: the version is one that has not been yet."""
    message = f"Timeout: Too large resource version: {asked}, current: {now}"
    refusal = Refusal(504, "Timeout", message)
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    refusal.document["details"] = {"causes": [cause], "retryAfterSeconds": 1}
    refusal.retry_after = 1.0
    return refusal


def unknown_path() -> Refusal:
    """404: nothing is there."""
    message = "the server could not find the requested resource"
    return Refusal(404, "NotFound", message).about("")


def unknown_method() -> Refusal:
    """405: not this, not there."""
    message = "the server does not allow this method on the requested resource"
    return Refusal(405, "MethodNotAllowed", message).about("")


def unknown_patch() -> Refusal:
    """415: no patch of this kind is known."""
    return Refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type").about("")


def too_large(limit: int) -> Refusal:
    """413: more than is read."""
    message = f"Request entity too large: limit is {limit}"
    return Refusal(413, "RequestEntityTooLarge", message)
