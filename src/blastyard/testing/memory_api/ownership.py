"""Who wrote which field, and when: ``metadata.managedFields``.

What matters to readers is ``time``, in whole seconds, and it has corners that are the server's:

* a write that changes nothing changes no time, nor the resourceVersion;
* a write that only *removes* fields changes the resourceVersion, and no time;
* an object that was created with nothing to own, or whose ``managedFields`` a client has put as
  ``[]`` or ``[{}]``, has no ``managedFields``, and never gets them again.

Lists are owned whole here; the server tells the items of some apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from blastyard.testing.memory_api.kind import Json, Kind

Path = tuple[str, ...]

_UNOWNED: Final = frozenset(
    (
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
    )
)
_MAPS: Final = frozenset(("labels", "annotations", "data", "binaryData", "matchLabels"))
_ITSELF: Final = "."


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes: the client's name, and the subresource it writes to."""

    manager: str
    part: str


@dataclass(frozen=True, slots=True)
class Owner:
    """The fields that one writer was the last to change."""

    writer: Writer
    time: str
    fields: frozenset[Path]


def owners_at_creation(document: Json, writer: Writer, time: str) -> tuple[Owner, ...]:
    """Who owns a new object's fields."""
    fields = frozenset(path for path, _ in _leaves(document))
    return (Owner(writer, time, fields),) if fields else ()


def owners_after(
    owners: Sequence[Owner], change: tuple[Json, Json], writer: Writer, time: str
) -> tuple[Owner, ...]:
    """Who owns what after a change from one document to another."""
    if not owners:
        return ()
    before, after = (dict(_leaves(document)) for document in change)
    taken = frozenset(
        path for path, value in after.items() if path not in before or before[path] != value
    )
    lost = taken | (before.keys() - after.keys())
    kept = [replace(owner, fields=owner.fields - lost) for owner in owners]
    if taken:
        mine = next((owner.fields for owner in kept if owner.writer == writer), frozenset())
        kept = [owner for owner in kept if owner.writer != writer]
        kept.append(Owner(writer, time, mine | taken))
    return tuple(
        sorted(
            (owner for owner in kept if owner.fields),
            key=lambda owner: (owner.time, owner.writer.manager, owner.writer.part),
        )
    )


def is_reset(entries: object) -> bool:
    """Whether what a client put as ``managedFields`` gives up on them."""
    return entries in ([], [{}])


def managed_fields(kind: Kind, owners: Sequence[Owner]) -> list[Json]:
    """``metadata.managedFields``."""
    return [_entry(kind, owner) for owner in owners]


def _entry(kind: Kind, owner: Owner) -> Json:
    entry: Json = {
        "manager": owner.writer.manager,
        "operation": "Update",
        "apiVersion": kind.version,
        "time": owner.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": _tree(owner.fields),
    }
    if owner.writer.part:
        entry["subresource"] = owner.writer.part
    return entry


def _tree(fields: frozenset[Path]) -> Json:
    tree: Json = {}
    for path in sorted(fields):
        branch = tree
        for name in path:
            branch = branch.setdefault(name if name == _ITSELF else f"f:{name}", {})
    return tree


def _leaves(document: Json) -> Iterator[tuple[Path, Any]]:
    for name, value in document.items():
        if name == "metadata":
            owned = {key: one for key, one in value.items() if key not in _UNOWNED}
            yield from _below((name,), owned)
        elif name not in ("kind", "apiVersion"):
            yield from _below((name,), value)


def _below(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if not isinstance(value, Mapping):
        yield path, value
        return
    if path[-1] in _MAPS:
        yield (*path, _ITSELF), None
    elif not value and len(path) > 1:
        yield path, None
    for name, one in value.items():
        yield from _below((*path, name), one)
