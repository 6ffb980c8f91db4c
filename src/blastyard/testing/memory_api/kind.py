"""The kinds of object that are served, and the paths they live at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind, and what the API server allows on it that it does not on others."""

    name: str
    plural: str
    group: str
    creates_on_put: bool = False
    """A PUT of what is absent makes it, whatever resourceVersion it carries."""
    puts_unconditionally: bool = True
    """A PUT without a resourceVersion overwrites whatever is there."""
    orphans: bool = False
    """A deletion that names no policy leaves what it owns behind, which takes a moment longer."""
    fields: tuple[str, ...] = ()
    """What a ``fieldSelector`` may name besides the name and the namespace."""
    blank: Mapping[str, Any] | None = None
    """What a bookmark's object has besides its metadata."""

    @property
    def version(self) -> str:
        """The ``apiVersion`` of its objects."""
        return f"{self.group}/v1" if self.group else "v1"

    @property
    def qualified(self) -> str:
        """The resource, as messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_name(self) -> str:
        """The kind, as messages name it."""
        return f"{self.name}.{self.group}" if self.group else self.name


CONFIG_MAP: Final = Kind("ConfigMap", "configmaps", "")
LEASE: Final = Kind(
    "Lease",
    "leases",
    "coordination.k8s.io",
    creates_on_put=True,
    puts_unconditionally=False,
    blank={"spec": {}},
)
_BLANK_TEMPLATE: Final = {"template": {"metadata": {}, "spec": {"containers": None}}}
JOB: Final = Kind(
    "Job",
    "jobs",
    "batch",
    orphans=True,
    fields=("status.successful",),
    blank={"spec": _BLANK_TEMPLATE, "status": {}},
)
KINDS: Final = (CONFIG_MAP, LEASE, JOB)

REVIEW_PATH: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

_PATH: Final = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v1/namespaces/(?P<namespace>[^/]+)/(?P<plural>[^/]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<part>status))?)?"
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a path means. ``name`` is empty for a collection, ``part`` but for a subresource."""

    kind: Kind
    namespace: str
    name: str
    part: str

    @property
    def resource(self) -> str:
        """The resource as a Role names it: ``jobs``, ``jobs/status``."""
        return f"{self.kind.plural}/{self.part}" if self.part else self.kind.plural


def place(path: str) -> Place | None:
    """What is at a path; ``None`` = nothing that is served."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    for kind in KINDS:
        if (kind.group, kind.plural) == (found["group"] or "", found["plural"]):
            if found["part"] and kind is not JOB:
                return None
            return Place(kind, found["namespace"], found["name"] or "", found["part"] or "")
    return None
