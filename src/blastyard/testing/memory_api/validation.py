"""What the API server refuses in an object that it could read: 422."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from blastyard.testing.memory_api.kind import CONFIG_MAP, JOB, LEASE, Json, Kind
from blastyard.testing.memory_api.refusal import Fault

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DATA_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")

NAME_LENGTH: Final = 253
LABEL_LENGTH: Final = 63
DATA_BYTES: Final = 1024 * 1024
ANNOTATION_BYTES: Final = 256 * 1024

_FIXED_IN_SPEC: Final = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
    "completions",
)


def object_faults(kind: Kind, document: Json) -> list[Fault]:
    """What is wrong with an object by itself."""
    return [*_metadata_faults(document["metadata"]), *_FAULTS[kind](document)]


def change_faults(kind: Kind, before: Json, after: Json) -> list[Fault]:
    """What is wrong with a change of an object's metadata or specification."""
    faults = [*_identity_faults(before["metadata"], after["metadata"])]
    faults += object_faults(kind, after)
    if kind is JOB:
        faults += _job_change_faults(before["spec"], after["spec"])
    elif before.get("immutable"):
        faults += _immutable_faults(before, after)
    return faults


def _metadata_faults(metadata: Json) -> Iterator[Fault]:
    name = metadata.get("name", "")
    if not name:
        needed = "Required value: name or generateName is required"
        yield Fault("metadata.name", needed, "FieldValueRequired")
    elif len(name) > NAME_LENGTH or _SUBDOMAIN.fullmatch(name) is None:
        rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"
        yield Fault("metadata.name", f"Invalid value: \"{name}\": {rule}, '-' or '.'")
    for key, value in metadata.get("labels", {}).items():
        yield from _key_faults("metadata.labels", key)
        if len(value) > LABEL_LENGTH:
            yield Fault(
                "metadata.labels", f'Invalid value: "{value}": must be no more than 63 bytes'
            )
        if _LABEL_VALUE.fullmatch(value) is None:
            rule = "a valid label must be an empty string or consist of alphanumeric characters"
            yield Fault("metadata.labels", f'Invalid value: "{value}": {rule}')
    annotations = metadata.get("annotations", {})
    for key in annotations:
        yield from _key_faults("metadata.annotations", key.lower())
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATION_BYTES:
        said = f"Too long: may not be more than {ANNOTATION_BYTES} bytes"
        yield Fault("metadata.annotations", said, "FieldValueTooLong")


def _key_faults(field: str, key: str) -> Iterator[Fault]:
    prefix, slash, name = key.rpartition("/")
    if len(name) > LABEL_LENGTH or _LABEL_NAME.fullmatch(name) is None:
        yield Fault(
            field, f'Invalid value: "{key}": name part must consist of alphanumeric characters'
        )
    if slash and (len(prefix) > NAME_LENGTH or _SUBDOMAIN.fullmatch(prefix) is None):
        yield Fault(field, f'Invalid value: "{key}": prefix part a lowercase RFC 1123 subdomain')


def _identity_faults(before: Json, after: Json) -> Iterator[Fault]:
    if after["uid"] != before["uid"]:
        yield Fault("metadata.uid", f'Invalid value: "{after["uid"]}": field is immutable')
    added = set(after.get("finalizers", ())) - set(before.get("finalizers", ()))
    if added and "deletionTimestamp" in before:
        said = "Forbidden: no new finalizers can be added if the object is being deleted"
        yield Fault("metadata.finalizers", f"{said}, found {sorted(added)}", "FieldValueForbidden")


def _config_map_faults(document: Json) -> Iterator[Fault]:
    parts = {**document.get("data", {}), **document.get("binaryData", {})}
    for key in parts:
        if len(key) > NAME_LENGTH or _DATA_KEY.fullmatch(key) is None:
            rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
            yield Fault(f"data[{key}]", f'Invalid value: "{key}": {rule}')
    if sum(len(value.encode()) for value in parts.values()) > DATA_BYTES:
        said = f"Too long: may not be more than {DATA_BYTES} bytes"
        yield Fault("[]", said, "FieldValueTooLong")


def _immutable_faults(before: Json, after: Json) -> Iterator[Fault]:
    for part in ("immutable", "data", "binaryData"):
        if before.get(part) != after.get(part):
            said = "Forbidden: field is immutable when `immutable` is set"
            yield Fault(part, said, "FieldValueForbidden")


def _lease_faults(document: Json) -> Iterator[Fault]:
    spec = document["spec"]
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        yield Fault(
            "spec.leaseDurationSeconds", f"Invalid value: {duration}: must be greater than 0"
        )
    transitions = spec.get("leaseTransitions", 0)
    if transitions < 0:
        rule = "must be greater than or equal to 0"
        yield Fault("spec.leaseTransitions", f"Invalid value: {transitions}: {rule}")


def _job_faults(document: Json) -> Iterator[Fault]:
    spec = document["spec"]
    for field in ("parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished"):
        if spec.get(field, 0) < 0:
            rule = "must be greater than or equal to 0"
            yield Fault(f"spec.{field}", f"Invalid value: {spec[field]}: {rule}")
    if spec.get("activeDeadlineSeconds", 0) < 0:
        rule = "must be greater than or equal to 0"
        yield Fault("spec.activeDeadlineSeconds", f"Invalid value: {rule}")
    pod: Mapping[str, Any] = spec.get("template", {}).get("spec", {})
    if not pod.get("containers"):
        yield Fault("spec.template.spec.containers", "Required value", "FieldValueRequired")
    for index, container in enumerate(pod.get("containers", ())):
        for needed in ("name", "image"):
            if not container.get(needed):
                field = f"spec.template.spec.containers[{index}].{needed}"
                yield Fault(field, "Required value", "FieldValueRequired")
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        said = 'Required value: valid values: "OnFailure", "Never"'
        yield Fault("spec.template.spec.restartPolicy", said, "FieldValueRequired")


def _job_change_faults(before: Json, after: Json) -> Iterator[Fault]:
    for field in _FIXED_IN_SPEC:
        if before.get(field) != after.get(field):
            yield Fault(f"spec.{field}", "Invalid value: field is immutable")
    old, new = before["template"], after["template"]
    # what a suspended Job's pods will carry may still change, but not what they will run
    if old != new and (not before.get("suspend") or old["spec"] != new["spec"]):
        yield Fault("spec.template", "Invalid value: field is immutable")


_FAULTS: Final[Mapping[Kind, Callable[[Json], Iterator[Fault]]]] = {
    CONFIG_MAP: _config_map_faults,
    LEASE: _lease_faults,
    JOB: _job_faults,
}
