"""Documents in a Kubernetes namespace, for all submitters that share it.

A swap is one request, the read before it included in most cases: objects that were seen lately are
remembered. Beyond the port: the submit lease is never deleted, and a ``notify`` reaches this
process only, as there is nothing in a cluster that could be knocked on without being written.

Glances are answered from what the informer keeps up to date. Where it is not up to date they are
reads, no more than one a second for a document; while the server cannot be reached, one a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Lock
from typing import Final, Protocol

from blastyard.admission.kubernetes import codec
from blastyard.admission.kubernetes.bell import Bell
from blastyard.admission.kubernetes.sighting import Kept, Sighting, Sightings, order_of
from blastyard.admission.port import ABSENT, LEASE, LEDGER, SUBMITTER, Snapshot, Version, Watch
from blastyard.domain.errors import Misconfigured, Unavailable
from blastyard.kube.client import Client, Selection
from blastyard.kube.outcome import (
    Absent,
    AlreadyExists,
    Conflict,
    Deleted,
    Denied,
    Found,
    Object,
)
from blastyard.kube.resource import CONFIGMAPS, LEASES, Resource

STALE_SECONDS: Final = 1.0
"""How old a sighting may be for a glance when no informer follows the document."""


class Follower(Protocol):
    """Who follows the documents as they change, and rings when they do."""

    sightings: Sightings
    bell: Bell

    def follows(self, resource: Resource) -> bool:
        """Whether everything of that kind is known here, as it was just now."""
        ...


class KubernetesDocumentStore:
    """A :class:`~blastyard.admission.port.DocumentStore`. Thread-safe.

    ``close`` is called when the store is closed, to let go of what was made for it.
    """

    def __init__(
        self,
        client: Client,
        follower: Follower,
        monotonic: Callable[[], float],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._follower = follower
        self._seen = follower.sightings
        self._monotonic = monotonic
        self._close = close
        self._reading = Lock()
        self._failure: Unavailable | None = None
        self._failed_at = 0.0

    def read(self, name: str) -> Snapshot:
        """The document as it is now: one request. Raises ``Unavailable`` and ``Misconfigured``."""
        where = self._place(name)
        asked_at = self._monotonic()
        found = self._client.get(where.resource, where.name)
        if found is None:
            if self._seen.see_absent(name, asked_at):
                self._follower.bell.ring()
            return self._absent(name)
        return self._taken_in(name, found)

    def scan(self, prefix: str) -> Mapping[str, Snapshot]:
        """All documents whose name starts with ``prefix``, by name; one request for submitters."""
        snapshots = [self.read(name) for name in (LEASE, LEDGER) if name.startswith(prefix)]
        if SUBMITTER.startswith(prefix) or prefix.startswith(SUBMITTER):
            snapshots += self._submitters(prefix)
        present = {each.name: each for each in snapshots if each.body is not None}
        return dict(sorted(present.items()))

    def glance(self, name: str) -> Snapshot:
        """The document as it was lately: no request while an informer follows it."""
        follows = self._follower.follows(self._place(name).resource)
        sighting = self._lately(name, follows)
        if sighting is None and not follows:
            with self._reading:  # whoever waits here finds what the first one has read
                sighting = self._lately(name, follows)
                if sighting is None:
                    return self._read_for_all(name)
        now = self._now(self._monotonic())
        if sighting is None:
            return Snapshot(name, None, ABSENT, None, now, is_fresh=False)
        return sighting.snapshot(now, is_fresh=False)

    def glance_all(self, prefix: str) -> Mapping[str, Snapshot]:
        """As :meth:`scan`, as it was lately."""
        kinds = {LEASES} | ({CONFIGMAPS} if LEDGER.startswith(prefix) else set())
        if not all(self._follower.follows(kind) for kind in kinds):
            return self.scan(prefix)
        now = self._now(self._monotonic())
        seen = self._seen.all(prefix).items()
        return {name: each.snapshot(now, is_fresh=False) for name, each in seen}

    def swap(self, name: str, version: Version, body: bytes | None) -> Snapshot | None:
        """Write when the version still is ``version``; ``None`` on a conflict.

        Raises ``Unavailable``: it may have been written. Raises ``ValueError`` for the deletion of
        the submit lease, which other programs may hold, and for a body that is no text.
        """
        if body is None and name == LEASE:
            raise ValueError("the submit lease is never deleted")
        if version == ABSENT:
            return self._create(name, body)
        if not isinstance(version, str):
            return None  # no version of this store
        if body is None:
            return self._delete(name, version)
        return self._replace(name, version, body)

    def notify(self) -> None:
        """Wake the watches of this process."""
        self._follower.bell.ring()

    def watch(self) -> Watch:
        """A watch of this process; forgotten when its owner drops it."""
        return self._follower.bell.watch()

    def close(self) -> None:
        """Let go of what was made for this store."""
        self._close()

    def _read_for_all(self, name: str) -> Snapshot:
        """Read; a failure is the answer to everybody who asks within a second of it."""
        if self._failure is not None and self._monotonic() - self._failed_at < STALE_SECONDS:
            raise self._failure.with_traceback(None)
        try:
            snapshot = self.read(name)
        except Unavailable as error:
            self._failure, self._failed_at = error, self._monotonic()
            raise
        self._failure = None
        return snapshot

    def _create(self, name: str, body: bytes | None) -> Snapshot | None:
        if body is None:
            current = self.read(name)
            return current if current.version == ABSENT else None
        where = self._place(name)
        new = codec.made(self._client.namespace, name, body, self._write_time(name))
        match self._client.create(where.resource, new):
            case Found() as found:
                return self._taken_in(name, found)
            case AlreadyExists():
                return None
            case Denied() as denied:
                raise _denied(name, denied)

    def _replace(self, name: str, version: str, body: bytes) -> Snapshot | None:
        where = self._place(name)
        kept = self._seen.kept(name, version) or self._fetched(name, version)
        if kept is None:
            return None
        now = self._write_time(name)
        new = codec.changed(name, kept.bare, body, now, kept.body_hash == hash(body))
        match self._client.replace(where.resource, new):
            case Found() as found:
                return self._taken_in(name, found)
            case Conflict():
                return None
            case Denied() as denied:
                raise _denied(name, denied)

    def _delete(self, name: str, version: str) -> Snapshot | None:
        where = self._place(name)
        uid, resource_version = codec.split_version(version)
        match self._client.delete(where.resource, where.name, uid, resource_version):
            case Deleted():
                if self._seen.see_deleted(name, order_of(version), self._monotonic()):
                    self._follower.bell.ring()
                return self._absent(name)
            case Absent() | Conflict():
                return None
            case Denied() as denied:
                raise _denied(name, denied)

    def _fetched(self, name: str, version: str) -> Kept | None:
        """The object of a version that is not remembered; ``None`` when it has changed since."""
        where = self._place(name)
        found = self._client.get(where.resource, where.name)
        if found is None or codec.version_in(found.object) != version:
            return None
        self._taken_in(name, found)
        return self._seen.kept(name, version)

    def _taken_in(self, name: str, found: Found) -> Snapshot:
        sighting, is_news = self._seen.see(name, found.object, found.at)
        self._seen.keep(name, found.object, sighting.body or b"")
        if is_news and not name.startswith(SUBMITTER):  # a sign of life concerns nobody who waits
            self._follower.bell.ring()
        return sighting.snapshot(self._now(found.at), is_fresh=True)

    def _submitters(self, prefix: str) -> list[Snapshot]:
        listing = self._client.listing(LEASES, Object, Selection(codec.SUBMITTERS))
        now = self._now(listing.received_at)
        found: list[Snapshot] = []
        for each in listing.items:
            name = codec.document_in(self._client.namespace, LEASES, each)
            if name is not None and name.startswith(prefix):
                sighting, _ = self._seen.see(name, each, listing.received_at)
                found.append(sighting.snapshot(now, is_fresh=True))
        return found

    def _write_time(self, name: str) -> datetime:
        """The server's clock; asks it the time when nothing was heard of it yet."""
        return self._now(self._monotonic()) if self._client.clock.is_set else self.read(name).now

    def _lately(self, name: str, follows: bool) -> Sighting | None:
        sighting = self._seen.latest(name)
        if sighting is None or follows:
            return sighting
        return sighting if self._monotonic() - sighting.seen_at < STALE_SECONDS else None

    def _place(self, name: str) -> codec.Place:
        return codec.place(self._client.namespace, name)

    def _now(self, at: float) -> datetime:
        return self._client.clock.now(at)

    def _absent(self, name: str) -> Snapshot:
        return Snapshot(name, None, ABSENT, None, self._now(self._monotonic()))


def _denied(name: str, denied: Denied) -> Misconfigured:
    return Misconfigured(
        "cluster_forbidden",
        f"an admission policy of the cluster refuses the {name}: {denied.message}",
        "let the policy leave out what has the label blastyard/kind, and the submit lease",
    )
