"""The port to the documents that admission is decided on.

A store keeps small named documents and swaps them; it knows no rules. Obligations of an
implementer:

* ``swap`` is atomic compare-and-swap on the version; a version is never used twice for one name,
  also not after the document was deleted and made again.
* ``read`` is never answered from a cache; ``glance`` and ``glance_all`` may be, and cost nothing
  where there is one. What is decided on a glance is only whether asking is worthwhile, or it is
  written by a ``swap``, which fails when the glance was old.
* ``stamped_at`` is when the store last wrote the document and ``now`` is the store's clock at the
  read, both of one clock that all submitters share.
* Whatever cannot be told raises ``Unavailable``; a lost answer may mean that the swap happened, so
  callers read again.
* A watch wakes after any change made by anybody, a submitter's sign of life excepted; it may wake
  for nothing, and it may miss: callers keep a floor under it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

Version = int | str
"""Opaque. Equal versions of one name are one writing of it; 0 when there is no document."""

ABSENT: Final = 0

LEASE: Final = "lease"
LEDGER: Final = "ledger"
SUBMITTER: Final = "submitter/"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A document as it was at ``now``. ``body`` is ``None`` when there is none."""

    name: str
    body: bytes | None
    version: Version
    stamped_at: datetime | None
    now: datetime
    is_fresh: bool = True
    """Read just now; a glance at a cache is not."""
    is_coarse: bool = False
    """``stamped_at`` is no finer than a second, and late rather than early."""


class Watch(Protocol):
    """Wakes when a document may have changed."""

    def wait(self, timeout_seconds: float) -> bool:
        """Block up to the timeout; whether something may have changed. Called from one thread."""
        ...

    def wake(self) -> None:
        """End a ``wait`` in this process from any thread."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


class DocumentStore(Protocol):
    """Reads and swaps documents. See the module docstring for what an implementer owes."""

    def read(self, name: str) -> Snapshot:
        """The document as it is now."""
        ...

    def scan(self, prefix: str) -> Mapping[str, Snapshot]:
        """All documents whose name starts with ``prefix``, by name."""
        ...

    def glance(self, name: str) -> Snapshot:
        """The document as it was lately; ``now`` is now."""
        ...

    def glance_all(self, prefix: str) -> Mapping[str, Snapshot]:
        """As :meth:`scan`, as it was lately."""
        ...

    def swap(self, name: str, version: Version, body: bytes | None) -> Snapshot | None:
        """Write when the version still is ``version`` (0 = absent); ``None`` body deletes.

        Returns the new snapshot, or ``None`` on a conflict.
        """
        ...

    def notify(self) -> None:
        """Wake the watches of all processes, without a document having changed."""
        ...

    def watch(self) -> Watch:
        """A watch of this process."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
