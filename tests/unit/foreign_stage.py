"""An API server of documents, as much of one as the foreign submitters need."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from blastyard.kube.wire import Answer, Call, Stream
from blastyard.testing.foreign.kind import Rules
from blastyard.testing.foreign.lease import stamp

NOW = 1_800_000_000.0
RULES = Rules()
HELD = {"holderIdentity": "other-1", "leaseDurationSeconds": 900, "renewTime": stamp(NOW)}
LEASE = "/apis/coordination.k8s.io/v1/namespaces/lab/leases/elb-blast-submit-lab"
LEASES = LEASE.rpartition("/")[0]


class Server:
    """An API server of documents by path, as much of one as the submitters need."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.calls: list[Call] = []
        self.version = 100
        self.at = NOW
        self.before: Callable[[Call], Answer | None] = lambda _: None
        self.after: Callable[[Call], None] = lambda _: None

    def send(self, call: Call) -> Answer:
        self.calls.append(call)
        said = self.before(call)
        if said is None:
            said = said_of(*self._serve(call))
            self.after(call)
        return said

    def stream(self, call: Call) -> Stream:
        raise NotImplementedError

    def close(self) -> None:
        pass

    def put(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        kept = self.objects.get(path, {}).get("metadata", {})
        metadata = {
            "uid": kept.get("uid", f"uid-{self.version}"),
            "creationTimestamp": kept.get("creationTimestamp", stamp(self.at)[:19] + "Z"),
            **document["metadata"],
            "resourceVersion": str(self.version),
        }
        self.objects[path] = {**document, "metadata": metadata}
        return self.objects[path]

    def _serve(self, call: Call) -> tuple[int, dict[str, Any]]:
        document = json.loads(call.body) if call.body else {}
        match call.method:
            case "GET" if call.path.endswith("/jobs"):
                return 200, {"metadata": {}, "items": self.jobs}
            case "GET":
                here = self.objects.get(call.path)
                return (404, {}) if here is None else (200, here)
            case "POST":
                path = f"{call.path}/{document['metadata']['name']}"
                return (409, {}) if path in self.objects else (201, self.put(path, document))
            case "DELETE":
                return self._delete(call)
            case "PATCH":
                path = call.path.removesuffix("/status")
                return 200, self.put(path, {**self.objects[path], **document})
            case _:
                return self._replace(call.path, document)

    @property
    def jobs(self) -> list[dict[str, Any]]:
        return [job for path, job in self.objects.items() if "/jobs/" in path]

    def _replace(self, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        here = self.objects.get(path)
        if here is None:
            return 404, {}
        if document["metadata"].get("resourceVersion") not in (
            None,
            here["metadata"]["resourceVersion"],
        ):
            return 409, {}
        return 200, self.put(path, document)

    def _delete(self, call: Call) -> tuple[int, dict[str, Any]]:
        wanted = call.query["labelSelector"].rpartition("elb-job-id=")[2]
        for path, job in list(self.objects.items()):
            labels = job["metadata"].get("labels", {})
            if labels.get("elb-job-id") == wanted and labels["app"] in ("blast", "submit"):
                del self.objects[path]
        return 200, {}


def said_of(status: int, document: object, retry_after: float | None = None) -> Answer:
    return Answer(status, json.dumps(document).encode(), None, retry_after, 0.0, 0.0)


def lease(server: Server, **spec: object) -> None:
    """Put a Lease that somebody else holds."""
    labels = {"kept": "never"}
    server.put(LEASE, {"metadata": {"name": "x", "labels": labels}, "spec": {**HELD, **spec}})
