"""Everything that is looked at before a search is queued.

Whatever BLAST+ would accept silently and answer wrongly is refused here, or repaired and said. The
order is cheap first: names and options, then the database, then the letters of the query as they
stream by, then what only their sum can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from blastyard.domain.errors import CallerMistake
from blastyard.domain.fasta import FastaCheck, FastaLimits, require_writable_titles
from blastyard.domain.memory import least_memory
from blastyard.domain.options import OptionSet, parse_options, require_query_range
from blastyard.domain.outfmt import OutputFormat
from blastyard.domain.program import Program
from blastyard.domain.search import (
    USER_LENGTH,
    Database,
    DatabaseState,
    Priority,
    Query,
    Request,
)
from blastyard.service.databases import require_suitable
from blastyard.service.draft import Draft

KEY_LENGTH = 1024
TITLE_LENGTH = 500


class Catalogue(Protocol):
    """The registered databases, as intake needs them."""

    def ready(self, name: str) -> Database:
        """A database that may be searched; raises what is wrong with it."""
        ...

    def has_taxid(self, database: Database, taxid: int) -> bool:
        """Whether the database has sequences of this taxon."""
        ...


@dataclass(frozen=True, slots=True)
class Room:
    """What one search may use here. ``memory_bytes`` ``None`` = no limit."""

    memory_bytes: int | None


class Accepted:
    """A search whose words are right; its letters pass through :meth:`repaired`."""

    def __init__(self, request: Request, options: OptionSet, check: FastaCheck, room: Room) -> None:
        self._request = request
        self._options = options
        self._check = check
        self._room = room
        self.query = Query(0, 0, 0, 0, "")

    def repaired(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The query as BLAST+ will read it. Raises ``CallerMistake`` with line and column."""
        return self._check.repaired(chunks)

    def finish(self) -> Request:
        """After the last chunk: what only the whole query can tell."""
        summary = self._check.summary
        self.query = Query(
            summary.records,
            summary.residues,
            summary.longest,
            summary.size,
            summary.sha256,
            tuple(notice.message for notice in summary.notices),
        )
        require_query_range(self._options, summary)
        require_writable_titles(summary, OutputFormat.parse(self._request.output_format))
        self._require_room()
        return self._request

    def _require_room(self) -> None:
        limit = self._room.memory_bytes
        needed = least_memory(self._request.program, self.query.longest)
        if limit is not None and needed > limit:
            raise CallerMistake(
                "never_fits",
                f"this search needs about {needed / 2**20:,.0f} MiB of memory (its longest query "
                f"has {self.query.longest:,} residues); one search may use {limit / 2**20:,.0f}",
                "split the query, or ask the operator to raise BLASTYARD_SEARCH_MEMORY_MB",
            )


class Intake:
    """Checks drafts."""

    def __init__(self, catalogue: Catalogue, room: Room, limits: FastaLimits) -> None:
        self._catalogue = catalogue
        self._room = room
        self._limits = limits

    def check(self, draft: Draft) -> Accepted:
        """Check all but the letters. Raises ``CallerMistake`` and its kin."""
        program = Program.parse(draft.program)
        output_format = OutputFormat.parse(draft.output_format, program)
        options = parse_options(program, draft.options, outfmt=output_format)
        database = self._catalogue.ready(draft.database)
        require_suitable(program, database)
        if database.state is DatabaseState.READY:
            self._require_taxids(database, options)
        request = Request(
            program,
            database.name,
            options.argv,
            output_format.argument,
            _short("user", draft.user, USER_LENGTH),
            _priority(draft.priority),
            _short("title", draft.title, TITLE_LENGTH),
            tuple(dict.fromkeys(_short("tag", tag, TITLE_LENGTH) for tag in draft.tags)),
            _key(draft.key),
        )
        check = FastaCheck(
            program,
            task=options.task,
            source=draft.source,
            word_size=options.word_size,
            limits=self._limits,
        )
        return Accepted(request, options, check, self._room)

    def _require_taxids(self, database: Database, options: OptionSet) -> None:
        for taxid in (*options.taxids, *options.negative_taxids):
            if not self._catalogue.has_taxid(database, taxid):
                raise CallerMistake(
                    "taxid_unknown",
                    f"{database.name} has no sequence of taxon {taxid}",
                    "give a species-level taxid that is in the database, or leave the option out",
                )


def _priority(text: str) -> Priority:
    try:
        return Priority(text)
    except ValueError:
        choices = ", ".join(Priority)
        message = f"{text!r} is no priority"
        raise CallerMistake("request_invalid", message, f"use one of {choices}") from None


def _short(what: str, text: str, limit: int) -> str:
    if len(text) > limit or not text.isprintable():
        message = f"the {what} must be at most {limit} printable characters"
        step = f"shorten the {what}, and leave out line ends and control characters"
        raise CallerMistake("request_invalid", message, step)
    return text


def _key(key: str | None) -> str | None:
    if key is not None and not 0 < len(key) <= KEY_LENGTH:
        message = f"an idempotency key has 1 to {KEY_LENGTH} characters, this one {len(key)}"
        raise CallerMistake("key_invalid", message, "use a shorter key, such as a UUID")
    return key


def query_chunks(path: Path, size: int = 1 << 20) -> Iterator[bytes]:
    """A file in chunks; raises ``CallerMistake('query_unreadable')``."""
    try:
        # unbuffered: one system call a chunk, so that a signal is acted on between two
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(size):
                yield chunk
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}"
        raise CallerMistake("query_unreadable", message, "check the path and permissions") from None
