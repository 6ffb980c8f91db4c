"""Searches and databases to put into a store under test."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from blastyard.domain.errors import Failure
from blastyard.domain.job import State
from blastyard.domain.program import Program
from blastyard.domain.search import (
    Database,
    DatabaseState,
    Event,
    Priority,
    Query,
    Request,
    Result,
    Run,
    Search,
)

LONG_AGO: Final = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
QUEUED: Final = Event(State.QUEUED, reason="submitted")
DATABASE: Final = "swissprot"
"""The name of :func:`database`, and what every :func:`search` searches."""


def search(**request: Any) -> Search:
    """A new search with an id of its own; ``request`` are fields of its request."""
    plain = Request(
        program=Program.BLASTP,
        database=DATABASE,
        options=("-evalue", "1e-5"),
        output_format="6",
        user="ada",
    )
    return Search(
        id=str(uuid.uuid4()),
        request=replace(plain, **request),
        query=Query(records=2, residues=300, longest=200, size=412, sha256="ab" * 32),
        account=1000,
        created_at=LONG_AGO,
        runner="r1",
    )


def full_search() -> Search:
    """A search with something in every field."""
    plain = search(
        title="Größe \U0001f9ec \x01 'quoted' \"twice\"",
        tags=("a", "b c", "ü"),
        key="K_1",
        priority=Priority.HIGH,
    )
    return replace(
        plain,
        query=replace(plain.query, notices=("unpacked", "line ends repaired")),
        state=State.FAILED,
        phase="parked",
        attempt=3,
        run=Run("boot", 10, 2**40, 11, 2**41, 3),
        alive_at=LONG_AGO.replace(microsecond=123456),
        started_at=LONG_AGO,
        finished_at=LONG_AGO,
        progress_done=7,
        error=Failure("killed", "BLAST+ was killed.", "Give it more memory."),
        result=Result(10**12, "cd" * 32, "tsv"),
        result_deleted_at=LONG_AGO,
        exactness="shards",
        command=("blastp", "-query", "q.fa"),
        blast_version="2.12.0+",
        cancel_requested=True,
        submit_deadline_at=LONG_AGO,
        capacity_deadline_at=LONG_AGO,
        rerun_of="another",
    )


def database(name: str = DATABASE) -> Database:
    """A protein database."""
    return Database(
        name=name,
        type="prot",
        path=f"/data/{name}",
        title="Swiss-Prot",
        sequences=100,
        letters=40_000,
        built=True,
        created_at=LONG_AGO,
        files={f"{name}.phr": 10, f"{name}.psq": 20},
        state=DatabaseState.COPYING,
        blast_version="2.12.0+",
    )
