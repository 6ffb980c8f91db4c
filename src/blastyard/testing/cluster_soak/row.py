"""The searches of one worker, in a file: what is known of each survives the worker's death."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock

import msgspec

from blastyard.admission.ledger import HoldState
from blastyard.admission.restoration import Claim

OPEN = "open"
SUBMITTED = "submitted"
ENDED = "ended"


class Row(msgspec.Struct):
    """One search. ``attempt`` is written before an attempt begins."""

    search: str
    user: str
    level: int
    words: list[str]
    """What its submit command is told."""
    attempt: int = 0
    state: str = OPEN
    reserved: bool = False
    """An attempt of it was granted a run slot."""
    is_hopeless: bool = False
    """Its command gives up by itself, and is not tried again."""


class Rows:
    """All rows of a file. Written whole, in one step, at each change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._rows = msgspec.json.decode(path.read_bytes(), type=list[Row])

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def find(self, search: str) -> Row | None:
        """The row of a search."""
        return next((row for row in self._rows if row.search == search), None)

    def save(self) -> None:
        """What was changed is there to stay."""
        with self._lock:
            new = self._path.with_suffix(".new")
            new.write_bytes(msgspec.json.encode(self._rows))
            os.replace(new, self._path)  # noqa: PTH105

    def claims(self, submitter: str) -> Sequence[Claim]:
        """What must count when the ledger is lost."""
        found = []
        for row in self._rows:
            if row.state == SUBMITTED:
                state = HoldState.SUBMITTED
            elif row.state == OPEN and row.reserved:
                state = HoldState.RESERVED
            else:
                continue
            watched = state is HoldState.SUBMITTED
            claim = Claim(
                row.search, row.user, row.level, row.attempt, state, submitter, watched=watched
            )
            found.append(claim)
        return found


def write(path: Path, rows: Sequence[Row]) -> None:
    """The file that a worker begins with."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(list(rows)))
