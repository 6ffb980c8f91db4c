"""The API server: what it answers to a request, and the knobs that tests turn."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event as ThreadEvent
from threading import RLock
from typing import Final

import msgspec

from blastyard.kube.wire import Answer, Call, Stream
from blastyard.testing.memory_api import listing, refusal
from blastyard.testing.memory_api.access import Access
from blastyard.testing.memory_api.controller import JobController
from blastyard.testing.memory_api.deletion import delete_options
from blastyard.testing.memory_api.feed import Refused, Signal
from blastyard.testing.memory_api.kind import REVIEW_PATH, Json, Place, place
from blastyard.testing.memory_api.objects import Objects, Result
from blastyard.testing.memory_api.ownership import Writer
from blastyard.testing.memory_api.refusal import Refusal
from blastyard.testing.memory_api.selector import parse
from blastyard.testing.memory_api.storage import Storage
from blastyard.testing.memory_api.watching import Watches

BODY_BYTES: Final = 3 * 1024 * 1024
MERGE_PATCH: Final = "application/merge-patch+json"

_WATCHES: Final = ("1", "true")


class MemoryApi:
    """An API server in memory, and a ``blastyard.kube.wire.Wire`` to it.

    ``now`` is the server's clock (aware, UTC), ``monotonic`` (seconds) that of the clients' wires.
    ``signal`` makes what a waiting watch waits for; it must count time as ``monotonic`` does.
    ``seed`` makes the uids those of every run.

    It has the namespaces it is given, and no others. Kinds, verbs and parameters that blastyard
    does not use raise ``NotImplementedError`` rather than answer something else than the server.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        *,
        signal: Callable[[], Signal] = ThreadEvent,
        namespaces: tuple[str, ...] = ("lab",),
        seed: int | None = None,
    ) -> None:
        self.access = Access()
        self.page_size: int | None = None
        """At most so many objects are in a page, whatever limit is asked for."""
        self.requests = 0
        """How many requests have been answered, watches included."""
        self._now = now
        self._monotonic = monotonic
        self._lock = RLock()
        self._storage = Storage()
        self.watches = Watches(self._storage, self._lock, monotonic, signal)
        self._objects = Objects(self._storage, now, set(namespaces))
        if seed is not None:
            chance = random.Random(seed)
            self._objects.new_uid = lambda: str(uuid.UUID(int=chance.getrandbits(128), version=4))
        self._jobs = JobController(self._objects)

    # -- the wire ------------------------------------------------------------------------------

    def send(self, call: Call) -> Answer:
        """See ``Wire``."""
        return self.send_as("blastyard", call)

    def stream(self, call: Call) -> Stream:
        """See ``Wire``."""
        with self._lock:
            try:
                at = place(call.path)
                if at is None or at.name or call.query.get("watch") not in _WATCHES:
                    raise NotImplementedError(f"{call.method} {call.path} is no watch done here")
                self.access.check("watch", at)
                return self.watches.open(at, call.query)
            except Refusal as error:
                return Refused(error.code, msgspec.json.encode(error.document), error.retry_after)
            finally:
                self.requests += 1

    def close(self) -> None:
        """See ``Wire``; others may be connected, so nothing ends."""

    def client(self, manager: str) -> Client:
        """A wire of somebody else, who is known by this name in ``managedFields``."""
        return Client(self, manager)

    def send_as(self, manager: str, call: Call) -> Answer:
        """Make a request as somebody."""
        sent_at = self._monotonic()
        retry_after = None
        with self._lock:
            date = self._now().astimezone(UTC).replace(microsecond=0)
            try:
                status, body = self._answer(manager, call)
            except Refusal as error:
                status, body = error.code, msgspec.json.encode(error.document)
                retry_after = error.retry_after
            self.requests += 1
        return Answer(status, body, date, retry_after, sent_at, self._monotonic())

    # -- what a test does to the cluster -------------------------------------------------------

    def complete(self, namespace: str, name: str) -> None:
        """Let a Job end well. Raises ``KeyError`` if there is none."""
        with self._lock:
            self._jobs.complete(namespace, name)

    def fail(self, namespace: str, name: str, reason: str = "BackoffLimitExceeded") -> None:
        """Let a Job fail. Raises ``KeyError`` if there is none."""
        with self._lock:
            self._jobs.fail(namespace, name, reason)

    def tick(self) -> None:
        """Do what is due: fail Jobs that are past their deadline, remove those past their TTL."""
        with self._lock:
            self._jobs.tick()

    def next_due(self) -> datetime | None:
        """When ``tick`` has something to do next; ``None`` = never, as things stand."""
        with self._lock:
            return self._jobs.next_due()

    def add_namespace(self, name: str) -> None:
        """Make a namespace."""
        self._objects.namespaces.add(name)

    def remove_namespace(self, name: str) -> None:
        """Remove a namespace, and everything in it, whatever its finalizers say."""
        with self._lock:
            self._objects.namespaces.discard(name)
            for kind, namespace in list(self._storage.objects):
                if namespace == name:
                    for record in list(self._storage.of(kind, namespace).values()):
                        self._storage.remove(kind, record)

    def documents(self, plural: str, namespace: str) -> dict[str, Json]:
        """Name to object, of all that is stored. They must not be changed."""
        with self._lock:
            return {
                name: record.document
                for (kind, found), records in self._storage.objects.items()
                if (kind.plural, found) == (plural, namespace)
                for name, record in records.items()
            }

    @property
    def revision(self) -> int:
        """The latest resourceVersion."""
        return self._storage.revision

    def compact(self) -> None:
        """Forget what was: a watch from before, and the rest of a list from before, are 410."""
        with self._lock:
            self._storage.compact()

    def expire_pages(self) -> None:
        """Let every list that is not read to its end be 410 when it is continued."""
        with self._lock:
            self._storage.snapshots.clear()

    # -- answering -----------------------------------------------------------------------------

    def _answer(self, manager: str, call: Call) -> tuple[int, bytes]:
        if len(call.body or b"") > BODY_BYTES:
            raise refusal.too_large(BODY_BYTES)
        if call.path == REVIEW_PATH and call.method == "POST":
            return 201, self.access.review(call.body)
        at = place(call.path)
        if at is None:
            raise NotImplementedError(f"{call.method} {call.path} is not done here")
        writer = Writer(manager, at.part)
        result = self._one(call, at, writer) if at.name else self._many(call, at, writer)
        if isinstance(result, bytes):
            return 200, result
        if result.document is not None:
            return result.code, msgspec.json.encode(result.document)
        assert result.record is not None
        return result.code, result.record.body

    def _one(self, call: Call, at: Place, writer: Writer) -> Result:
        match call.method:
            case "GET":
                self.access.check("get", at)
                return self._objects.get(at)
            case "PUT":
                self.access.check("update", at)
                return self._objects.put(at, call.body, writer)
            case "PATCH":
                self.access.check("patch", at)
                if call.content_type != MERGE_PATCH:
                    raise refusal.unknown_patch()
                return self._objects.patch(at, call.body, writer)
            case "DELETE" if not at.part:
                self.access.check("delete", at)
                return self._objects.delete(at, delete_options(call.body))
        raise refusal.unknown_method()

    def _many(self, call: Call, at: Place, writer: Writer) -> Result | bytes:
        match call.method:
            case "GET":
                if call.query.get("watch") in _WATCHES:
                    raise NotImplementedError("open a watch with stream()")
                self.access.check("list", at)
                return listing.listed(self._storage, at, call.query, self.page_size)
            case "POST":
                self.access.check("create", at)
                result = self._objects.create(at, call.body, writer)
                self._jobs.created(at.kind, result.record)
                return result
            case "DELETE":
                self.access.check("deletecollection", at)
                return self._delete_many(at, call)
        raise refusal.unknown_method()

    def _delete_many(self, at: Place, call: Call) -> bytes:
        options = delete_options(call.body)
        found = listing.selected(self._storage, at, parse(at.kind, call.query))
        for record in found:
            name = record.document["metadata"]["name"]
            self._objects.delete(Place(at.kind, at.namespace, name, ""), options)
        return listing.body_of(at, self._storage.revision, found)


class Client:
    """A wire of its own to a :class:`MemoryApi`, under a name of its own."""

    def __init__(self, api: MemoryApi, manager: str) -> None:
        self._api = api
        self._manager = manager

    def send(self, call: Call) -> Answer:
        """See ``Wire``, as for the others."""
        return self._api.send_as(self._manager, call)

    def stream(self, call: Call) -> Stream:
        return self._api.stream(call)

    def close(self) -> None:
        """Others may be connected, so nothing ends."""
