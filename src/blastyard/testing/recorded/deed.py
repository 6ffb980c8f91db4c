"""The two kinds of lines in a recording: what processes say, and what the server's objects became.

A *deed* is what a process says that it did. ``at`` is the true time in seconds since 1970 (a
process under a false clock must have its lines stamped by who reads them), ``who`` its
installation or source, ``search`` the search. What is judged, and the fields that are needed:

===========  ===================================================================================
accepted     the search has a place in a store or a queue, and must end
acquired     ``holder``, ``version`` (the Lease's resourceVersion that says so)
submitting   the command begins: ``holder``, ``gate`` (false: it does not pass Gate A), ``ids``
             (the labels ``elb-job-id`` of its objects, if they are known before)
submitted    it has ended, with all its descendants: ``holder``, ``gate``, ``ids``, ``code``
releasing    ``holder``; said before the Lease is cleared
released     ``holder``, ``version``
died         all processes of ``who``, and their commands, are gone (said by whoever killed them)
ended        ``outcome``
===========  ===================================================================================

Other deeds are kept and not judged.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

Document = Mapping[str, Any]

DEEDS: Final = "*.deeds.jsonl"
CHANGES: Final = "*.changes.jsonl"

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
GAP: Final = "GAP"
"""Changes before this one are missing; those that were found by comparing follow it."""


@dataclass(frozen=True, slots=True)
class Deed:
    """What a process says that it did."""

    at: float
    who: str
    what: str
    search: str
    more: Document = field(default_factory=dict)

    @property
    def holder(self) -> str:
        """As whom it was inside Gate A; empty for who was not."""
        return str(self.more.get("holder") or "")

    @property
    def ids(self) -> tuple[str, ...]:
        """Under which labels its objects are known."""
        return tuple(self.more.get("ids") or ())


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one object. ``version`` orders all of them, whatever their kind."""

    version: int
    at: float
    """True time in seconds since 1970 when the recorder saw it."""
    what: str
    kind: str
    """``Lease``, ``ConfigMap`` or ``Job``."""
    name: str
    document: Document
    bridged: bool = False
    """It was found by comparing, after a gap: when it happened, and in which steps, is unknown."""

    def line(self) -> str:
        """The change as a line of a recording."""
        return json.dumps(asdict(self), separators=(",", ":")) + "\n"


def read_deeds(lines: Iterable[str]) -> list[Deed]:
    """The deeds among these lines; others, as a process may print them, are passed over."""
    deeds = []
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and {"at", "who", "what", "search"} <= found.keys():
            at, who = float(found.pop("at")), str(found.pop("who"))
            what, search = str(found.pop("what")), str(found.pop("search"))
            deeds.append(Deed(at, who, what, search, found))
    return deeds


def deeds_of(recording: Path) -> list[Deed]:
    """All deeds of a recording, by time."""
    found: list[Deed] = []
    for path in sorted(recording.glob(DEEDS)):
        with path.open() as lines:
            found += read_deeds(lines)
    return sorted(found, key=lambda deed: deed.at)


def _changes(path: Path) -> Iterator[Change]:
    with path.open() as lines:
        for line in lines:
            yield Change(**json.loads(line))


def changes_of(recording: Path) -> Iterator[Change]:
    """All changes of a recording in the server's order. Each file is in order by itself."""
    files = [_changes(path) for path in sorted(recording.glob(CHANGES))]
    return heapq.merge(*files, key=lambda change: change.version)
