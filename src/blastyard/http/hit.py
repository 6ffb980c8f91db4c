"""A tabular result as a table for people: the first rows, grouped by query.

Format 7 is the one that tells "no hits" from "no output": it names every query, says how many hits
each has, and ends with a line of its own. The others have lines for hits only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from blastyard.domain.outfmt import OutputFormat

ROWS: Final = 200
QUERIES: Final = 500
"""So many queries are listed when most of them have no hits."""
_LINE_BYTES: Final = 1 << 20

_QUERY: Final = "# Query: "
_FOUND: Final = " hits found"
_END: Final = "# BLAST processed "

# heading, then the fields that can fill it: the first one there is taken
_COLUMNS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("Subject", ("saccver", "sseqid", "sacc", "sallacc", "sallseqid")),
    ("E-value", ("evalue",)),
    ("Bit score", ("bitscore",)),
    ("Identity", ("pident",)),
    ("Length", ("length",)),
    ("Query range", ("qstart", "qend")),
    ("Subject range", ("sstart", "send")),
    ("Title", ("stitle", "salltitles")),
)
_RANGES: Final = frozenset({"Query range", "Subject range"})
_NAMES: Final = ("qaccver", "qseqid", "qacc")


@dataclass(slots=True)
class QueryHits:
    """The hits of one query, as far as they are shown. ``found`` is ``None`` when nobody says.

    ``label`` tells queries of the same name apart: ``a``, ``a (2)``.
    """

    name: str
    label: str
    found: int | None = None
    rows: list[tuple[str, ...]] = field(default_factory=list)


@dataclass(slots=True)
class HitTable:
    """``more``: the file has more than is shown. ``whole``: its end is as it must be."""

    headings: tuple[str, ...]
    queries: list[QueryHits] = field(default_factory=list)
    more: bool = False
    whole: bool = True
    names_all: bool = True
    """Whether queries without hits are named."""

    shown: int = 0
    """How many rows there are."""

    def begin(self, name: str) -> None:
        """Another query begins."""
        number = 1 + sum(query.name == name for query in self.queries)
        self.queries.append(QueryHits(name, name if number == 1 else f"{name} ({number})"))


def read_hits(path: Path, output_format: OutputFormat) -> HitTable | None:
    """The beginning of a result; ``None`` when its format has no columns to show."""
    columns = _columns(output_format.fields)
    if not columns:
        return None
    table = HitTable(tuple(heading for heading, _ in columns), names_all=output_format.number == 7)
    reader = _Reader(table, output_format, columns)
    with path.open("rb") as file:
        reader.read(_lines(file))
    return table


def _lines(file: IO[bytes]) -> Iterator[str]:
    while line := file.readline(_LINE_BYTES):
        yield line.decode("utf-8", "replace").rstrip("\n")


def _columns(fields: tuple[str, ...]) -> list[tuple[str, tuple[int, ...]]]:
    found = []
    for heading, names in _COLUMNS:
        places = [fields.index(name) for name in names if name in fields]
        if heading in _RANGES:
            if len(places) == 2:
                found.append((heading, tuple(places)))
        elif places:
            found.append((heading, (places[0],)))
    return found


class _Reader:
    def __init__(
        self,
        table: HitTable,
        output_format: OutputFormat,
        columns: list[tuple[str, tuple[int, ...]]],
    ) -> None:
        self._table = table
        self._columns = columns
        self._fields = output_format.fields
        self._delimiter = output_format.delimiter
        self._commented = output_format.number == 7
        self._name = next((self._fields.index(n) for n in _NAMES if n in self._fields), None)

    def read(self, lines: Iterator[str]) -> None:
        table = self._table
        table.whole = not self._commented
        for line in lines:
            comment = self._commented and line.startswith("# ")
            if self._is_full(line, comment=comment):
                table.more = table.whole = True
                return
            if comment:
                self._comment(line)
            else:
                self._row(line)

    def _is_full(self, line: str, *, comment: bool) -> bool:
        if comment:
            return line.startswith(_QUERY) and len(self._table.queries) >= QUERIES
        return self._table.shown >= ROWS

    def _comment(self, line: str) -> None:
        table = self._table
        if line.startswith(_QUERY):
            table.begin(line.removeprefix(_QUERY))
        elif line.startswith(_END):
            table.whole = True
        elif line.endswith(_FOUND) and table.queries:
            count = line[2:].removesuffix(_FOUND)
            if count.isdecimal():
                table.queries[-1].found = int(count)

    def _row(self, line: str) -> None:
        values = line.split(self._delimiter, len(self._fields) - 1)
        if len(values) < len(self._fields):
            self._table.whole = False
            return
        self._table.shown += 1
        self._query_of(values).rows.append(
            tuple(" – ".join(values[place] for place in places) for _, places in self._columns)
        )

    def _query_of(self, values: list[str]) -> QueryHits:
        queries = self._table.queries
        name = values[self._name] if self._name is not None else ""
        if not queries or (not self._commented and queries[-1].name != name):
            self._table.begin(name)
        return queries[-1]
