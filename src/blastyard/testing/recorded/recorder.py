"""Follows Jobs, Leases and ConfigMaps of a namespace, and writes down what becomes of them.

Each kind is one file in the recording, in the server's order. A watch that ends is taken up where
it ended; only where the server no longer knows that place, a gap is written down, and what has
changed meanwhile is found by comparing.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable
from blastyard.kube.wire import Call, Stream, Wire
from blastyard.testing.recorded.deed import ADDED, DELETED, GAP, MODIFIED, Change, Document

QUIET_SECONDS: Final = 90.0
AGAIN_SECONDS: Final = 0.2
_KEPT_METADATA: Final = (
    "name",
    "uid",
    "resourceVersion",
    "labels",
    "annotations",
    "creationTimestamp",
    "deletionTimestamp",
)
_PATHS: Final = {
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
}


@dataclass(frozen=True, slots=True)
class _Listed:
    version: int
    documents: Mapping[str, Document]


class _Expired(Exception):
    """The server does not know the place any more where a watch is to begin."""


class _Follower:
    """One kind of objects, in a thread of its own."""

    def __init__(self, wire: Wire, namespace: str, kind: str, write: Callable[[str], None]) -> None:
        self._wire = wire
        self._kind = kind
        self._path = _PATHS[kind].format(namespace)
        self._write = write
        self._clock = SystemClock()
        self._known: dict[str, Document] = {}
        self._version = 0
        self._stream: Stream | None = None
        self._stopping = threading.Event()
        self._reached = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"recorder-{kind}")

    def start(self) -> None:
        """List once, so that nothing of later is missed; then follow."""
        self._take_list(self._list())
        self._thread.start()

    def reach(self, seconds: float) -> None:
        """Until all is recorded that the server knows of now. Raises ``TimeoutError``.

        Nothing is ever said about what does not change, so a bookmark may be what is waited for.
        """
        listed = self._list()
        wanted = {name: _version(one) for name, one in listed.documents.items()}

        def is_there() -> bool:
            known = {name: _version(one) for name, one in self._known.items()}
            return self._version >= listed.version or known == wanted

        with self._reached:
            if not self._reached.wait_for(is_there, seconds):
                raise TimeoutError(f"the recorder is behind with {self._kind}")

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        stream = self._stream
        if stream is not None:
            stream.close()
        self._thread.join(QUIET_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except _Expired:
                with suppress(Unavailable):
                    self._take_list(self._list(), bridged=True)
            except Unavailable:
                self._stopping.wait(AGAIN_SECONDS)

    def _follow(self) -> None:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(self._version),
            "timeoutSeconds": "300",
        }
        self._stream = stream = self._wire.stream(Call("GET", self._path, query))
        try:
            if stream.status == 410:
                raise _Expired
            if stream.status != 200 or self._stopping.is_set():
                raise Unavailable("cluster_unavailable", f"a watch: HTTP {stream.status}")
            for line in stream.lines(QUIET_SECONDS):
                self._heard(json.loads(line))
        finally:
            stream.close()

    def _heard(self, event: Mapping[str, Any]) -> None:
        found = event["object"]
        if event["type"] == "ERROR":
            if found.get("code") == 410:
                raise _Expired
            raise Unavailable("cluster_unavailable", f"a watch: {found.get('message')}")
        with self._reached:
            if event["type"] != "BOOKMARK":
                self._record(event["type"], _kept(found, self._kind), _version(found))
            self._version = _version(found)
            self._reached.notify_all()

    def _record(
        self, what: str, document: Document, version: int, *, bridged: bool = False
    ) -> None:
        name = document["metadata"]["name"]
        at = self._clock.now().timestamp()
        self._write(Change(version, at, what, self._kind, name, document, bridged).line())
        if what == DELETED:
            self._known.pop(name, None)
        else:
            self._known[name] = document

    def _take_list(self, listed: _Listed, *, bridged: bool = False) -> None:
        """Record what differs between what is known and what there is; a gap, if anything does."""
        with self._reached:
            gone = [one for name, one in self._known.items() if name not in listed.documents]
            news = [
                document
                for document in sorted(listed.documents.values(), key=_version)
                if self._known.get(document["metadata"]["name"]) != document
            ]
            if bridged and (gone or news):
                at = self._clock.now().timestamp()
                self._write(Change(self._version + 1, at, GAP, self._kind, "", {}).line())
            for document in news:
                what = MODIFIED if document["metadata"]["name"] in self._known else ADDED
                self._record(what, document, _version(document), bridged=bridged)
            for document in gone:
                self._record(DELETED, document, listed.version, bridged=bridged)
            self._version = listed.version
            self._reached.notify_all()

    def _list(self) -> _Listed:
        answer = self._wire.send(Call("GET", self._path, timeout=30.0))
        if answer.status != 200:
            raise Unavailable("cluster_unavailable", f"a list: HTTP {answer.status}")
        found = json.loads(answer.body)
        kept = [_kept(item, self._kind) for item in found["items"]]
        return _Listed(_version(found), {one["metadata"]["name"]: one for one in kept})


def _version(document: Document) -> int:
    return int(document["metadata"]["resourceVersion"])


def _kept(document: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """What the rules look at: no managed fields, no templates."""
    metadata = document["metadata"]
    kept: dict[str, Any] = {
        "metadata": {name: metadata[name] for name in _KEPT_METADATA if name in metadata}
    }
    for part in {"Job": ("status",), "Lease": ("spec",), "ConfigMap": ("data",)}[kind]:
        kept[part] = document.get(part)
    return kept


class Recorder:
    """Records a namespace into a directory, from entering the ``with`` to leaving it.

    The files are whole lines at any time, so a recording that was broken off can be judged.
    """

    def __init__(self, wire: Wire, namespace: str, recording: Path) -> None:
        recording.mkdir(parents=True, exist_ok=True)
        self._files = {kind: (recording / f"{kind}.changes.jsonl").open("a") for kind in _PATHS}
        self._followers = [
            _Follower(wire, namespace, kind, self._writer(kind)) for kind in self._files
        ]

    def _writer(self, kind: str) -> Callable[[str], None]:
        file = self._files[kind]

        def write(line: str) -> None:
            file.write(line)
            file.flush()

        return write

    def __enter__(self) -> Self:
        for follower in self._followers:
            follower.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for follower in self._followers:
            follower.stop()
        for file in self._files.values():
            file.close()

    def reach(self, seconds: float = 30.0) -> None:
        """Until everything that has happened by now is recorded. Raises ``TimeoutError``."""
        for follower in self._followers:
            follower.reach(seconds)
