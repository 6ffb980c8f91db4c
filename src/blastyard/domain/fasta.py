"""The query on its way in: checked, repaired where that keeps its meaning, and counted.

:class:`FastaCheck` streams; memory stays at a few MB plus 8 to 16 bytes per record (at most
32 MB), whatever the size of the query. Policy, where BLAST+ leaves room:

* What BLAST+ drops from a sequence is refused with its position: dropping moves coordinates.
* A text without a first ``>`` is refused: a bare word may be a sequence or a name (``CAT``,
  ``INSULIN``), and sequences below each other would become one.
* Records that cannot have hits (empty, too short for the word size, no informative letter) are
  kept with a notice as long as another record can, because BLAST+ then reports them rightly;
  a query of nothing else is refused.
* Clean input with LF line ends passes byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from blastyard.domain.finding import Finding, Mistake, Notice, Place, Repair, Report
from blastyard.domain.outfmt import OutputFormat
from blastyard.domain.program import Program
from blastyard.domain.query_text import FastaLimits, QueryText
from blastyard.domain.record_scan import RecordScan

__all__ = [
    "FastaCheck",
    "FastaLimits",
    "Finding",
    "Notice",
    "QuerySummary",
    "least_letters",
    "require_writable_titles",
]

_HITLESS: Final = "kept, but it cannot have hits"
_EQUAL: Final = "kept, but results of equal ids cannot be told apart"

# The span of dc-megablast's default template: no shorter query can match it.
_TEMPLATE_LENGTH: Final = 18

# Formats that break on a title with a letter beyond ASCII, measured with BLAST+ 2.12: XML ends
# with an error and no output, JSON and XML2 lose letters or stop being valid, the archive
# replaces the letters. The others write the bytes of the title unchanged or no title at all.
_ASCII_FORMATS: Final = {5: "BLAST XML", 11: "the BLAST archive", 15: "JSON", 16: "XML2"}


@dataclass(frozen=True, slots=True)
class QuerySummary:
    """What a query came to. Sizes in bytes as BLAST+ will read them, lengths in letters."""

    records: int
    residues: int
    longest: int
    shortest: int
    """Length of the shortest record that is not empty."""
    shortest_line: int
    size: int
    sha256: str
    """Of the repaired bytes, in hexadecimal."""
    notices: tuple[Notice, ...] = ()
    repeated_ids: tuple[str, ...] = ()
    """The first few ids that occur more than once."""
    odd_title: Place | None = None
    """The first letter beyond ASCII in a title."""


class FastaCheck:
    """Check one query for ``program`` and ``task``; use an instance once.

    ``source`` names the file in messages (``-`` is standard input); ``word_size`` is that of the
    options where they set one.
    """

    def __init__(
        self,
        program: Program,
        *,
        task: str | None = None,
        source: str = "-",
        word_size: int | None = None,
        limits: FastaLimits | None = None,
    ) -> None:
        self._program = program
        self._task = task or program.default_task
        self._least = least_letters(program, self._task, word_size)
        self._source = source
        self._limits = limits or FastaLimits()
        self._summary: QuerySummary | None = None

    def repaired(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The bytes BLAST+ is to read, in pieces.

        Raises :class:`CallerMistake` (a ``query_…`` code) while it runs or at its end; what was
        taken until then is worthless. Afterwards :attr:`summary` is there.
        """
        report = Report(self._source)
        scan = RecordScan(self._program, self._least, report)
        digest = hashlib.sha256()
        size = 0
        for piece in scan.scan(QueryText(self._limits, report).blocks(chunks)):
            digest.update(piece)
            size += len(piece)
            yield piece
        self._judge(scan, report)
        totals = scan.totals
        self._summary = QuerySummary(
            records=totals.records,
            residues=totals.residues,
            longest=totals.longest,
            shortest=totals.shortest,
            shortest_line=totals.shortest_line,
            size=size,
            sha256=digest.hexdigest(),
            notices=report.notices,
            repeated_ids=tuple(name.decode("utf-8", "replace") for name in scan.repeated),
            odd_title=scan.odd_title,
        )

    @property
    def summary(self) -> QuerySummary:
        """What the query came to; only after :meth:`repaired` was read to its end."""
        if self._summary is None:
            raise RuntimeError("the query has not been read to its end")
        return self._summary

    def findings(
        self, chunks: Iterable[bytes], outfmt: OutputFormat | None = None
    ) -> list[Finding]:
        """Look only, change nothing: everything :meth:`repaired` would refuse or repair.

        At most five mistakes of a kind are listed. With ``outfmt``, titles it breaks as well.
        """
        report = Report(self._source, raising=False)
        scan = RecordScan(self._program, self._least, report)
        for _ in scan.scan(QueryText(self._limits, report).blocks(chunks)):
            pass
        if not report.refused:
            self._judge(scan, report)
        if outfmt is not None and scan.odd_title is not None and outfmt.number in _ASCII_FORMATS:
            report.refuse(scan.odd_title, _title_mistake(outfmt))
        return report.findings

    def _judge(self, scan: RecordScan, report: Report) -> None:
        """What only the whole query shows."""
        if not scan.totals.strong:
            self._refuse_weak(scan, report)
            return
        short = f"a record of fewer than {self._least} letters"
        names = ", ".join(name.decode("utf-8", "replace") for name in scan.repeated)
        for weak, code, what, done in (
            (scan.totals.empty, "empty_record", "a record without a sequence", _HITLESS),
            (scan.totals.short, "short_record", short, _HITLESS),
            (scan.totals.vague, "vague_record", "a record of unknown letters only", _HITLESS),
            (scan.repeats, "repeated_id", f"an id that was there before ({names})", _EQUAL),
        ):
            if weak.times:
                report.note(report.place(weak.line, 1), Repair(code, what, done), weak.times)
        if scan.odd_title is not None:
            what = "a title with letters beyond ASCII"
            report.note(scan.odd_title, Repair("title_not_ascii", what, "kept as it is"))

    def _refuse_weak(self, scan: RecordScan, report: Report) -> None:
        if scan.totals.short.times:
            needed = f"{self._program} with task {self._task} needs {self._least}"
            what = f"no record is long enough: {needed} letters"
            place = report.place(scan.totals.short.line, 1)
            report.refuse(place, Mistake("query_too_short", what, self._short_advice()))
        elif scan.totals.vague.times:
            letter = self._program.query_type.unknown_letter
            what = f"no record has an informative letter (only {letter} or the like)"
            place = report.place(scan.totals.vague.line, 1)
            report.refuse(
                place, Mistake("query_ambiguous", what, "Give a sequence with known letters.")
            )
        else:
            what = "there is no sequence in it" if scan.totals.empty.times else "it is empty"
            place = report.place(scan.totals.empty.line)
            report.refuse(
                place, Mistake("query_empty", what, "Give at least one record with a sequence.")
            )

    def _short_advice(self) -> str:
        short = self._program.short_task
        if short and short != self._task:
            least = least_letters(self._program, short, None)
            return f"Use -task {short}, which finds matches from {least} letters on."
        return "Give a longer sequence, or a smaller -word_size."


def least_letters(program: Program, task: str, word_size: int | None) -> int:
    """Letters below which a query of ``program`` and ``task`` holds no word to search with."""
    word = word_size or program.word_size(task)
    least = word * program.letters_per_word_letter
    return max(least, _TEMPLATE_LENGTH) if task == "dc-megablast" else least


def require_writable_titles(summary: QuerySummary, outfmt: OutputFormat) -> None:
    """Raise :class:`CallerMistake` (``query_title``) where ``outfmt`` would break on a title."""
    if summary.odd_title is not None and outfmt.number in _ASCII_FORMATS:
        raise _title_mistake(outfmt).at(summary.odd_title)


def _title_mistake(outfmt: OutputFormat) -> Mistake:
    what = (
        "a title has a letter beyond ASCII (an accent, a Greek letter, a long dash), and BLAST+ "
        f"breaks {_ASCII_FORMATS[outfmt.number]} with it"
    )
    next_step = "Choose tsv, csv or pairwise, or write the title in plain letters."
    return Mistake("query_title", what, next_step)
