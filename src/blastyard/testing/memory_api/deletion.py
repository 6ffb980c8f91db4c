"""What a DELETE does: preconditions, finalizers, and who must be done before an object is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from blastyard.testing.memory_api.decoding import Undecodable, parsed
from blastyard.testing.memory_api.kind import Json, Kind, Place
from blastyard.testing.memory_api.refusal import Refusal, conflict

_ORPHAN: Final = "orphan"
_COLLECTED: Final = {"Orphan": _ORPHAN, "Foreground": "foregroundDeletion"}
"""Policy to the finalizer that the garbage collector takes away again."""


def delete_options(body: bytes | None) -> Mapping[str, object]:
    """The ``DeleteOptions`` in a body, which may be empty. Raises ``Refusal``."""
    try:
        options = parsed(body) if body else {}
    except Undecodable as error:
        raise Refusal(500, None, str(error)) from None
    policy = options.get("propagationPolicy")
    if policy not in (None, "Background", *_COLLECTED):
        said = f'Unsupported value: "{policy}": supported values: "Foreground", "Background"'
        raise Refusal(422, "Invalid", f"propagationPolicy: {said}")
    return options


def check_preconditions(at: Place, metadata: Json, wanted: object) -> None:
    """Raise ``Refusal`` (409) unless the object is the one that is meant."""
    if not isinstance(wanted, Mapping):
        return
    for key, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        asked = wanted.get(key)
        if asked is not None and asked != metadata[key]:
            said = f"the {label} in the precondition ({asked}) does not match the {label}"
            raise conflict(at.kind, at.name, f"{said} in record ({metadata[key]})")


def finalizers_of(kind: Kind, metadata: Json, options: Mapping[str, object]) -> list[str]:
    """What must still be done once the object is marked as deleted."""
    found = metadata.get("finalizers", [])
    policy = options.get("propagationPolicy")
    collected = [name for name in found if name in _COLLECTED.values()]
    if isinstance(policy, str):
        collected = [_COLLECTED[policy]] if policy in _COLLECTED else []
    elif kind.orphans and not collected:
        collected = [_ORPHAN]
    return not_collected(found) + collected


def not_collected(finalizers: Sequence[str]) -> list[str]:
    """Those that somebody else than the garbage collector must take away."""
    return [name for name in finalizers if name not in _COLLECTED.values()]


def marked_as_deleted(document: Json, finalizers: list[str], time: str) -> Json | None:
    """The object with the mark and these finalizers; ``None`` = it has them already."""
    metadata = dict(document["metadata"])
    if "deletionTimestamp" in metadata and metadata.get("finalizers") == finalizers:
        return None
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = time
        metadata["deletionGracePeriodSeconds"] = 0
        if "generation" in metadata:
            metadata["generation"] += 1
    metadata["finalizers"] = finalizers
    return {**document, "metadata": metadata}


def success(at: Place, metadata: Json) -> Json:
    """What is answered when an object is gone at once."""
    parts = {
        "name": at.name,
        "group": at.kind.group,
        "kind": at.kind.plural,
        "uid": metadata["uid"],
    }
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in parts.items() if value},
    }
