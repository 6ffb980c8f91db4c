"""How much memory a search needs at least, whatever it finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from blastyard.domain.program import Program

BASE_BYTES: Final = 30 << 20

BYTES_PER_RESIDUE: Final[Mapping[Program, int]] = {
    Program.BLASTN: 5,
    Program.BLASTX: 25,
    Program.TBLASTX: 220,
    Program.BLASTP: 10,
    Program.TBLASTN: 10,
}
"""Peak resident bytes per residue of the query, rounded down: measured with BLAST+ 2.12.0 on single
random queries of 0.1-20 million residues against databases too small to matter."""


def least_memory(program: Program, longest: int) -> int:
    """Bytes that BLAST+ needs for a query of ``longest`` residues before it finds anything.

    A lower bound: hits, traceback and the database's pages come on top. It is only good for saying
    that a search can certainly not fit.
    """
    return BASE_BYTES + longest * BYTES_PER_RESIDUE[program]
