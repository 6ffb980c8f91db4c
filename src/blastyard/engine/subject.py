"""The sequences of a new database on their way into ``makeblastdb``."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from blastyard.domain.errors import CallerMistake
from blastyard.domain.finding import Mistake, Place, Repair, Report
from blastyard.domain.program import Program, SequenceType
from blastyard.domain.query_text import FastaLimits, QueryText
from blastyard.domain.record_scan import RecordScan

_CHUNK: Final = 1 << 18
# A database is as large as its owner's disk allows.
_NO_LIMITS: Final = FastaLimits(max_bytes=1 << 62, max_inflated=1 << 62)
# The alphabet of a database is that of a query of the same kind.
_READER: Final = {SequenceType.NUCL: Program.BLASTN, SequenceType.PROT: Program.BLASTP}
_EMPTY: Final = Mistake(
    "query_empty", "there is no sequence in it", "Give FASTA with at least one sequence."
)
_NO_LETTERS: Final = Repair("empty_record", "a record without a sequence", "it was left out")
_NOT_ASCII: Final = Repair(
    "title_not_ascii", "a title with letters beyond ASCII", "such letters were replaced"
)


class Subjects:
    """FASTA records for a database of ``type``, checked as queries are. Read once.

    What BLAST+ would drop is refused with its place; titles become ASCII, because XML output
    fails, and JSON is not valid, with anything else.
    """

    def __init__(self, fasta: Path, type: SequenceType) -> None:  # noqa: A002
        self.type = type
        self._fasta = fasta
        self._report = _DatabaseReport(str(fasta), type)
        self._scan = RecordScan(_READER[type], 0, self._report)

    @property
    def residues(self) -> int:
        """Letters of all records, once :meth:`blocks` was read to its end."""
        return self._scan.totals.residues

    @property
    def notices(self) -> tuple[str, ...]:
        """What was repaired, each a sentence."""
        return tuple(notice.message for notice in self._report.notices)

    def blocks(self) -> Iterator[bytes]:
        """The text that ``makeblastdb`` is to read.

        Raises ``CallerMistake('database_invalid')``; what was read until then is worthless.
        """
        text = QueryText(_NO_LIMITS, self._report).blocks(self._chunks())
        for block in self._scan.scan(text):
            yield block if block.isascii() else _plain(block)
        if not self.residues:
            self._report.refuse(self._report.place(), _EMPTY)
        empty, odd = self._scan.totals.empty, self._scan.odd_title
        if empty.times:
            self._report.note(self._report.place(empty.line, 1), _NO_LETTERS, empty.times)
        if odd is not None:
            self._report.note(odd, _NOT_ASCII)

    def _chunks(self) -> Iterator[bytes]:
        try:
            with self._fasta.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    yield chunk
        except OSError as error:
            raise CallerMistake(
                "database_invalid",
                f"{self._fasta} cannot be read: {error.strerror}.",
                "Check the name of the file and who may read it.",
            ) from error


class _DatabaseReport(Report):
    """Says of a database what a report says of a query."""

    def __init__(self, source: str, kind: SequenceType) -> None:
        super().__init__(source)
        self._kind = kind

    def refuse(self, place: Place, mistake: Mistake) -> None:
        """Raise :class:`CallerMistake` (``database_invalid``)."""
        what, next_step = mistake.what, mistake.next_step
        if mistake.code == "query_wrong_type":
            nucl, prot = SequenceType.NUCL, SequenceType.PROT
            other = prot if self._kind is nucl else nucl
            what = f"this looks like a {other.noun} sequence, not a {self._kind.noun} sequence"
            next_step = f"If it is one, use --type {other.value}."
        raise Mistake("database_invalid", what, next_step).at(place)


def _plain(text: bytes) -> bytes:
    """Accents go, other letters beyond ASCII become question marks."""
    letters = unicodedata.normalize("NFKD", text.decode("utf-8", "replace"))
    kept = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return kept.encode("ascii", "replace")
