"""What this process has seen of the documents, from whatever answer or event.

The latest of each, told apart by the numbers of their versions, however late an answer or an event
comes; and the objects they stood in, so that a swap need not read before it writes.

Resource versions are compared as numbers, as Kubernetes does itself (since 1.35 by contract). A
cluster that was restored from a backup goes back in them: a list of everything (:meth:`replace`)
counts for more than what was seen before it was asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock
from typing import Final

from blastyard.admission.kubernetes import codec
from blastyard.admission.port import ABSENT, LEDGER, Snapshot, Version
from blastyard.domain.errors import Unavailable
from blastyard.kube.clock import ServerClock
from blastyard.kube.outcome import Object

KEPT_OBJECTS: Final = 64

LATE_SECONDS: Final = 60.0
"""How long after a deletion an older answer about the document may still come in."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A document as it was seen; ``body`` is ``None`` when it was seen to be absent."""

    name: str
    body: bytes | None
    version: Version
    stamp: datetime | None
    order: int
    seen_at: float
    """When it was still so, in monotonic seconds."""
    is_being_deleted: bool = False

    def snapshot(self, now: datetime, *, is_fresh: bool) -> Snapshot:
        """As the port tells it. ``now`` is the server's clock.

        Raises ``Unavailable`` for a ledger that is being deleted: what is written to it is lost.
        """
        if self.is_being_deleted and self.name == LEDGER:
            raise Unavailable(
                "ledger_unreadable",
                "the ledger is being deleted, so nothing is admitted",
                "take the finalizers off its ConfigMap; it is made anew when it is gone",
            )
        stamped_at = codec.stamped_at(self.stamp, now)
        return Snapshot(
            self.name, self.body, self.version, stamped_at, now, is_fresh, is_coarse=True
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """What a swap needs to know of the object it replaces."""

    bare: Object
    body_hash: int


class Sightings:
    """Everything seen. Thread-safe. ``clock`` is the server's."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._latest: dict[str, Sighting] = {}
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()

    def see(self, name: str, found: Object, seen_at: float) -> tuple[Sighting, bool]:
        """Take in an object; the sighting of it, and whether it is news."""
        sighting = self._sighting(name, found, seen_at)
        with self._lock:
            before = self._latest.get(name)
            if before is not None and before.version == sighting.version:
                # the older one may be the only one that knows how long it has stood
                again = replace(before, seen_at=max(seen_at, before.seen_at))
                self._latest[name] = again
                return again, False
            is_news = before is None or not sighting.order or sighting.order > before.order
            if is_news:
                self._latest[name] = sighting
            return sighting, is_news

    def see_absent(self, name: str, asked_at: float) -> bool:
        """Take in that there is no such document, asked at that moment; whether it is news."""
        with self._lock:
            before = self._latest.get(name)
            if before is not None and before.seen_at >= asked_at:
                return False
            self._latest[name] = _absent(name, before.order if before else 0, asked_at)
            return before is not None and before.body is not None

    def see_deleted(self, name: str, order: int, seen_at: float) -> bool:
        """Take in a deletion; whether it is news."""
        with self._lock:
            before = self._latest.get(name)
            if before is not None and (before.body is None or before.order > order):
                return False
            self._latest[name] = _absent(name, order, seen_at)
            return True

    def replace(
        self,
        concerns: Callable[[str], bool],
        found: Mapping[str, Object],
        asked_at: float,
        seen_at: float,
    ) -> tuple[list[str], list[str]]:
        """Take in a complete list of the documents that ``concerns`` is about.

        The names of those that it tells something new of, and of those that are gone. ``asked_at``
        is when it was asked for; what was seen later than that counts for more.
        """
        news = []
        for name, each in found.items():
            with self._lock:
                before = self._latest.get(name)
                if before is not None and before.seen_at < asked_at:
                    if before.version == codec.version_in(each):
                        continue
                    del self._latest[name]
            if self.see(name, each, seen_at)[1]:
                news.append(name)
        with self._lock:
            unseen = [each for name, each in self._latest.items() if name not in found]
            for old in unseen:
                if old.body is None and old.seen_at < asked_at - LATE_SECONDS:
                    del self._latest[old.name]
        gone = [old.name for old in unseen if old.body is not None and concerns(old.name)]
        return news, [name for name in gone if self.see_absent(name, asked_at)]

    def latest(self, name: str) -> Sighting | None:
        """The document as it was seen last; ``None`` when it never was."""
        with self._lock:
            return self._latest.get(name)

    def all(self, prefix: str) -> dict[str, Sighting]:
        """Those that were there when last seen, by name."""
        with self._lock:
            latest = list(self._latest.values())
        present = (each for each in latest if each.body is not None)
        named = {each.name: each for each in present if each.name.startswith(prefix)}
        return dict(sorted(named.items()))

    def keep(self, name: str, found: Object, body: bytes) -> None:
        """Remember the object that the document is in, for a swap of it."""
        writing = (name, codec.version_in(found))
        with self._lock:
            if writing in self._kept:
                self._kept.move_to_end(writing)
                return
            self._kept[writing] = Kept(codec.skeleton(found), hash(body))
            while len(self._kept) > KEPT_OBJECTS:
                self._kept.popitem(last=False)

    def kept(self, name: str, version: str) -> Kept | None:
        """The object of that document at that version, if it is remembered."""
        with self._lock:
            return self._kept.get((name, version))

    def _sighting(self, name: str, found: Object, seen_at: float) -> Sighting:
        body = codec.body_in(name, found)
        version = codec.version_in(found)
        # without a stamp of the server's, its age is how long it was seen unchanged from here
        stamp = codec.stamp_in(found) or self._clock.now(seen_at)
        gone = codec.is_being_deleted(found)
        return Sighting(name, body, version, stamp, order_of(version), seen_at, gone)


def order_of(version: str) -> int:
    """The number of a version, or of a bare resourceVersion; 0 for what is no number."""
    number = version.rpartition("/")[2]
    return int(number) if number.isdecimal() and number.isascii() else 0


def _absent(name: str, order: int, seen_at: float) -> Sighting:
    return Sighting(name, None, ABSENT, None, order, seen_at)
