"""The letters BLAST+ reads, and which kind of sequence a run of letters is.

Measured with BLAST+ 2.12: one record per byte value, the byte placed inside a known sequence.
Letters named here keep their place; every other byte but a blank is dropped, so that all later
coordinates move (``;`` even drops the rest of its line).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from blastyard.domain.program import SequenceType


def _both_cases(upper: bytes) -> bytes:
    return upper + upper.lower()


BLANKS: Final = b" \t\x0b\x0c"

# The four bases, uracil and the unknown base: nearly all of a real nucleotide sequence.
CORE: Final = _both_cases(b"ACGTUN")


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The letters of one kind of sequence, both cases; ``vague`` ones can start no match."""

    letters: bytes
    vague: bytes


NUCLEOTIDE: Final = Alphabet(
    letters=_both_cases(b"ABCDGHKMNRSTUVWY"),
    vague=_both_cases(b"BDHKMNRSVWY"),
)
PROTEIN: Final = Alphabet(
    letters=_both_cases(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ") + b"*",
    vague=_both_cases(b"XO") + b"*",
)


def alphabet_of(kind: SequenceType) -> Alphabet:
    """The alphabet of a query of that kind."""
    return NUCLEOTIDE if kind is SequenceType.NUCL else PROTEIN


# A record shorter than this is never judged by its composition alone.
JUDGED_LENGTH: Final = 25
# None of the 8.8 million stretches of JUDGED_LENGTH letters in 20,500 real proteins reaches this
# share of CORE letters with all four bases present; nucleotide records do (all but the shortest
# of 14,372, which stay at 0.96 and more). With three bases, 67 stretches would be mistaken.
NUCLEOTIDE_SHARE: Final = 0.95
# Below this share of CORE letters a record of legal IUPAC letters is a protein.
PROTEIN_SHARE: Final = 0.5
# With letters no nucleotide has, a record above this share is a nucleotide with typing errors.
MISTYPED_SHARE: Final = 0.8


def bases_in(letters: bytes) -> int:
    """Which of A, C, G, T/U occur, as four bits."""
    return (
        (b"A" in letters or b"a" in letters)
        | (b"C" in letters or b"c" in letters) << 1
        | (b"G" in letters or b"g" in letters) << 2
        | (b"T" in letters or b"t" in letters or b"U" in letters or b"u" in letters) << 3
    )


def is_nucleotide(letters: int, core: int, bases: int) -> bool:
    """Whether a record given to a protein program is a nucleotide sequence.

    ``letters`` counts the record, ``core`` those of :data:`CORE`, ``bases`` is of
    :func:`bases_in`. Peptides of A, C, G and T alone stay peptides while they are short.
    """
    return (
        letters >= JUDGED_LENGTH and core >= NUCLEOTIDE_SHARE * letters and bases.bit_count() == 4
    )


def is_protein(letters: int, core: int) -> bool:
    """Whether a record of legal letters given to a nucleotide program is a protein."""
    return letters >= JUDGED_LENGTH and core < PROTEIN_SHARE * letters
