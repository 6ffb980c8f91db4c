"""The stores of a simulation as everybody's processes share them: observed, and sometimes late.

Behind them are the memory stores, or the real SQLite stores with virtual time put over theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from blastyard.admission.memory import MemoryDocumentStore
from blastyard.admission.port import (
    LEDGER,
    SUBMITTER,
    DocumentStore,
    Snapshot,
    Version,
    Watch,
)
from blastyard.admission.sql import SqliteDocumentStore
from blastyard.admission.wakeup import Wakeup
from blastyard.domain.errors import Unavailable
from blastyard.domain.search import Event, Search
from blastyard.store.memory import MemorySearchStore
from blastyard.store.migrations import upgrade
from blastyard.store.port import SearchStore
from blastyard.store.sql import SqlSearchStore
from blastyard.testing.faulty import FaultySearchStore
from blastyard.testing.scheduler import VirtualWatch

if TYPE_CHECKING:
    from blastyard.testing.actor import Actor
    from blastyard.testing.world import World

Now = Callable[[], datetime]
Stores = Callable[[Now], tuple[DocumentStore, SearchStore]]
"""Makes the stores behind a simulation, whose clock is given."""


def memory_stores(now: Now) -> tuple[DocumentStore, SearchStore]:
    """Stores in memory."""
    return MemoryDocumentStore(now), MemorySearchStore(now)


def sqlite_stores(directory: Path) -> Stores:
    """Real SQLite stores in one file below ``directory``; what they swap and refuse is real."""

    def made(now: Now) -> tuple[DocumentStore, SearchStore]:
        path = directory / "simulated.db"
        upgrade(path)
        documents = SqliteDocumentStore(path, wakeup=Wakeup(directory / "run"), upgrade=upgrade)
        return TimedDocuments(documents, now), SqlSearchStore(path)

    return made


class TimedDocuments:
    """Documents of a store whose own clock nobody can set, under another clock."""

    def __init__(self, inner: DocumentStore, now: Now) -> None:
        self._inner = inner
        self._now = now
        self._stamps: dict[tuple[str, Version], datetime] = {}

    def read(self, name: str) -> Snapshot:
        """See the port."""
        return self._timed(self._inner.read(name))

    def scan(self, prefix: str) -> Mapping[str, Snapshot]:
        """See the port."""
        return {name: self._timed(found) for name, found in self._inner.scan(prefix).items()}

    def glance(self, name: str) -> Snapshot:
        """See the port; there is no cache."""
        return self.read(name)

    def glance_all(self, prefix: str) -> Mapping[str, Snapshot]:
        """See the port; there is no cache."""
        return self.scan(prefix)

    def swap(self, name: str, version: Version, body: bytes | None) -> Snapshot | None:
        """See the port."""
        written = self._inner.swap(name, version, body)
        if written is None:
            return None
        self._stamps[name, written.version] = self._now()
        return self._timed(written)

    def notify(self) -> None:
        """See the port."""
        self._inner.notify()

    def watch(self) -> Watch:
        """See the port."""
        return self._inner.watch()

    def close(self) -> None:
        """See the port."""
        self._inner.close()

    def _timed(self, snapshot: Snapshot) -> Snapshot:
        stamped_at = self._stamps.get((snapshot.name, snapshot.version))
        return replace(snapshot, stamped_at=stamped_at, now=self._now())


def _late(world: World, write: object) -> Unavailable:
    return Unavailable("store_unavailable", f"{write} was given up at {world.now:.3f}")


class SharedDocuments:
    """The document store of a world: everybody's, observed, with watches in virtual time."""

    def __init__(self, world: World, inner: DocumentStore) -> None:
        self._world = world
        self._inner = inner
        self._watches: list[tuple[Actor, VirtualWatch]] = []

    def read(self, name: str) -> Snapshot:
        """See the port."""
        if name == LEDGER:
            self._world.observer.ledger_rules.read()
        return self._inner.read(name)

    def scan(self, prefix: str) -> Mapping[str, Snapshot]:
        """See the port."""
        return self._inner.scan(prefix)

    def glance(self, name: str) -> Snapshot:
        """See the port; there is no cache."""
        return self.read(name)

    def glance_all(self, prefix: str) -> Mapping[str, Snapshot]:
        """See the port; there is no cache."""
        return self.scan(prefix)

    def swap(self, name: str, version: Version, body: bytes | None) -> Snapshot | None:
        """See the port; a late one happens after its caller has given up."""
        actor = self._world.actor()
        if actor is None or not actor.late:
            return self._land(actor, name, version, body)
        after, actor.late = actor.late, 0.0
        rules = self._world.observer.ledger_rules
        deed = rules.deed()

        def land() -> None:
            rules.landing = deed
            self._land(actor, name, version, body)
            rules.landing = None

        self._world.scheduler.at(self._world.now + after, land)
        raise _late(self._world, name)

    def _land(
        self, actor: Actor | None, name: str, version: Version, body: bytes | None
    ) -> Snapshot | None:
        before = self._inner.read(name)
        written = self._inner.swap(name, version, body)
        if written is not None:
            self._world.observer.document(actor, before, written)
            if not name.startswith(SUBMITTER):  # a sign of life wakes nobody
                self.notify()
        return written

    def outside(self, name: str, body: bytes | None) -> None:
        """Written by hand, whatever stands there."""
        self.swap(name, self.read(name).version, body)

    def subscribe(self, actor: Actor) -> VirtualWatch:
        """A watch for a process."""
        watch = VirtualWatch(self._world.scheduler)
        self._watches = [entry for entry in self._watches if not entry[0].dead]
        self._watches.append((actor, watch))
        return watch

    def notify(self) -> None:
        """Wake the watches of all processes, apart from those that do not hear it."""
        deaf = self._world.schedule.hard_of_hearing
        for actor, watch in self._watches:
            if not actor.dead and (not deaf or self._world.chance.random() >= deaf):
                watch.wake()

    def watch(self) -> Watch:
        """See the port; a watch of nobody in particular."""
        return VirtualWatch(self._world.scheduler)

    def close(self) -> None:
        """See the port."""
        self._inner.close()


class SharedSearches(FaultySearchStore):
    """The search store of a world, observed."""

    def __init__(self, world: World, inner: SearchStore) -> None:
        super().__init__(inner)
        self._world = world
        self.rows: dict[str, Search] = {}
        """All rows as they are."""

    def now(self) -> datetime:
        """See the port; always the world's clock."""
        return self._world.clock.now()

    def add(self, search: Search, event: Event) -> Search:
        """See the port."""
        stored = self._inner.add(search, event)
        self.rows[stored.id] = stored
        return stored

    def delete(self, search_id: str) -> None:
        """See the port."""
        self._inner.delete(search_id)
        del self.rows[search_id]

    def update(self, search: Search, event: Event | None = None) -> Search:
        """See the port; a late one happens after its caller has given up."""
        actor = self._world.actor()
        if actor is None or not actor.late:
            return self._land(actor, search, event)
        after, actor.late = actor.late, 0.0
        self._world.scheduler.at(
            self._world.now + after, lambda: self._land_late(actor, search, event)
        )
        raise _late(self._world, search.id)

    def _land_late(self, actor: Actor, search: Search, event: Event | None) -> None:
        try:
            self._land(actor, search, event)
        except Exception as error:
            self._world.history.note(self._world.now, actor.name, f"came too late: {error!r}")

    def _land(self, actor: Actor | None, search: Search, event: Event | None) -> Search:
        before = self.rows.get(search.id)
        after = self._inner.update(search, event)
        self.rows[search.id] = after
        if before is not None:
            self._world.observer.row(actor, before, after)
        return after
