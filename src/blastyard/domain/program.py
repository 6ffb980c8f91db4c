"""The BLAST+ programs and what each of them compares.

Tasks are those of ``<program> -help`` of BLAST+ 2.12; a task is a named set of defaults.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from blastyard.domain.errors import CallerMistake


class SequenceType(StrEnum):
    """What a sequence or a database is made of; the values are those of ``makeblastdb -dbtype``."""

    NUCL = "nucl"
    PROT = "prot"

    @property
    def noun(self) -> str:
        """The word a person reads: ``nucleotide`` or ``protein``."""
        return "nucleotide" if self is SequenceType.NUCL else "protein"

    @property
    def unknown_letter(self) -> str:
        """The letter that stands for any letter."""
        return "N" if self is SequenceType.NUCL else "X"


class Program(StrEnum):
    """A BLAST+ search program; the value is the name of its executable."""

    BLASTN = "blastn"
    BLASTP = "blastp"
    BLASTX = "blastx"
    TBLASTN = "tblastn"
    TBLASTX = "tblastx"

    @property
    def query_type(self) -> SequenceType:
        """What the query must be."""
        return SequenceType.PROT if self in _PROTEIN_QUERY else SequenceType.NUCL

    @property
    def database_type(self) -> SequenceType:
        """What the database must be."""
        return SequenceType.PROT if self in _PROTEIN_DATABASE else SequenceType.NUCL

    @property
    def tasks(self) -> tuple[str, ...]:
        """The values of ``-task``; the first one is the default. Empty: there is no ``-task``."""
        return tuple(_WORD_SIZES[self]) if self is not Program.TBLASTX else ()

    @property
    def default_task(self) -> str:
        """The task that runs when none is named; the program's own name where it has no tasks."""
        return next(iter(_WORD_SIZES[self]))

    def word_size(self, task: str | None = None) -> int:
        """The default word size of ``task``, in letters of what is compared (bases, residues)."""
        return _WORD_SIZES[self][task or self.default_task]

    @property
    def letters_per_word_letter(self) -> int:
        """Query letters behind one letter of a word: 3 where the query is translated."""
        return 3 if self in (Program.BLASTX, Program.TBLASTX) else 1

    @property
    def short_task(self) -> str | None:
        """The task made for short queries, if the program has one."""
        return _SHORT_TASKS.get(self)

    @classmethod
    def parse(cls, text: str) -> Program:
        """The program of that exact name.

        Raises :class:`CallerMistake` (``program_unknown``).
        """
        try:
            return cls(text)
        except ValueError:
            names = [program.value for program in cls]
            near = difflib.get_close_matches(text.strip().lower(), names, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise CallerMistake(
                "program_unknown",
                f"There is no program {text!r}.{hint}",
                f"Use one of {', '.join(names)}.",
            ) from None


_PROTEIN_QUERY: Final = frozenset({Program.BLASTP, Program.TBLASTN})
_PROTEIN_DATABASE: Final = frozenset({Program.BLASTP, Program.BLASTX})

_SHORT_TASKS: Final[Mapping[Program, str]] = {
    Program.BLASTN: "blastn-short",
    Program.BLASTP: "blastp-short",
}

# Task -> default word size (BLAST Command Line Applications User Manual, appendix C).
_WORD_SIZES: Final[Mapping[Program, Mapping[str, int]]] = {
    Program.BLASTN: {
        "megablast": 28,
        "blastn": 11,
        "blastn-short": 7,
        "dc-megablast": 11,
        "rmblastn": 11,
    },
    Program.BLASTP: {"blastp": 3, "blastp-fast": 6, "blastp-short": 2},
    Program.BLASTX: {"blastx": 3, "blastx-fast": 6},
    Program.TBLASTN: {"tblastn": 3, "tblastn-fast": 6},
    Program.TBLASTX: {"tblastx": 3},
}
