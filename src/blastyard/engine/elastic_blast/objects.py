"""What carries an id in the namespace: asked for, and deleted.

Markers of blastyard carry ids too. They are admission's, and neither seen nor touched here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

from blastyard.domain.errors import Misconfigured, Unavailable
from blastyard.engine.elastic_blast.name import require_cluster_id
from blastyard.engine.elastic_blast.sight import SEARCH_ID, Job, Sight
from blastyard.kube.client import Client, Selection
from blastyard.kube.outcome import Denied
from blastyard.kube.rbac import Permission
from blastyard.kube.resource import CONFIGMAPS, JOBS, Resource

MARKER: Final = "blastyard/marker"
"""The label that makes a Job a marker."""

RIGHTS: Final = (
    Permission(
        "batch", "jobs", ("list", "deletecollection"), "what a search has, and what is left of it"
    ),
    Permission(
        "",
        "configmaps",
        ("get", "delete", "deletecollection"),
        "what a cancelled search leaves beside its Jobs",
    ),
)
"""What is asked of the API server here. Without those about ConfigMaps they are left, and named."""

_NAMES_IN_A_QUESTION: Final = 50
_PAUSE_SECONDS: Final = 0.2


class SearchObjects:
    """The objects of searches in one namespace. Thread-safe.

    ``pause`` waits so many seconds, or less; ``monotonic`` is the clock of the patience.
    """

    def __init__(
        self, client: Client, monotonic: Callable[[], float], pause: Callable[[float], None]
    ) -> None:
        self._client = client
        self._monotonic = monotonic
        self._pause = pause

    def look(self, name: str) -> Sight:
        """What carries the id now. Raises ``Unavailable`` rather than answer in part."""
        return self.look_at([name])[name]

    def look_at(self, names: Iterable[str]) -> dict[str, Sight]:
        """What carries each of these ids now; one request for fifty of them."""
        asked = sorted(set(names))
        found: dict[str, list[Job]] = {name: [] for name in asked}
        carried: dict[str, list[str]] = {}
        for name in asked:
            for label in _labels(name):
                carried.setdefault(label, []).append(name)
        labels = sorted(carried)
        for first in range(0, len(labels), _NAMES_IN_A_QUESTION):
            some = labels[first : first + _NAMES_IN_A_QUESTION]
            for job in self._client.listing(JOBS, Job, _selection(some)).items:
                for name in carried.get(job.search, ()):
                    found[name].append(job)
        return {name: Sight(name, tuple(jobs)) for name, jobs in found.items()}

    def cancel(self, name: str, patience: timedelta) -> tuple[str, ...]:
        """Delete everything that carries the id; returns when no Job of it is left.

        What this credential may not delete is named in the answer; a namespace's Role may keep
        ConfigMaps out of reach. Raises ``Unavailable`` when something is left after ``patience``.
        """
        until = self._monotonic() + patience.total_seconds()
        while True:
            self._delete(JOBS, _selection(_labels(name)))
            left = self.look(name).jobs
            if not left:
                return self._forget_beside(name)
            if self._monotonic() >= until:
                names = ", ".join(job.metadata.name for job in left)
                raise Unavailable(
                    "cluster_unavailable",
                    f"of {name} there is left, after it was deleted: {names}",
                    "look for a finalizer in its metadata, or for who makes it again",
                )
            self._pause(min(_PAUSE_SECONDS, max(0.0, until - self._monotonic())))

    def _forget_beside(self, name: str) -> tuple[str, ...]:
        """Delete its ConfigMaps: those with its label, and that of its own name."""
        try:
            self._delete(CONFIGMAPS, Selection(f"{SEARCH_ID} in ({','.join(_labels(name))})"))
            for label in _labels(name):
                found = (
                    self._client.get(CONFIGMAPS, f"elb-job-{label}") if _is_name(label) else None
                )
                if found is not None:
                    metadata = found.object["metadata"]
                    self._client.delete(CONFIGMAPS, metadata["name"], metadata["uid"])
        except Misconfigured as error:
            if error.code != "cluster_forbidden":
                raise
            return (f"ConfigMaps of {name}: {error.message}",)
        return ()

    def _delete(self, resource: Resource, selection: Selection) -> None:
        outcome = self._client.delete_collection(resource, selection)
        if isinstance(outcome, Denied):
            raise Misconfigured(
                "cluster_forbidden",
                f"an admission policy of the cluster refuses to delete {resource.plural}: "
                f"{outcome.message}",
                "let the policy except what carries an elb-job-id",
            )


def _labels(name: str) -> list[str]:
    """The values under which the id may stand: a command may have lower-cased it."""
    return sorted({require_cluster_id(name), name.lower()})


def _selection(labels: Iterable[str]) -> Selection:
    return Selection(f"{SEARCH_ID} in ({','.join(labels)}),!{MARKER}")


def _is_name(label: str) -> bool:
    """Whether an object can be named so (RFC 1123 subdomain)."""
    return label == label.lower() and "_" not in label and ".." not in label
