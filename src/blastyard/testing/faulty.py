"""Stores whose calls go wrong as a plan says, around any store that works.

A plan is asked once per call and answers a :class:`Fault`. The checkpoint is called before and
after every call, so that a scheduler can let others act there: ``before:swap:ledger``,
``after:swap:ledger``. Both may raise; what they raise reaches the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from blastyard.admission.port import DocumentStore, Snapshot, Version, Watch
from blastyard.domain.errors import Unavailable
from blastyard.domain.job import State
from blastyard.domain.search import Database, Event, Search
from blastyard.store.port import Filter, SearchStore, Stale

_Result = TypeVar("_Result")


class Fault(StrEnum):
    """What happens to one call."""

    OK = "ok"
    LOST_REQUEST = "lost_request"
    """It never arrived: nothing happens, ``Unavailable``."""
    LOST_ANSWER = "lost_answer"
    """It happens, and then ``Unavailable``; an error of the store itself is lost as well."""
    CONFLICT = "conflict"
    """``swap`` answers ``None``, ``update`` raises ``Stale``, undone; other calls go well."""
    UNAVAILABLE = "unavailable"
    """The store refuses: nothing happens, ``Unavailable``."""


Plan = Callable[[str, str], Fault]
"""From the operation's name, and the name or id it is about ('' when there is none), to a fault."""

Checkpoint = Callable[[str], None]
"""Called with ``before:<operation>:<name>`` and ``after:<operation>:<name>``."""


def no_fault(operation: str, name: str) -> Fault:  # noqa: ARG001
    """The plan under which every call goes well."""
    return Fault.OK


def no_checkpoint(at: str) -> None:
    """Let nobody in between."""


class _Line:
    """What lies between a caller and a store."""

    def __init__(self, plan: Plan, checkpoint: Checkpoint) -> None:
        self._plan = plan
        self._checkpoint = checkpoint

    def call(
        self,
        operation: str,
        name: str,
        answer: Callable[[], _Result],
        conflict: Callable[[], _Result] | None = None,
    ) -> _Result:
        self._checkpoint(f"before:{operation}:{name}")
        fault = self._plan(operation, name)
        try:
            return self._answer(fault, operation, answer, conflict)
        finally:
            self._checkpoint(f"after:{operation}:{name}")

    def _answer(
        self,
        fault: Fault,
        operation: str,
        answer: Callable[[], _Result],
        conflict: Callable[[], _Result] | None,
    ) -> _Result:
        match fault:
            case Fault.OK:
                return answer()
            case Fault.CONFLICT:
                return answer() if conflict is None else conflict()
            case Fault.LOST_ANSWER:
                try:
                    answer()
                except Exception as error:
                    raise _lost(fault, operation) from error
        raise _lost(fault, operation)


def _lost(fault: Fault, operation: str) -> Unavailable:
    message = f"{operation} came to nothing: {fault}."
    return Unavailable("store_unavailable", message, "Read again before anything else.")


def _no_snapshot() -> Snapshot | None:
    return None


def _stale(search_id: str) -> Search:
    raise Stale(search_id)


class FaultyDocumentStore:
    """A ``DocumentStore`` around ``inner``. Watches and ``close`` go through untouched."""

    def __init__(
        self, inner: DocumentStore, plan: Plan = no_fault, checkpoint: Checkpoint = no_checkpoint
    ) -> None:
        self._inner = inner
        self._line = _Line(plan, checkpoint)

    def read(self, name: str) -> Snapshot:
        """See the port."""
        return self._line.call("read", name, lambda: self._inner.read(name))

    def scan(self, prefix: str) -> Mapping[str, Snapshot]:
        """See the port."""
        return self._line.call("scan", prefix, lambda: self._inner.scan(prefix))

    def glance(self, name: str) -> Snapshot:
        """See the port; as a read, for the stores that have no cache."""
        return self._line.call("read", name, lambda: self._inner.glance(name))

    def glance_all(self, prefix: str) -> Mapping[str, Snapshot]:
        """See the port; as a scan, for the stores that have no cache."""
        return self._line.call("scan", prefix, lambda: self._inner.glance_all(prefix))

    def swap(self, name: str, version: Version, body: bytes | None) -> Snapshot | None:
        """See the port; the only operation here that can meet a conflict."""
        return self._line.call(
            "swap", name, lambda: self._inner.swap(name, version, body), _no_snapshot
        )

    def notify(self) -> None:
        """See the port; a fault loses the wake-up without a word, as the port allows."""
        try:
            self._line.call("notify", "", self._inner.notify)
        except Unavailable:
            return

    def watch(self) -> Watch:
        """See the port."""
        return self._inner.watch()

    def close(self) -> None:
        """See the port."""
        self._inner.close()


class FaultySearchStore:
    """A ``SearchStore`` around ``inner``. ``close`` goes through untouched."""

    def __init__(
        self, inner: SearchStore, plan: Plan = no_fault, checkpoint: Checkpoint = no_checkpoint
    ) -> None:
        self._inner = inner
        self._line = _Line(plan, checkpoint)

    def now(self) -> datetime:
        """See the port, as for every operation below."""
        return self._line.call("now", "", self._inner.now)

    def add(self, search: Search, event: Event) -> Search:
        return self._line.call("add", search.id, lambda: self._inner.add(search, event))

    def get(self, search_id: str) -> Search:
        return self._line.call("get", search_id, lambda: self._inner.get(search_id))

    def by_key(self, user: str, key: str) -> Search | None:
        return self._line.call("by_key", key, lambda: self._inner.by_key(user, key))

    def resolve(self, prefix: str) -> str:
        return self._line.call("resolve", prefix, lambda: self._inner.resolve(prefix))

    def list(self, wanted: Filter) -> Sequence[Search]:
        return self._line.call("list", "", lambda: self._inner.list(wanted))

    def counts(self) -> dict[State, int]:
        return self._line.call("counts", "", self._inner.counts)

    def live(self, runner: str | None = None, *, limit: int | None = None) -> Sequence[Search]:
        return self._line.call("live", runner or "", lambda: self._inner.live(runner, limit=limit))

    def runners(self) -> frozenset[str]:
        return self._line.call("runners", "", self._inner.runners)

    def waiting(self, runner: str, *, per_user: int) -> Sequence[Search]:
        return self._line.call(
            "waiting", runner, lambda: self._inner.waiting(runner, per_user=per_user)
        )

    def update(self, search: Search, event: Event | None = None) -> Search:
        return self._line.call(
            "update",
            search.id,
            lambda: self._inner.update(search, event),
            lambda: _stale(search.id),
        )

    def delete(self, search_id: str) -> None:
        self._line.call("delete", search_id, lambda: self._inner.delete(search_id))

    def events(self, search_id: str) -> Sequence[Event]:
        return self._line.call("events", search_id, lambda: self._inner.events(search_id))

    def add_database(self, database: Database) -> None:
        self._line.call("add_database", database.name, lambda: self._inner.add_database(database))

    def update_database(self, database: Database) -> None:
        self._line.call(
            "update_database", database.name, lambda: self._inner.update_database(database)
        )

    def get_database(self, name: str) -> Database:
        return self._line.call("get_database", name, lambda: self._inner.get_database(name))

    def list_databases(self) -> Sequence[Database]:
        return self._line.call("list_databases", "", self._inner.list_databases)

    def remove_database(self, name: str) -> None:
        self._line.call("remove_database", name, lambda: self._inner.remove_database(name))

    def close(self) -> None:
        self._inner.close()
