"""BLAST+'s output formats: the ``-outfmt`` strings and the names people use for them.

BLAST+ 2.12 drops a field name it does not know, and one that is repeated, without a word, so
that every later column moves; here both are refused. The lists are those of ``blastn -help``.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from blastyard.domain.errors import CallerMistake
from blastyard.domain.program import Program


@dataclass(frozen=True, slots=True)
class FormatKind:
    """One numeric format: what a person calls it and what kind of file it makes."""

    title: str
    extension: str
    media_type: str


FORMAT_KINDS: Final[Mapping[int, FormatKind]] = {
    0: FormatKind("pairwise", ".txt", "text/plain"),
    1: FormatKind("query-anchored showing identities", ".txt", "text/plain"),
    2: FormatKind("query-anchored without identities", ".txt", "text/plain"),
    3: FormatKind("flat query-anchored showing identities", ".txt", "text/plain"),
    4: FormatKind("flat query-anchored without identities", ".txt", "text/plain"),
    5: FormatKind("BLAST XML", ".xml", "application/xml"),
    6: FormatKind("tabular", ".tsv", "text/tab-separated-values"),
    7: FormatKind("tabular with comment lines", ".tsv", "text/tab-separated-values"),
    8: FormatKind("Seqalign, text ASN.1", ".asn", "text/plain"),
    9: FormatKind("Seqalign, binary ASN.1", ".asnb", "application/octet-stream"),
    10: FormatKind("comma-separated values", ".csv", "text/csv"),
    11: FormatKind("BLAST archive, ASN.1", ".asn", "text/plain"),
    12: FormatKind("Seqalign, JSON", ".json", "application/json"),
    15: FormatKind("single-file BLAST JSON", ".json", "application/json"),
    16: FormatKind("single-file BLAST XML2", ".xml", "application/xml"),
    17: FormatKind("Sequence Alignment/Map", ".sam", "text/x-sam"),
    18: FormatKind("organism report", ".txt", "text/plain"),
}

ALIASES: Final[Mapping[str, int]] = {
    "tsv": 6,
    "tsv-comments": 7,
    "csv": 10,
    "xml": 5,
    "json": 15,
    "sam": 17,
    "pairwise": 0,
}

# Formats whose output is several files beside the one asked for: only one file is published.
_SIDE_FILES: Final[Mapping[int, int]] = {13: 15, 14: 16}

_STANDARD = "qaccver saccver pident length mismatch gapopen qstart qend sstart send evalue bitscore"
STANDARD_FIELDS: Final = tuple(_STANDARD.split())

_ALL = """
    qseqid qgi qacc qaccver qlen sseqid sallseqid sgi sallgi sacc saccver sallacc slen
    qstart qend sstart send qseq sseq evalue bitscore score length pident nident mismatch
    positive gapopen gaps ppos frames qframe sframe btop staxid ssciname scomname sblastname
    sskingdom staxids sscinames scomnames sblastnames sskingdoms stitle salltitles sstrand
    qcovs qcovhsp qcovus
"""
FIELDS: Final = frozenset(_ALL.split())

_TABULAR: Final = frozenset({6, 7, 10})
_SAM_FIELDS: Final = ("SQ", "SR")
_DELIMITERS: Final[Mapping[int, str]] = {6: "\t", 7: "\t", 10: ","}


def _mistake(message: str, next_step: str) -> CallerMistake:
    return CallerMistake("format_unknown", message, next_step)


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """One ``-outfmt`` value, understood.

    ``number`` is BLAST+'s; ``words`` are the field names as given (``std`` kept), or SAM's
    ``SQ`` and ``SR``; ``delim`` is the separator asked for with ``delim=``, or empty.
    """

    number: int
    words: tuple[str, ...] = ()
    delim: str = ""

    @classmethod
    def parse(cls, text: str, program: Program | None = None) -> OutputFormat:
        """Understand an alias (``tsv``) or a BLAST+ string (``6 delim=; qseqid sseqid``).

        An alias may be followed by fields. With a ``program`` the format must be one it has.
        Raises :class:`CallerMistake` (``format_unknown``).
        """
        words = text.split()
        if not words:
            raise _mistake("The output format is empty.", _choices())
        number = _number(words[0])
        delim, words = _delimiter(number, words[1:])
        parsed = cls(number, tuple(words), delim)
        parsed._check_words()
        if program is not None:
            parsed.require(program)
        return parsed

    def require(self, program: Program) -> None:
        """Raise :class:`CallerMistake` (``format_unknown``) unless ``program`` writes this."""
        if self.number == 17 and program is not Program.BLASTN:
            raise _mistake(
                f"{program} does not write SAM (format 17); only blastn does.",
                "Choose tsv, xml, json or pairwise.",
            )
        if "qcovus" in self.words and program is not Program.BLASTN:
            raise _mistake(
                f"The field qcovus exists for blastn only; {program} writes N/A in its place.",
                "Use qcovs, the query coverage per subject.",
            )

    @property
    def argument(self) -> str:
        """The value for BLAST+'s ``-outfmt``, as one argv element."""
        delim = [f"delim={self.delim}"] if self.delim else []
        return " ".join([str(self.number), *delim, *self.words])

    @property
    def name(self) -> str:
        """The alias where the format has one and is not customised, else the ``-outfmt`` value."""
        if not self.words and not self.delim:
            for alias, number in ALIASES.items():
                if number == self.number:
                    return alias
        return self.argument

    @property
    def title(self) -> str:
        """What a person calls the format."""
        return FORMAT_KINDS[self.number].title

    @property
    def extension(self) -> str:
        """A file name's ending, with its dot."""
        return ".txt" if self.delim and self.is_tabular else FORMAT_KINDS[self.number].extension

    @property
    def media_type(self) -> str:
        """The media type of the output."""
        if self.delim and self.is_tabular:
            return "text/plain"
        return FORMAT_KINDS[self.number].media_type

    @property
    def is_tabular(self) -> bool:
        """True for 6, 7 and 10: one line per HSP, columns as in :attr:`fields`."""
        return self.number in _TABULAR

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns in order, ``std`` written out; empty for formats without columns."""
        if not self.is_tabular:
            return ()
        return _expanded(self.words or ("std",))

    @property
    def delimiter(self) -> str:
        """What stands between two columns; empty for formats without columns."""
        return self.delim or _DELIMITERS.get(self.number, "")

    @property
    def counts_by_description(self) -> bool:
        """True for 0 to 4, which are cut with ``-num_descriptions`` and ``-num_alignments``.

        ``-max_target_seqs`` works with every format; for these four it sets both numbers.
        """
        return self.number <= 4

    def _check_words(self) -> None:
        if self.number == 17:
            _check_sam(self.words)
        elif self.is_tabular:
            _check_fields(self.words)
        elif self.words:
            raise _mistake(
                f"Format {self.number} ({self.title}) has no fields to choose.",
                f"Leave out {' '.join(self.words)!r}, or choose 6, 7 or 10.",
            )


def _choices() -> str:
    numbers = ", ".join(str(number) for number in FORMAT_KINDS)
    return f"Use one of {', '.join(ALIASES)}, or a BLAST+ format number: {numbers}."


def _number(word: str) -> int:
    if word in ALIASES:
        return ALIASES[word]
    number = int(word) if word.isascii() and word.isdigit() and len(word) <= 3 else -1
    if number in _SIDE_FILES:
        raise _mistake(
            f"Format {number} writes one file per query beside the result file.",
            f"Use {_SIDE_FILES[number]}, which holds the same in a single file.",
        )
    if number not in FORMAT_KINDS:
        near = difflib.get_close_matches(word.lower(), ALIASES, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise _mistake(f"There is no output format {word!r}.{hint}", _choices())
    return number


def _delimiter(number: int, words: list[str]) -> tuple[str, list[str]]:
    """Split ``delim=`` off; BLAST+ looks for it only right after the number."""
    found = [word for word in words if word.startswith("delim=")]
    if not found:
        return "", words
    delim = found[0].removeprefix("delim=")
    if number not in _TABULAR:
        raise _mistake(f"Format {number} has no delimiter.", "Use delim= with 6, 7 or 10.")
    if len(found) > 1 or words[0] != found[0]:
        raise _mistake(
            "delim= must stand once, right after the format number.",
            f"Write it as '{number} {found[0]} qseqid sseqid'.",
        )
    if not delim:
        raise _mistake("delim= names no delimiter.", f"Write it as '{number} delim=; qseqid'.")
    return delim, words[1:]


def _expanded(words: tuple[str, ...]) -> tuple[str, ...]:
    names: list[str] = []
    for word in words:
        names.extend(STANDARD_FIELDS if word == "std" else (word,))
    return tuple(names)


def _check_fields(words: tuple[str, ...]) -> None:
    for word in words:
        if word != "std" and word not in FIELDS:
            raise _unknown_field(word)
    seen: set[str] = set()
    for name in _expanded(words):
        if name in seen:
            raise _mistake(
                f"The field {name!r} is asked for twice; BLAST+ would write it only once.",
                f"Name it once ('std' stands for {' '.join(STANDARD_FIELDS)}).",
            )
        seen.add(name)


def _unknown_field(word: str) -> CallerMistake:
    near = difflib.get_close_matches(word.lower(), [*sorted(FIELDS), "std"], n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]}?" if near else ""
    step = "Separate the fields with blanks." if "," in word else "'blastn -help' lists the fields."
    return _mistake(
        f"There is no output field {word!r}; BLAST+ would leave the column out.{hint}", step
    )


def _check_sam(words: tuple[str, ...]) -> None:
    for word in words:
        if word not in _SAM_FIELDS:
            raise _mistake(
                f"Format 17 has no field {word!r}; BLAST+ would ignore it.",
                "Use SQ (include the sequence), SR (subject as reference), or neither.",
            )
    if len(set(words)) != len(words):
        raise _mistake("Format 17 names a field twice.", "Name SQ and SR once each.")
