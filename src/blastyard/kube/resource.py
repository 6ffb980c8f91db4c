"""The kinds of objects that blastyard speaks about, and where an API server has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object. ``group`` is ``""`` for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As it stands in the object's ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """The absolute path of the collection, an object, or a subresource of it."""
        parts = ["/apis" if self.group else "/api", self.api_version]
        if self.namespaced:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CONFIGMAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
JOBS: Final = Resource("batch", "v1", "jobs", "Job")
PODS: Final = Resource("", "v1", "pods", "Pod")
