"""Markers as Jobs: how they are written, and how they are read again.

A marker is a Job that makes no pod (``parallelism: 0``) and never completes. It ends by itself
after three days that are not extended, and is removed after its end. See the protocol's objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final

from blastyard.admission.census import FINALIZER, Marker, MarkerKind
from blastyard.kube.outcome import Object
from blastyard.kube.policy import FENCE, HOLDER, MANAGED

SEARCH_ID: Final = "elb-job-id"
MARKER: Final = "blastyard/marker"
SEARCH: Final = "blastyard/search"
"""Label with a hash of the search's id, by which all its markers are found."""

_NOTE: Final = "blastyard/"
_TTL_SECONDS: Final = 60
_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""What a label may say."""


def key(search: str) -> str:
    """What stands for a search in names and labels: an id may be too long, or not be allowed."""
    return sha256(search.encode()).hexdigest()[:20]


def stand_in_id(search: str) -> str:
    """The ``elb-job-id`` of a stand-in; peers count it as a search of its own."""
    name = f"r-{search}"
    return name if _LABEL.fullmatch(name) else f"r-{key(search)}"


def job_name(marker: Marker, app: str) -> str:
    """The name of one of a marker's Jobs."""
    letter = "r" if marker.kind is MarkerKind.STAND_IN else "c"
    return f"blastyard-{letter}-{key(marker.search)}-{app}"


def made(
    namespace: str, marker: Marker, app: str, *, stands: timedelta, holder: str, fence: str
) -> Object:
    """The Job to create. ``holder`` and ``fence`` say by whose right, for a server that asks."""
    stand_in = marker.kind is MarkerKind.STAND_IN
    labels = {
        "app": app,
        SEARCH_ID: stand_in_id(marker.search) if stand_in else marker.alias or marker.search,
        MARKER: marker.kind.value,
        SEARCH: key(marker.search),
    }
    if app == FINALIZER:
        labels[MANAGED] = "true"
    notes = _notes(marker) | {HOLDER: holder, FENCE: fence}
    return {
        "metadata": {
            "name": job_name(marker, app),
            "namespace": namespace,
            "labels": labels,
            "annotations": notes,
        },
        "spec": {
            "parallelism": 0,
            "completions": 1,
            "activeDeadlineSeconds": int(stands.total_seconds()),
            "ttlSecondsAfterFinished": _TTL_SECONDS,
            "template": _template(labels),
        },
    }


def _template(labels: Mapping[str, str]) -> Object:
    """No pod is ever made of it, but a Job must say of what."""
    return {
        "metadata": {"labels": dict(labels)},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [{"name": "none", "image": "localhost/none:1"}],
        },
    }


def _notes(marker: Marker) -> dict[str, str]:
    notes = {
        "id": marker.search,
        "user": marker.user,
        "submitter": marker.submitter,
        "level": str(marker.level),
        "attempt": str(marker.attempt),
        "family": marker.family or "",
        "alias": marker.alias or "",
        "watched": "true" if marker.watched else "",
    }
    return {_NOTE + name: text for name, text in notes.items() if text}


def read(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Marker | None:
    """What a Job says as a marker; ``None`` when it is none. What it leaves out has a default."""
    said = labels.get(MARKER)
    if said is None:
        return None
    note = {name.removeprefix(_NOTE): text for name, text in annotations.items()}
    is_companion = said == MarkerKind.COMPANION.value
    shown = labels.get(SEARCH_ID, "")
    return Marker(
        MarkerKind.COMPANION if is_companion else MarkerKind.STAND_IN,
        note.get("id") or (shown if is_companion else shown.removeprefix("r-")),
        note.get("user", ""),
        note.get("submitter", ""),
        _number(note, "level"),
        _number(note, "attempt"),
        note.get("family"),
        note.get("alias"),
        note.get("watched") == "true",
    )


def is_marker_of(labels: Mapping[str, str], search_key: str, kind: MarkerKind | None) -> bool:
    """Whether a Job is a marker of this search; of this kind, if one is named."""
    said = labels.get(MARKER)
    return (
        said is not None
        and labels.get(SEARCH) == search_key
        and (kind is None or said == kind.value)
    )


def _number(note: Mapping[str, Any], name: str) -> int:
    text = str(note.get(name, ""))
    return int(text) if text.isdecimal() else 1
