"""What each verb does to the stored objects, in the order in which the API server checks."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from blastyard.testing.memory_api import refusal
from blastyard.testing.memory_api.decoding import Undecodable, decoded, parsed, patched
from blastyard.testing.memory_api.defaults import complete, inherit_labels, prepare
from blastyard.testing.memory_api.deletion import (
    check_preconditions,
    finalizers_of,
    marked_as_deleted,
    not_collected,
    success,
)
from blastyard.testing.memory_api.job_status import status_faults
from blastyard.testing.memory_api.kind import JOB, Json, Kind, Place
from blastyard.testing.memory_api.moment import whole
from blastyard.testing.memory_api.ownership import (
    Owner,
    Writer,
    is_reset,
    managed_fields,
    owners_after,
    owners_at_creation,
)
from blastyard.testing.memory_api.storage import Record, Storage
from blastyard.testing.memory_api.validation import change_faults, object_faults

_SYSTEM: Final = (
    "namespace",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
"""Metadata that no client changes: what it says of it counts for nothing."""
_ORDER: Final = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)


@dataclass(frozen=True, slots=True)
class Result:
    """An answer that is no error: its HTTP status, and the object in its body."""

    code: int
    record: Record | None
    document: Json | None = None


@dataclass(slots=True)
class Objects:
    """The verbs. Not thread-safe: whoever uses it holds the lock. Each raises ``Refusal``."""

    storage: Storage
    now: Callable[[], datetime]
    namespaces: set[str]
    new_uid: Callable[[], str] = field(default=lambda: str(uuid.uuid4()))

    def get(self, at: Place) -> Result:
        """GET of one object."""
        return Result(200, self._found(at))

    def create(self, at: Place, body: bytes | None, writer: Writer) -> Result:
        """POST to a collection."""
        document = self._read(at.kind, body)
        metadata = document["metadata"]
        self._check_namespace(at, metadata)
        if "generateName" in metadata and "name" not in metadata:
            raise NotImplementedError("no names are generated here: give the object one")
        if "resourceVersion" in metadata:
            said = "resourceVersion should not be set on objects to be created"
            raise refusal.Refusal(500, None, said)
        return self._create(at, document, writer)

    def put(self, at: Place, body: bytes | None, writer: Writer) -> Result:
        """PUT of one object, or of its status."""
        document = self._read(at.kind, body)
        metadata = document["metadata"]
        if "name" not in metadata:
            said = f"the name of the object ({at.name} based on URL) was undeterminable"
            raise refusal.bad_request(f"{said}: name must be provided")
        self._check_name(at, metadata)
        version = self._version(metadata)
        before = self.storage.of(at.kind, at.namespace).get(at.name)
        creates = before is None and at.kind.creates_on_put and not at.part
        uid = metadata.get("uid")
        if uid is not None and (before is not None or creates):
            self._check_uid(at, uid, before)
        if before is None:
            if not creates:
                raise refusal.not_found(at.kind, at.name)
            self._check_namespace(at, metadata)
            return self._create(at, document, writer)
        if version == 0 and not at.kind.puts_unconditionally:
            raise refusal.unversioned(at.kind, at.name)
        if version not in (0, before.revision):
            raise refusal.conflict(at.kind, at.name)
        return self._change(at, before, document, writer)

    def patch(self, at: Place, body: bytes | None, writer: Writer) -> Result:
        """PATCH of one object, or of its status, with a merge patch."""
        try:
            patch = parsed(body)
        except Undecodable as error:
            raise refusal.bad_request(f"error decoding patch: {error}") from None
        before = self._found(at)
        try:
            document = decoded(at.kind, patched(before.document, patch))
        except Undecodable as error:
            raise refusal.undecodable_patch(str(error)) from None
        self._check_name(at, document["metadata"])
        if self._version(document["metadata"]) not in (0, before.revision):
            raise refusal.conflict(at.kind, at.name)
        return self._change(at, before, document, writer)

    def delete(self, at: Place, options: Mapping[str, object]) -> Result:
        """DELETE of one object, with what its ``DeleteOptions`` say."""
        record = self._found(at)
        metadata = record.document["metadata"]
        check_preconditions(at, metadata, options.get("preconditions"))
        finalizers = finalizers_of(at.kind, metadata, options)
        if not finalizers:
            self.storage.remove(at.kind, record)
            return Result(200, None, success(at, metadata))
        marked = marked_as_deleted(record.document, finalizers, whole(self.now()))
        if marked is not None:
            record = self.store(at.kind, record, marked, record.owners)
        self._collect(at.kind, record)
        return Result(200, record)

    def _collect(self, kind: Kind, record: Record) -> None:
        """Act as the garbage collector: nothing here owns anything, so it is done at once."""
        metadata = dict(record.document["metadata"])
        left = not_collected(metadata["finalizers"])
        if not left:
            self.storage.remove(kind, record)
        elif left != metadata["finalizers"]:
            metadata["finalizers"] = left
            self.store(kind, record, {**record.document, "metadata": metadata}, record.owners)

    # -- creating and changing -----------------------------------------------------------------

    def _create(self, at: Place, document: Json, writer: Writer) -> Result:
        kind, metadata = at.kind, document["metadata"]
        if at.namespace not in self.namespaces:
            raise refusal.no_namespace(at.namespace)
        time = whole(self.now())
        for key in (*_SYSTEM, "managedFields", "resourceVersion"):
            metadata.pop(key, None)
        metadata |= {
            "namespace": at.namespace,
            "uid": self.new_uid(),
            "creationTimestamp": time,
        }
        metadata.setdefault("name", "")
        complete(kind, document)
        owners = owners_at_creation(document, writer, time)
        prepare(kind, document)
        faults = object_faults(kind, document)
        if faults:
            raise refusal.invalid(kind, metadata["name"], faults)
        if metadata["name"] in self.storage.of(kind, at.namespace):
            raise refusal.already_exists(kind, metadata["name"])
        return Result(201, self.store(kind, None, document, owners))

    def _change(self, at: Place, before: Record, document: Json, writer: Writer) -> Result:
        kind, old, metadata = at.kind, before.document, document["metadata"]
        self._check_namespace(at, metadata)
        forgets_owners = is_reset(metadata.pop("managedFields", None))
        metadata.setdefault("uid", old["metadata"]["uid"])
        for key in _SYSTEM:
            metadata.pop(key, None)
            if key in old["metadata"]:
                metadata[key] = old["metadata"][key]
        if kind is JOB:
            self._keep_other_half(at, old, document)
        faults = change_faults(kind, old, document)
        if at.part:
            faults += status_faults(document["spec"], old["status"], document["status"])
        if faults:
            raise refusal.invalid(kind, at.name, faults)
        if _content(old) == _content(document) and not (forgets_owners and before.owners):
            return Result(200, before)
        owners = owners_after(before.owners, (old, document), writer, whole(self.now()))
        owners = () if forgets_owners else owners
        if "deletionTimestamp" in metadata and "finalizers" not in metadata:
            self.storage.remove(kind, before)
            last = _ordered(kind, document, owners, before.revision)
            return Result(200, Record(last, owners, before.revision))
        return Result(200, self.store(kind, before, document, owners))

    def _keep_other_half(self, at: Place, old: Json, document: Json) -> None:
        """The status is written at its own path, and the specification nowhere else."""
        kept = "spec" if at.part else "status"
        document[kept] = old[kept]
        inherit_labels(document)
        if document["spec"] != old["spec"]:
            document["metadata"]["generation"] = old["metadata"]["generation"] + 1

    def store(
        self, kind: Kind, before: Record | None, document: Json, owners: tuple[Owner, ...]
    ) -> Record:
        """Store the next version of an object, checked or not."""
        ordered = _ordered(kind, document, owners, self.storage.revision + 1)
        return self.storage.put(kind, before, ordered, owners)

    # -- checks --------------------------------------------------------------------------------

    def _found(self, at: Place) -> Record:
        record = self.storage.of(at.kind, at.namespace).get(at.name)
        if record is None:
            raise refusal.not_found(at.kind, at.name)
        return record

    def _read(self, kind: Kind, body: bytes | None) -> Json:
        try:
            sent = parsed(body)
        except Undecodable as error:
            said = f"the object provided is unrecognized (must be of type {kind.name}): {error}"
            raise refusal.bad_request(said) from None
        try:
            return decoded(kind, sent)
        except Undecodable as error:
            raise refusal.undecodable(kind, str(error)) from None

    def _version(self, metadata: Json) -> int:
        text = metadata.get("resourceVersion", "0")
        if not (text.isascii() and text.isdigit()):
            said = f'strconv.ParseUint: parsing "{text}": invalid syntax'
            raise refusal.Refusal(500, None, said)
        return int(text)

    def _check_name(self, at: Place, metadata: Json) -> None:
        name = metadata.get("name", "")
        if name != at.name:
            said = f"the name of the object ({name}) does not match the name on the URL ({at.name})"
            raise refusal.bad_request(said)

    def _check_namespace(self, at: Place, metadata: Json) -> None:
        if metadata.get("namespace", at.namespace) != at.namespace:
            said = "the namespace of the provided object does not match the namespace sent on the"
            raise refusal.bad_request(f"{said} request")

    def _check_uid(self, at: Place, uid: str, before: Record | None) -> None:
        found = "" if before is None else before.document["metadata"]["uid"]
        if uid != found:
            said = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
            raise refusal.conflict(at.kind, at.name, said)


def _content(document: Json) -> Json:
    """An object without what the server writes into it by itself."""
    written = ("resourceVersion", "managedFields")
    metadata = {key: one for key, one in document["metadata"].items() if key not in written}
    return {**document, "metadata": metadata}


def _ordered(kind: Kind, document: Json, owners: tuple[Owner, ...], revision: int) -> Json:
    """The whole object, its metadata in their usual order."""
    metadata = {**document["metadata"], "resourceVersion": str(revision)}
    metadata.pop("managedFields", None)
    if owners:
        metadata["managedFields"] = managed_fields(kind, owners)
    return {**document, "metadata": {key: metadata[key] for key in _ORDER if key in metadata}}
