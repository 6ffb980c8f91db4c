"""How the documents of admission stand in a namespace.

====================  ==========================================  ============================
document              object                                      body
====================  ==========================================  ============================
``lease``             Lease ``elb-blast-submit-<namespace>``      four fields of its ``spec``
``ledger``            ConfigMap ``elb-blast-ledger-<namespace>``  ``data.ledger``, as it is
``submitter/<name>``  Lease ``blastyard-submitter-<hash>``        an annotation, as it is
====================  ==========================================  ============================

All of it is pure. An object is changed only in what is ours; whatever else stands on it is kept,
as other programs write these objects too. Every write changes something, because an API server
gives a write without a change neither a new version nor a new stamp.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from blastyard.admission.lease import SubmitLease, format_time, parse_time
from blastyard.admission.ledger import Fence, encode
from blastyard.admission.port import LEASE, LEDGER, SUBMITTER
from blastyard.kube.outcome import Object
from blastyard.kube.policy import FENCE_KEY
from blastyard.kube.rbac import ledger_name, submit_lease_name
from blastyard.kube.resource import CONFIGMAPS, LEASES, Resource

KIND: Final = "blastyard/kind"
"""Label of our objects; on the submit lease it may be missing, as other programs take it off."""
BODY: Final = "blastyard/submitter"
"""Annotation with the body of a submitter."""
REWRITTEN: Final = "blastyard/rewritten"
"""Annotation that makes a write of the same content a change: the version it replaced."""

SUBMITTER_SECONDS: Final = 45
"""What a submitter's Lease says of itself, for whoever looks at it with ``kubectl``."""

_KINDS: Final = {LEASE: "submit-lease", LEDGER: "ledger"}
_SUBMITTER_KIND: Final = "submitter"
SUBMITTERS: Final = f"{KIND}={_SUBMITTER_KIND}"
"""Label selector of the submitters' Leases."""

_BEING_DELETED: Final = SubmitLease("being deleted", renew_time="being deleted")
_SPEC: Final = ("holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime")
_HASH_BYTES: Final = 10

PUT_BACK: Final = timedelta(seconds=2)
"""A stamp so far ahead of the server's clock says that the clock was put back."""


@dataclass(frozen=True, slots=True)
class Place:
    """The object that a document stands in."""

    resource: Resource
    name: str


class _Numbered(msgspec.Struct, frozen=True):
    uid: str
    fence: int


_NUMBERED: Final = msgspec.json.Decoder(_Numbered)


def place(namespace: str, document: str) -> Place:
    """Where a document is. Raises ``ValueError`` for what is no document of admission."""
    if document == LEASE:
        return Place(LEASES, submit_lease_name(namespace))
    if document == LEDGER:
        return Place(CONFIGMAPS, ledger_name(namespace))
    if document.startswith(SUBMITTER) and document != SUBMITTER:
        return Place(LEASES, _submitter_object(document))
    raise ValueError(f"{document!r} is no document of admission")


def document_in(namespace: str, resource: Resource, found: Object) -> str | None:
    """Which document an object is; ``None`` for what is not ours."""
    metadata = found["metadata"]
    name = metadata["name"]
    if resource is CONFIGMAPS:
        return LEDGER if name == ledger_name(namespace) else None
    if name == submit_lease_name(namespace):
        return LEASE
    if (metadata.get("labels") or {}).get(KIND) != _SUBMITTER_KIND:
        return None
    document = SUBMITTER + str(_spec(found).get("holderIdentity") or "")
    # a copy under another name, or one whose holder was edited, speaks for nobody
    return document if _submitter_object(document) == name else None


def body_in(document: str, found: Object) -> bytes:
    """The body of the document in an object."""
    if document == LEASE:
        return _lease_body(found)
    if document == LEDGER:
        return str((found.get("data") or {}).get("ledger", "")).encode()
    return str((found["metadata"].get("annotations") or {}).get(BODY, "")).encode()


def is_being_deleted(found: Object) -> bool:
    """Whether the object will be gone once whoever holds a finalizer on it lets go."""
    return bool(found["metadata"].get("deletionTimestamp"))


def version_in(found: Object) -> str:
    """The version of a document: no two writings of it in the life of a cluster have the same."""
    metadata = found["metadata"]
    return f"{metadata['uid']}/{metadata['resourceVersion']}"


def split_version(version: str) -> tuple[str, str]:
    """The uid and the resourceVersion in a version."""
    uid, _, resource_version = version.partition("/")
    return uid, resource_version


def stamp_in(found: Object) -> datetime | None:
    """When the server last saw a change, in whole seconds of its clock; ``None`` if untold."""
    times = [
        parse_time(str(entry.get("time") or ""))
        for entry in found["metadata"].get("managedFields") or ()
    ]
    return max((time for time in times if time is not None), default=None)


def stamped_at(stamp: datetime | None, now: datetime) -> datetime | None:
    """The stamp as a document tells it: never before the write, so that no age is exaggerated.

    A stamp in whole seconds is of some moment of the second that follows, but of none that is still
    to come, except where the server's clock was put back; then it stays in the future.
    """
    if stamp is None:
        return None
    latest = stamp + timedelta(seconds=1)
    return latest if stamp > now + PUT_BACK else min(latest, now)


def skeleton(found: Object) -> Object:
    """An object without its body and without what the server keeps for itself."""
    metadata = {key: value for key, value in found["metadata"].items() if key != "managedFields"}
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {k: v for k, v in annotations.items() if k != BODY}
    bare = {**found, "metadata": metadata}
    if data := found.get("data"):
        bare["data"] = {key: text for key, text in data.items() if key != "ledger"}
    return bare


def made(namespace: str, document: str, body: bytes, now: datetime) -> Object:
    """The object of a document that there was not. ``now`` is the server's clock."""
    where = place(namespace, document)
    kind = _KINDS.get(document, _SUBMITTER_KIND)
    bare: Object = {"metadata": {"name": where.name, "labels": {KIND: kind}}}
    return _written(document, bare, body, now)


def changed(document: str, bare: Object, body: bytes, now: datetime, same_body: bool) -> Object:
    """The object that replaces the one of that skeleton, at its version."""
    new = _written(document, bare, body, now)
    if same_body and new.get("spec") == bare.get("spec"):
        replaced = bare["metadata"]["resourceVersion"]
        return _annotated(new, REWRITTEN, replaced)
    return new


def _written(document: str, bare: Object, body: bytes, now: datetime) -> Object:
    if document == LEASE:
        return {**bare, "spec": _submit_spec(_spec(bare), body)}
    if document == LEDGER:
        return {**bare, "data": _ledger_data(bare.get("data") or {}, body)}
    spec = {
        **_spec(bare),
        "holderIdentity": document.removeprefix(SUBMITTER),
        "leaseDurationSeconds": SUBMITTER_SECONDS,
        "renewTime": format_time(now),
    }
    return _annotated({**bare, "spec": spec}, BODY, body.decode())


def _submit_spec(spec: Mapping[str, Any], body: bytes) -> Object:
    lease = msgspec.json.decode(body, type=SubmitLease)
    ours = msgspec.to_builtins(lease)
    kept = {key: value for key, value in spec.items() if key not in _SPEC}
    # An empty holder is written, not left out: to the server a field that is only taken away is
    # nobody's change, and the object would keep its old stamp.
    return {**kept, **ours, "holderIdentity": lease.holder_identity}


def _ledger_data(data: Mapping[str, str], body: bytes) -> dict[str, str]:
    kept = {key: text for key, text in data.items() if key != FENCE_KEY}
    try:
        numbered = _NUMBERED.decode(body)
    except msgspec.DecodeError:
        return {**kept, "ledger": body.decode()}
    fence = Fence(numbered.uid, numbered.fence).text
    return {**kept, "ledger": body.decode(), FENCE_KEY: fence}


def _annotated(found: Object, name: str, value: str) -> Object:
    metadata = found["metadata"]
    annotations = {**(metadata.get("annotations") or {}), name: value}
    return {**found, "metadata": {**metadata, "annotations": annotations}}


def _lease_body(found: Object) -> bytes:
    if is_being_deleted(found):
        return encode(_BEING_DELETED)
    spec = _spec(found)
    return encode(
        SubmitLease(
            holder_identity=spec.get("holderIdentity") or "",
            lease_duration_seconds=spec.get("leaseDurationSeconds"),
            acquire_time=spec.get("acquireTime"),
            renew_time=spec.get("renewTime"),
        )
    )


def _spec(found: Object) -> Object:
    return found.get("spec") or {}


def _submitter_object(document: str) -> str:
    name = document.removeprefix(SUBMITTER).encode()
    return f"blastyard-submitter-{hashlib.blake2b(name, digest_size=_HASH_BYTES).hexdigest()}"
