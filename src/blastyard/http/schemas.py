"""What goes in and comes out, as OpenAPI shows it. ``service.view`` makes the objects."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from blastyard.domain.job import State
from blastyard.domain.program import Program
from blastyard.domain.search import Priority


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("only printable characters")
    return text


Word = Annotated[str, Field(max_length=200), AfterValidator(_printable)]
Option = Annotated[str, Field(max_length=10_000)]


class SearchWords(BaseModel):
    """A search apart from its query."""

    model_config = ConfigDict(extra="forbid")

    program: Word = Field(description="blastn, blastp, blastx, tblastn or tblastx")
    database: Word = Field(description="the name of a registered database")
    format: Annotated[str, Field(max_length=2000)] = Field(
        "tsv", description="tsv, tsv-comments, csv, xml, json, sam, pairwise, or an -outfmt value"
    )
    options: list[Option] = Field(
        default=[],
        max_length=200,
        description="BLAST+ arguments, one word each",
        examples=[["-evalue", "1e-5"]],
    )
    user: Word = Field("", description="on whose behalf; empty: the account of the service")
    priority: Word = Field(Priority.NORMAL.value, description="low, normal or high")
    title: str = Field("", description="at most 500 printable characters")
    tags: list[str] = Field(default=[], max_length=100)


class SearchBody(SearchWords):
    """A whole search, for queries of moderate size."""

    query: str = Field(description="FASTA", examples=[">q1\nACGTTGCAACGTTGCAACGTTGCAACGTTGCA\n"])


class Progress(BaseModel):
    """Query records, done and in all."""

    done: int
    total: int


class Fault(BaseModel):
    """Why a search failed."""

    code: str
    message: str
    next_step: str


class QueryCounts(BaseModel):
    """The query in numbers; ``notices`` says which repairs were made to it."""

    records: int
    residues: int
    longest: int
    notices: list[str]


class ResultFile(BaseModel):
    """The output: bytes, checksum, and when it was deleted, if it was."""

    size: int
    sha256: str
    extension: str
    deleted_at: datetime | None


class SearchObject(BaseModel):
    """A search, the same object in every front. ``position`` counts from 1."""

    id: str
    state: State
    phase: str | None
    reason: str | None
    position: int | None
    program: Program
    database: str
    user: str
    priority: Priority
    title: str
    tags: list[str]
    key: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    progress: Progress
    error: Fault | None
    exactness: str
    command: list[str]
    blast_version: str
    format: str
    options: list[str]
    query: QueryCounts
    attempt: int
    result: ResultFile | None
    rerun_of: str | None


class SearchPage(BaseModel):
    """Searches, newest first; ``next`` is the cursor of the following page."""

    searches: list[SearchObject]
    next: str | None


class EventObject(BaseModel):
    """One change in a search's life."""

    at: datetime | None
    state: State
    phase: str | None
    reason: str
    code: str | None


class EventList(BaseModel):
    """What happened, oldest first."""

    events: list[EventObject]


class DatabaseObject(BaseModel):
    """A registered database; sizes in letters and bytes."""

    name: str
    type: Literal["nucl", "prot"]
    title: str
    path: str
    sequences: int
    letters: int
    state: str
    built: bool
    created_at: datetime | None
    size: int


class DatabaseList(BaseModel):
    """All databases, by name."""

    databases: list[DatabaseObject]


class QueueObject(BaseModel):
    """Both gates: who submits, what runs, who waits and why."""

    now: datetime
    ceiling: int
    user_cap: int | None
    policy_changes: list[dict[str, Any]]
    whole: bool
    submit_slot: dict[str, Any]
    running: list[dict[str, Any]]
    waiting: list[dict[str, Any]]
    behind: int
    submitters: list[dict[str, Any]]


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class Ready(BaseModel):
    """Everything a search needs is there."""

    status: Literal["ready"]
    blast_version: str


class Position(BaseModel):
    """A place in the query, counted from 1; the column is not always known."""

    line: int
    column: int | None


class Problem(BaseModel):
    """An error, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    next_step: str
    position: Position | None = None
