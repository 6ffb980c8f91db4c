"""The objects, their history, and who listens: what etcd and the watch cache do."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from blastyard.testing.memory_api.feed import Feed
from blastyard.testing.memory_api.kind import Json, Kind
from blastyard.testing.memory_api.ownership import Owner
from blastyard.testing.memory_api.selector import Selector

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"

FIRST: Final = 100
"""Versions begin after this: a server has written a good deal before any client has."""
HISTORY: Final = 1_000
"""Events that are remembered for watches that begin in the past."""
SNAPSHOTS: Final = 50
"""Lists that can be continued at one time."""

_HEAD: Final = ("kind", "apiVersion")
_INITIAL_END: Final = {"k8s.io/initial-events-end": "true"}


class Record:
    """One version of one object. Never changed."""

    __slots__ = ("_body", "_item", "document", "owners", "revision")

    def __init__(self, document: Json, owners: tuple[Owner, ...], revision: int) -> None:
        self.document = document
        self.owners = owners
        self.revision = revision
        self._body: bytes | None = None
        self._item: bytes | None = None

    @property
    def body(self) -> bytes:
        """The object as JSON."""
        if self._body is None:
            self._body = msgspec.json.encode(self.document)
        return self._body

    @property
    def list_item(self) -> bytes:
        """The object as JSON, as it is in a list: without its kind."""
        if self._item is None:
            parts = {key: one for key, one in self.document.items() if key not in _HEAD}
            self._item = msgspec.json.encode(parts)
        return self._item

    def at(self, revision: int) -> Record:
        """The same object, with another resourceVersion."""
        metadata = {**self.document["metadata"], "resourceVersion": str(revision)}
        return Record({**self.document, "metadata": metadata}, self.owners, revision)


@dataclass(frozen=True, slots=True)
class Event:
    """One change: what was, and what is."""

    kind: Kind
    namespace: str
    revision: int
    before: Record | None
    after: Record | None


@dataclass(frozen=True, slots=True)
class Scope:
    """What a list or a watch is about."""

    kind: Kind
    namespace: str
    selector: Selector
    since: int = 0
    """A watch of this hears only of what comes after this version."""

    def line(self, event: Event) -> tuple[str, bytes] | None:
        """What a watch of this says about an event; ``None`` = nothing."""
        if (event.kind, event.namespace) != (self.kind, self.namespace):
            return None
        if event.revision <= self.since:
            return None
        was = event.before is not None and self.selector.holds(event.before.document)
        if event.after is not None and self.selector.holds(event.after.document):
            return _line(MODIFIED if was else ADDED, event.after.body)
        if was and event.before is not None:
            # what left is shown as it was, with the resourceVersion of its leaving
            return _line(DELETED, event.before.at(event.revision).body)
        return None


@dataclass(slots=True)
class Deafness:
    """Events that watches will not hear, though they happen."""

    plural: str
    type: str | None
    left: int


@dataclass(slots=True)
class Storage:
    """Everything that is stored. Not thread-safe: whoever uses it holds the lock."""

    revision: int = FIRST
    objects: dict[tuple[Kind, str], dict[str, Record]] = field(default_factory=dict)
    history: deque[Event] = field(default_factory=lambda: deque(maxlen=HISTORY))
    compacted_at: int = FIRST
    feeds: dict[Feed, Scope] = field(default_factory=dict)
    deafness: list[Deafness] = field(default_factory=list)
    snapshots: dict[tuple[Kind, str, int], tuple[Record, ...]] = field(default_factory=dict)

    def of(self, kind: Kind, namespace: str) -> Mapping[str, Record]:
        """Name to object."""
        return self.objects.get((kind, namespace), {})

    def put(
        self, kind: Kind, before: Record | None, document: Json, owners: tuple[Owner, ...]
    ) -> Record:
        """Store the next version of an object, and tell whoever listens.

        The object says itself what version it is: the one after the latest.
        """
        self.revision += 1
        after = Record(document, owners, self.revision)
        metadata = document["metadata"]
        self.objects.setdefault((kind, metadata["namespace"]), {})[metadata["name"]] = after
        self._tell(Event(kind, metadata["namespace"], self.revision, before, after))
        return after

    def remove(self, kind: Kind, record: Record) -> None:
        """Forget an object, and tell whoever listens."""
        self.revision += 1
        metadata = record.document["metadata"]
        del self.objects[kind, metadata["namespace"]][metadata["name"]]
        self._tell(Event(kind, metadata["namespace"], self.revision, record, None))

    def compact(self) -> None:
        """Forget what was: older watches and lists cannot go on."""
        self.history.clear()
        self.compacted_at = self.revision
        self.snapshots.clear()

    def keep(self, kind: Kind, namespace: str) -> tuple[Record, ...]:
        """The objects of now in their order, kept so that a list of them can be continued."""
        found = self.of(kind, namespace)
        records = tuple(found[name] for name in sorted(found))
        self.snapshots[kind, namespace, self.revision] = records
        while len(self.snapshots) > SNAPSHOTS:
            del self.snapshots[next(iter(self.snapshots))]
        return records

    @property
    def oldest(self) -> int:
        """The oldest version that a watch can begin at."""
        if len(self.history) == HISTORY:
            return self.history[0].revision - 1
        return self.compacted_at

    def bookmark(self, feed: Feed, *, initial: bool = False) -> None:
        """Tell a feed what version it has heard everything up to."""
        scope = self.feeds.get(feed)
        if scope is None or scope.since > self.revision:
            return
        kind = scope.kind
        metadata: Json = {"resourceVersion": str(self.revision)}
        if initial:
            metadata["annotations"] = _INITIAL_END
        blank = {"kind": kind.name, "apiVersion": kind.version, "metadata": metadata}
        body = msgspec.json.encode({**blank, **(kind.blank or {})})
        feed.offer(_line(BOOKMARK, body)[1])

    def _tell(self, event: Event) -> None:
        self.history.append(event)
        unheard: set[int] = set()
        for feed, scope in list(self.feeds.items()):
            said = scope.line(event)
            if said is None:
                continue
            deaf = self._deafness(event.kind, said[0])
            if deaf is None:
                feed.offer(said[1])
            else:
                unheard.add(deaf)
        for index in sorted(unheard, reverse=True):
            self.deafness[index].left -= 1
            if not self.deafness[index].left:
                del self.deafness[index]

    def _deafness(self, kind: Kind, said: str) -> int | None:
        for index, one in enumerate(self.deafness):
            if one.plural == kind.plural and one.type in (None, said):
                return index
        return None


def error_line(body: bytes) -> bytes:
    """A line that says why a watch cannot go on."""
    return _line(ERROR, body)[1]


def _line(said: str, body: bytes) -> tuple[str, bytes]:
    return said, b'{"type":"' + said.encode() + b'","object":' + body + b"}"
