"""Deeds of a blastyard, told by the process itself as it does them, one line of JSON each."""

from __future__ import annotations

import json
import sys
from threading import Lock

import msgspec

from blastyard.admission.lease import SubmitLease
from blastyard.admission.port import LEASE, DocumentStore, Snapshot, Version, Watch
from blastyard.domain.clock import SystemClock
from blastyard.engine.command import Ending
from blastyard.engine.guarded import GuardedCommand
from blastyard.service.entrance import Running

_KEPT = 64


class Teller:
    """Prints deeds of ``who``. Thread-safe; every line is whole, and out at once."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._clock = SystemClock()
        self._lock = Lock()

    def __call__(self, what: str, search: str, **more: object) -> None:
        """Tell a deed; the time is now."""
        at = self._clock.now().timestamp()
        deed = {"at": at, "who": self._who, "what": what, "search": search, **more}
        with self._lock:
            sys.stdout.write(json.dumps(deed) + "\n")
            sys.stdout.flush()


class ToldDocuments:
    """A document store that tells when the submit lease is taken, and when it is let go."""

    def __init__(self, inner: DocumentStore, tell: Teller) -> None:
        self._inner = inner
        self._tell = tell
        self._lock = Lock()
        self._holders: dict[Version, str] = {}
        self._told: set[str] = set()
        self.inside = ""
        """The latest holder that this process has been."""
        self.notify = inner.notify
        self.watch_inner = inner.watch
        self.close = inner.close
        self.scan = inner.scan
        self.glance_all = inner.glance_all

    def watch(self) -> Watch:
        """See the port."""
        return self._inner.watch()

    def read(self, name: str) -> Snapshot:
        """See the port."""
        return self._seen(self._inner.read(name))

    def glance(self, name: str) -> Snapshot:
        """See the port."""
        return self._seen(self._inner.glance(name))

    def swap(self, name: str, version: Version, body: bytes | None) -> Snapshot | None:
        """See the port."""
        if name != LEASE or body is None:
            return self._inner.swap(name, version, body)
        wanted = _holder(body)
        with self._lock:
            before = self._holders.get(version, "")
        if not wanted:
            self._tell("releasing", _search(before), holder=before)
        found = self._inner.swap(name, version, body)
        if found is None:
            return None
        self._seen(found)
        if not wanted:
            self._tell("released", _search(before), holder=before, version=_number(found))
        elif wanted not in self._told:
            self._told.add(wanted)
            self.inside = wanted
            self._tell("acquired", _search(wanted), holder=wanted, version=_number(found))
        return found

    def _seen(self, snapshot: Snapshot) -> Snapshot:
        if snapshot.name == LEASE and snapshot.body is not None:
            with self._lock:
                self._holders[snapshot.version] = _holder(snapshot.body)
                while len(self._holders) > _KEPT:
                    del self._holders[next(iter(self._holders))]
        return snapshot


def _holder(body: bytes) -> str:
    return msgspec.json.decode(body, type=SubmitLease).holder_identity


def _search(holder: str) -> str:
    return holder.removeprefix("blastyard-").rpartition("-")[0]


def _number(snapshot: Snapshot) -> str:
    return str(snapshot.version).rpartition("/")[2]


class ToldCommand(Running):
    """A guarded command that tells when nothing of it is left."""

    def __init__(self, inner: GuardedCommand, tell: Teller, search: str, holder: str) -> None:
        self._inner = inner
        self._tell = tell
        self._search = search
        self._holder = holder
        self._ended = Lock()
        self._is_told = False

    def extend(self, deadline: float | None) -> None:
        """See the port, as for all below."""
        self._inner.extend(deadline)

    def end(self) -> None:
        """See the port."""
        self._inner.end()

    def wait(self, timeout: float | None = None) -> Ending | None:
        """See the port."""
        ending = self._inner.wait(timeout)
        if ending is not None:
            with self._ended:
                if not self._is_told:
                    self._is_told = True
                    self._say(ending)
        return ending

    def close(self) -> None:
        """Let go of it."""
        self._inner.close()

    def _say(self, ending: Ending) -> None:
        self._tell(
            "submitted",
            self._search,
            holder=self._holder,
            gate=True,
            ids=[self._search],
            code=ending.exit_code,
            ended_by=ending.ended_by,
        )
