"""What the records of a query come to."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Record:
    """One record while it is read; ``line`` is that of its title.

    ``core`` counts the letters of :data:`blastyard.domain.alphabet.CORE`, ``bases`` is of
    ``bases_in``, ``sure`` tells that a letter was there that can begin a match.
    """

    line: int
    letters: int = 0
    core: int = 0
    bases: int = 0
    sure: bool = False


@dataclass(slots=True)
class Weak:
    """Records of one kind: how many, and the line of the first (0: there is none)."""

    times: int = 0
    line: int = 0

    def add(self, line: int) -> None:
        """One more, at ``line``."""
        self.line = self.line or line
        self.times += 1


@dataclass(slots=True)
class Totals:
    """Counts over all records; ``least`` letters are needed to find anything."""

    least: int
    records: int = 0
    residues: int = 0
    longest: int = 0
    shortest: int = 0
    """Of the records that are not empty; 0 = there is none."""
    shortest_line: int = 0
    strong: int = 0
    """Records that can have hits; the others are empty, short or vague."""
    empty: Weak = field(default_factory=Weak)
    short: Weak = field(default_factory=Weak)
    vague: Weak = field(default_factory=Weak)

    def add(self, record: Record) -> None:
        """Count a record that was read to its end."""
        letters = record.letters
        self.records += 1
        self.residues += letters
        self.longest = max(self.longest, letters)
        if letters and (letters < self.shortest or not self.shortest):
            self.shortest, self.shortest_line = letters, record.line
        if not letters:
            self.empty.add(record.line)
        elif letters < self.least:
            self.short.add(record.line)
        elif not record.sure:
            self.vague.add(record.line)
        else:
            self.strong += 1
