"""From what a client sent to an object: known fields only, each of its type.

As in the API server, a field that is not known, or is ``null``, is dropped without a word, and one
of another type makes the whole object unreadable. Pod templates are the exception here: whatever
is in them is kept as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from blastyard.testing.memory_api.kind import CONFIG_MAP, JOB, LEASE, Json, Kind
from blastyard.testing.memory_api.moment import micro, read_whole, whole


class Undecodable(Exception):
    """A field has a value of another type."""


Reader = Callable[[Any, str], Any]
"""From a value and the name of its field to the value as it is kept."""

_INT32: Final = 2**31


def _named(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _wrong(value: object, where: str, wanted: str) -> Undecodable:
    if isinstance(value, int | float) and not isinstance(value, bool) and wanted == "int32":
        return Undecodable(
            f"json: cannot unmarshal number {value} into Go struct field {where} of type {wanted}"
        )
    return Undecodable(
        f"json: cannot unmarshal {_named(value)} into Go struct field {where} of type {wanted}"
    )


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(value, where, "string")
    return value


def _truth(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, where, "bool")
    return value


def _number(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT32 <= value < _INT32:
        raise _wrong(value, where, "int32")
    return value


def _texts(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _wrong(value, where, "map[string]string")
    return {key: "" if one is None else _text(one, where) for key, one in value.items()}


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(value, where, "[]string")
    return [_as_it_is(one, where) for one in value]


def _micro(value: Any, where: str) -> str | None:
    try:
        return micro(_text(value, where))
    except ValueError as error:
        raise Undecodable(str(error)) from None


def _moment(value: Any, where: str) -> str:
    try:
        return whole(read_whole(_text(value, where)))
    except ValueError:
        layout = "2006-01-02T15:04:05Z07:00"
        raise Undecodable(f'parsing time "{value}" as "{layout}": cannot parse it') from None


def _as_it_is(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        return {key: _as_it_is(one, where) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_as_it_is(one, where) for one in value]
    return value


def _struct(name: str, readers: Mapping[str, Reader], optional: tuple[str, ...] = ()) -> Reader:
    """``optional`` fields are left out when empty, as if they had not been given."""

    def read(value: Any, where: str) -> Json:
        if not isinstance(value, dict):
            raise _wrong(value, where, f"v1.{name}")
        path = where.partition(".")[2]
        found = {
            key: reader(value[key], f"{name}.{path}.{key}")
            for key, reader in readers.items()
            if value.get(key) is not None
        }
        return {key: one for key, one in found.items() if one or key not in optional}

    return read


_METADATA: Final[Mapping[str, Reader]] = {
    "name": _text,
    "generateName": _text,
    "namespace": _text,
    "uid": _text,
    "resourceVersion": _text,
    "generation": _number,
    "creationTimestamp": _moment,
    "deletionTimestamp": _moment,
    "deletionGracePeriodSeconds": _number,
    "labels": _texts,
    "annotations": _texts,
    "ownerReferences": _list,
    "finalizers": _list,
    "managedFields": _list,
}
_EMPTY_METADATA: Final = tuple(
    key for key in _METADATA if key not in ("deletionGracePeriodSeconds", "managedFields")
)
_METADATA_READER: Final = _struct("ObjectMeta", _METADATA, _EMPTY_METADATA)

_LEASE_SPEC: Final[Mapping[str, Reader]] = {
    "holderIdentity": _text,
    "leaseDurationSeconds": _number,
    "acquireTime": _micro,
    "renewTime": _micro,
    "leaseTransitions": _number,
}
_JOB_SPEC: Final[Mapping[str, Reader]] = {
    "parallelism": _number,
    "completions": _number,
    "activeDeadlineSeconds": _number,
    "podFailurePolicy": _as_it_is,
    "successPolicy": _as_it_is,
    "backoffLimit": _number,
    "backoffLimitPerIndex": _number,
    "maxFailedIndexes": _number,
    "selector": _as_it_is,
    "manualSelector": _truth,
    "template": _struct("PodTemplateSpec", {"metadata": _as_it_is, "spec": _as_it_is}),
    "ttlSecondsAfterFinished": _number,
    "completionMode": _text,
    "suspend": _truth,
    "podReplacementPolicy": _text,
    "managedBy": _text,
}
_CONDITION: Final = _struct(
    "JobCondition",
    {
        "type": _text,
        "status": _text,
        "lastProbeTime": _moment,
        "lastTransitionTime": _moment,
        "reason": _text,
        "message": _text,
    },
)

_NO_TIMES: Final = {"lastProbeTime": None, "lastTransitionTime": None}


def _conditions(value: Any, where: str) -> list[Json]:
    if not isinstance(value, list):
        raise _wrong(value, where, "[]v1.JobCondition")
    return [{**_NO_TIMES, **_CONDITION(one, where)} for one in value]


_JOB_STATUS: Final[Mapping[str, Reader]] = {
    "conditions": _conditions,
    "startTime": _moment,
    "completionTime": _moment,
    "active": _number,
    "succeeded": _number,
    "failed": _number,
    "terminating": _number,
    "completedIndexes": _text,
    "failedIndexes": _text,
    "uncountedTerminatedPods": _as_it_is,
    "ready": _number,
}
_EMPTY_STATUS: Final = ("conditions", "active", "succeeded", "failed", "completedIndexes")

_PARTS: Final[Mapping[Kind, Mapping[str, Reader]]] = {
    CONFIG_MAP: {"data": _texts, "binaryData": _texts, "immutable": _truth},
    LEASE: {"spec": _struct("LeaseSpec", _LEASE_SPEC)},
    JOB: {
        "spec": _struct("JobSpec", _JOB_SPEC),
        "status": _struct("JobStatus", _JOB_STATUS, _EMPTY_STATUS),
    },
}


def parsed(body: bytes | None) -> Json:
    """The JSON object in a body. Raises ``Undecodable``."""
    try:
        document = msgspec.json.decode(body or b"")
    except msgspec.DecodeError as error:
        raise Undecodable(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(document, dict):
        raise Undecodable("couldn't get version/kind; json parse error: it is no object")
    return document


def decoded(kind: Kind, sent: Json) -> Json:
    """An object of this kind, its fields in their usual order. Raises ``Undecodable``.

    Its kind and version may be missing, but not others.
    """
    theirs = sent.get("apiVersion") or kind.version, sent.get("kind") or kind.name
    if theirs != (kind.version, kind.name):
        raise Undecodable(f"{theirs[1]} in {theirs[0]} is another kind: unknown conversion")
    document: Json = {
        "kind": kind.name,
        "apiVersion": kind.version,
        "metadata": _METADATA_READER(sent.get("metadata") or {}, f"{kind.name}.metadata"),
    }
    for part, reader in _PARTS[kind].items():
        where = f"{kind.name}.{part}"
        if sent.get(part) is not None:
            document[part] = reader(sent[part], where)
        elif kind is not CONFIG_MAP:
            document[part] = {}
    for part in ("data", "binaryData"):
        if document.get(part) == {}:
            del document[part]
    return document


def patched(document: Any, patch: Any) -> Any:
    """What a merge patch (RFC 7386) makes of it; neither is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key), value)
    return result
