"""What an API server does, as far as blastyard relies on it: what all parts of the suite share.

Subclass the parts (``contract_api_objects``, ``_leases``, ``_jobs``, ``_lists``, ``_watches``),
give the fixture ``api``, and let pytest collect::

    class TestMyApi(ObjectContract, LeaseContract):
        @pytest.fixture
        def api(self) -> ApiUnderTest: ...

The tests describe the real API server, which is right where it and something else differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

import msgspec
import pytest

from blastyard.kube.wire import Answer, Call, Wire

Json = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
_GROUPS = {"leases": "coordination.k8s.io", "jobs": "batch", "configmaps": ""}


class ApiUnderTest(Protocol):
    """An API server with an empty namespace, which exists."""

    wire: Wire
    namespace: str

    def until(self, true: Callable[[], bool]) -> None:
        """Let time pass until it is true; fail if that takes more than some seconds."""
        ...

    def complete(self, name: str) -> None:
        """Act as the Job controller: a Job has ended well."""
        ...

    def fail(self, name: str) -> None:
        """Act as the Job controller: a Job has failed."""
        ...

    def forget(self) -> None:
        """Let the server forget all that was before."""
        ...


class Said:
    """An answer, read."""

    def __init__(self, answer: Answer) -> None:
        self.status = answer.status
        self.date = answer.date
        self.document: Json = msgspec.json.decode(answer.body)

    @property
    def outcome(self) -> tuple[int, str]:
        """The HTTP status, and the reason that an error names."""
        return self.status, self.document.get("reason", "")

    @property
    def version(self) -> str:
        """The resourceVersion of the object, or of the list."""
        version: str = self.document["metadata"]["resourceVersion"]
        return version

    @property
    def uid(self) -> str:
        """The object's uid."""
        uid: str = self.document["metadata"]["uid"]
        return uid

    @property
    def names(self) -> list[str]:
        """The names of a list's objects, in order."""
        return [one["metadata"]["name"] for one in self.document["items"]]

    @property
    def written_at(self) -> datetime | None:
        """When somebody last wrote what is there, as the object itself says."""
        entries = self.document["metadata"].get("managedFields", [])
        return max((datetime.fromisoformat(entry["time"]) for entry in entries), default=None)


class Caller:
    """Requests about one resource in one namespace."""

    def __init__(self, api: ApiUnderTest, plural: str) -> None:
        self._wire = api.wire
        self.collection = path_of(plural, api.namespace)

    def call(
        self, method: str, name: str = "", body: object = None, *, kind: str = "application/json"
    ) -> Said:
        """Make a request about one object, or about the collection."""
        raw = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        path = f"{self.collection}/{name}" if name else self.collection
        return Said(self._wire.send(Call(method, path, body=raw, content_type=kind)))

    def get(self, name: str) -> Said:
        """GET."""
        return self.call("GET", name)

    def post(self, document: object) -> Said:
        """POST."""
        return self.call("POST", "", document)

    def put(self, name: str, document: object) -> Said:
        """PUT."""
        return self.call("PUT", name, document)

    def patch(self, name: str, document: object) -> Said:
        """PATCH, a merge patch."""
        return self.call("PATCH", name, document, kind=MERGE_PATCH)

    def delete(self, name: str, **options: object) -> Said:
        """DELETE."""
        return self.call("DELETE", name, options or None)

    def delete_some(self, labels: str, **options: object) -> Said:
        """DELETE of the collection, as far as labels select it."""
        body = msgspec.json.encode(options)
        query = {"labelSelector": labels}
        return Said(self._wire.send(Call("DELETE", self.collection, query, body)))

    def list(self, **query: str) -> Said:
        """GET of the collection; ``continue_`` is the parameter ``continue``."""
        plain = {key.rstrip("_"): value for key, value in query.items()}
        return Said(self._wire.send(Call("GET", self.collection, plain)))


def path_of(plural: str, namespace: str) -> str:
    """Where a collection is."""
    group = _GROUPS[plural]
    root = f"/apis/{group}" if group else "/api"
    return f"{root}/v1/namespaces/{namespace}/{plural}"


def config_map(name: str, data: Mapping[str, str], **metadata: object) -> Json:
    """A ConfigMap."""
    return {"metadata": {"name": name, **metadata}, "data": dict(data)}


def lease(name: str, spec: Mapping[str, object], **metadata: object) -> Json:
    """A Lease."""
    return {"metadata": {"name": name, **metadata}, "spec": dict(spec)}


def job(name: str, labels: Mapping[str, str] | None = None, **spec: object) -> Json:
    """A Job with one container, which no node will run."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "none", "image": "none"}]}
    return {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"template": {"spec": pod}, **spec},
    }


def let_a_second_pass(api: ApiUnderTest) -> None:
    """Until the server's clock tells another second than that of its last answer."""
    maps = Caller(api, "configmaps")
    then = maps.list().date

    def has_passed() -> bool:
        now = maps.list().date
        return then is not None and now is not None and now > then

    api.until(has_passed)


class ApiContract:
    """A part of the suite."""

    @pytest.fixture
    def api(self) -> ApiUnderTest:
        """The API server under test."""
        raise NotImplementedError
