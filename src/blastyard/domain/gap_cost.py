"""Which gap costs, rewards and penalties BLAST+ has statistics for.

Read from the error messages of BLAST+ 2.12, which lists what it supports. Proteins: pairs of
(existence, extension) per matrix. Nucleotides: pairs per (reward, penalty) in lowest terms;
multiples of both scale the gap costs, and anything at least as strict as the last pair is
supported too.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Final

Pair = tuple[int, int]

_NO_GAPS: Final[Pair] = (32767, 32767)

PROTEIN_GAPS: Final[Mapping[str, tuple[Pair, ...]]] = {
    "BLOSUM45": (
        *((cost, 3) for cost in range(10, 14)),
        *((cost, 2) for cost in range(12, 17)),
        *((cost, 1) for cost in range(16, 20)),
    ),
    "BLOSUM50": (
        *((cost, 3) for cost in range(9, 14)),
        *((cost, 2) for cost in range(12, 17)),
        *((cost, 1) for cost in range(15, 20)),
    ),
    "BLOSUM62": (
        *((cost, 2) for cost in range(6, 12)),
        *((cost, 1) for cost in range(9, 14)),
    ),
    "BLOSUM80": (
        *((cost, 2) for cost in (6, 7, 8, 9, 13, 25)),
        *((cost, 1) for cost in (9, 10, 11)),
    ),
    "BLOSUM90": (
        *((cost, 2) for cost in (6, 7, 8, 9)),
        *((cost, 1) for cost in (9, 10, 11)),
    ),
    "PAM30": (
        *((cost, 2) for cost in (5, 6, 7, 14)),
        *((cost, 1) for cost in (8, 9, 10, 14)),
        *((cost, 3) for cost in (13, 15)),
    ),
    "PAM70": (
        *((cost, 2) for cost in (6, 7, 8, 11)),
        *((cost, 1) for cost in (9, 10, 11)),
        (12, 3),
    ),
    "PAM250": (
        *((cost, 3) for cost in range(11, 16)),
        *((cost, 2) for cost in range(13, 18)),
        *((cost, 1) for cost in range(17, 22)),
    ),
    "IDENTITY": ((15, 2),),
}

PROTEIN_DEFAULTS: Final[Mapping[str, Pair]] = {
    "BLOSUM45": (14, 2),
    "BLOSUM50": (13, 2),
    "BLOSUM62": (11, 1),
    "BLOSUM80": (10, 1),
    "BLOSUM90": (10, 1),
    "PAM30": (9, 1),
    "PAM70": (10, 1),
    "PAM250": (14, 2),
    "IDENTITY": (15, 2),
}

# The last pair is the one from which on everything is supported.
NUCLEOTIDE_GAPS: Final[Mapping[Pair, tuple[Pair, ...]]] = {
    (1, -1): ((3, 2), (2, 2), (1, 2), (0, 2), (4, 1), (3, 1), (2, 1), (4, 2)),
    (1, -2): ((1, 2), (0, 2), (3, 1), (2, 1), (1, 1), (2, 2)),
    (1, -3): ((1, 2), (0, 2), (2, 1), (1, 1), (2, 2)),
    (1, -4): ((1, 2), (0, 2), (2, 1), (1, 1), (2, 2)),
    (1, -5): ((3, 3),),
    (2, -3): ((4, 4), (2, 4), (0, 4), (3, 3), (6, 2), (5, 2), (4, 2), (2, 2), (6, 4)),
    (2, -5): ((2, 4), (0, 4), (4, 2), (2, 2), (4, 4)),
    (2, -7): ((2, 4), (0, 4), (4, 2), (2, 2), (4, 4)),
    (3, -2): ((5, 5),),
    (3, -4): ((5, 3), (4, 3), (6, 2), (5, 2), (4, 2), (6, 3)),
    (4, -5): ((6, 5), (5, 5), (4, 5), (3, 5), (12, 8)),
    (5, -4): ((10, 6), (8, 6), (25, 10)),
}

# Pairs for which megablast's greedy extension may go without gap costs (0, 0).
_LINEAR: Final = frozenset({(1, -2), (1, -3), (1, -4), (1, -5), (2, -3), (2, -5), (2, -7), (4, -5)})


def is_protein_gap(matrix: str, gap: Pair) -> bool:
    """Whether ``matrix`` (a name in capitals) has statistics for ``gap``."""
    return gap == _NO_GAPS or gap in PROTEIN_GAPS[matrix]


def lowest_terms(reward: int, penalty: int) -> tuple[Pair, int]:
    """The pair divided by its greatest common divisor, and that divisor."""
    divisor = gcd(reward, penalty)
    return (reward // divisor, penalty // divisor), divisor


def is_nucleotide_score(reward: int, penalty: int) -> bool:
    """Whether BLAST+ has statistics for the pair; for some others it crashes."""
    return lowest_terms(reward, penalty)[0] in NUCLEOTIDE_GAPS


def is_nucleotide_gap(score: Pair, gap: Pair, *, greedy: bool) -> bool:
    """Whether the supported ``score`` (reward, penalty) goes with ``gap``."""
    lowest, scale = lowest_terms(*score)
    if gap == (0, 0):
        return greedy and lowest in _LINEAR
    supported = [(scale * a, scale * b) for a, b in NUCLEOTIDE_GAPS[lowest]]
    least_open, least_extend = supported[-1]
    return gap in supported or (gap[0] >= least_open and gap[1] >= least_extend)


def nucleotide_gaps(score: Pair) -> list[Pair]:
    """The listed gap costs of a supported ``score``, to show to a person."""
    lowest, scale = lowest_terms(*score)
    return [(scale * a, scale * b) for a, b in NUCLEOTIDE_GAPS[lowest]]


# Task -> (reward, penalty) and (existence, extension) where none are given.
NUCLEOTIDE_DEFAULTS: Final[Mapping[str, tuple[Pair, Pair]]] = {
    "megablast": ((1, -2), (0, 0)),
    "blastn": ((2, -3), (5, 2)),
    "blastn-short": ((1, -3), (5, 2)),
    "dc-megablast": ((2, -3), (5, 2)),
    "rmblastn": ((1, -3), (5, 2)),
}
