"""What can be wrong with a query, in words a biologist understands."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

from blastyard.domain.finding import Mistake
from blastyard.domain.program import Program, SequenceType

# One word with a digit or a bar: BLAST+ looks such a first line up at NCBI.
_ACCESSION: Final = re.compile(rb"(?=[^\n]*[0-9|])[A-Za-z0-9_.|:-]{1,64}")

_FASTQ: Final = Mistake(
    "query_not_fasta",
    "these are FASTQ reads, not FASTA",
    "Convert them: sed -n '1~4s/^@/>/p;2~4p' reads.fastq > reads.fa",
)
_UNTITLED: Final = Mistake(
    "query_not_fasta",
    "the sequence has no title line",
    "Put a line such as '>my_sequence' above it.",
)
_NO_FASTA: Final = Mistake(
    "query_not_fasta",
    "this is not FASTA: it does not begin with '>'",
    "Begin each sequence with a line of '>' and its name.",
)
NUL_IN_TITLE: Final = Mistake(
    "query_encoding",
    "a NUL byte in a title: this is not plain text",
    "Save the file as plain text in UTF-8.",
)
LONG_TITLE: Final = Mistake(
    "query_not_fasta",
    "a title line of more than a million letters",
    "Check the line ends of the file.",
)

# A byte BLAST+ would drop: what a person calls it, and how to get rid of it.
_STRAYS: Final[Mapping[str, tuple[str, str]]] = {
    "\x00": ("a NUL byte", "The file is not plain text; save it as text in UTF-8."),
    "\u00a0": (
        "a no-break space",
        "It comes from a web page or a word processor: retype the blank.",
    ),
    "-": ("'-' (a gap)", "Take the gaps of the alignment out: sed '/^>/!s/-//g'"),
    ".": ("'.' (a gap)", "Take the dots out, or write the letters they stand for."),
    "*": ("'*' (a stop)", "Take it out, or use blastp or tblastn if this is a protein."),
    ">": ("'>' inside a line", "Start a new line before the '>' of the next record."),
    ";": ("';', which hides the rest of its line", "Give the comment a line of its own."),
    "X": ("'X', which is no nucleotide", "Write N for an unknown or masked base."),
}


def headless(first_line: bytes, *, legal: bool) -> Mistake:
    """The text begins with ``first_line`` instead of a title; ``legal``: it may be sequence."""
    if first_line.startswith(b"@"):
        return _FASTQ
    if _ACCESSION.fullmatch(first_line):
        return Mistake(
            "query_accession",
            f"{first_line.decode()!r} is a name, not a sequence",
            "Download the sequence as FASTA; blastyard never fetches one over the network.",
        )
    return _UNTITLED if legal else _NO_FASTA


def stray(character: str, program: Program) -> Mistake:
    """``program`` does not read this ``character`` of a sequence."""
    noun, advice = _STRAYS.get(character.upper(), ("", ""))
    if not noun:
        advice = "Take it out, or write the letter that was meant."
        if character.isascii() and character.isprintable():
            noun = f"{character!r}, which is no {program.query_type.noun} letter"
        else:
            name = unicodedata.name(character, "a control character").lower()
            noun = f"U+{ord(character):04X} ({name})"
    what = f"{noun}; BLAST+ would drop it and shift every later coordinate"
    return Mistake("query_letters", what, advice)


def wrong_type(program: Program, reason: str = "") -> Mistake:
    """The record is of the kind ``program`` does not compare."""
    if program.query_type is SequenceType.PROT:
        right, wrong = "protein", "nucleotide"
        next_step = "Use blastn (nucleotide database) or blastx (protein database)."
    else:
        right, wrong = "nucleotide", "protein"
        next_step = "Use blastp (protein database) or tblastn (nucleotide database)."
    what = f"{program} needs {right} sequences, but this looks like a {wrong} sequence{reason}"
    return Mistake("query_wrong_type", what, next_step)
