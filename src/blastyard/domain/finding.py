"""What a look at somebody's input brings up: places, notices, findings.

One :class:`Report` receives everything. It either raises at the first mistake, as a submission
needs, or gathers, as somebody needs who only wants to be warned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from blastyard.domain.errors import CallerMistake

# Findings kept of one code; the rest is only counted.
_KEPT: Final = 5


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a text: line and column count from 1, columns in characters. 0 = not known."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        name = "standard input" if self.source == "-" else self.source
        parts = [name]
        if self.line:
            parts.append(f"line {self.line}")
        if self.column:
            parts.append(f"column {self.column}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Mistake:
    """Why an input is refused: a key of the error codes, what is wrong, what to do."""

    code: str
    what: str
    next_step: str

    def at(self, place: Place) -> CallerMistake:
        """The error to raise for a mistake found there."""
        error = CallerMistake(self.code, f"{place}: {self.what}", self.next_step)
        error.position = (place.line, place.column) if place.line else None
        return error


@dataclass(frozen=True, slots=True)
class Repair:
    """What was found in an input and ``done`` about it, so that it can be searched with.

    ``misread``: without it BLAST+ would fail or give wrong results.
    """

    code: str
    what: str
    done: str
    misread: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """Something done or seen that changes no meaning; ``message`` begins with its place."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found in an input that is only looked at.

    ``refused``: a submission with it is refused; otherwise it is repaired or accepted with a
    notice. ``misread``: BLAST+, given these bytes as they are, fails or gives wrong results.
    """

    code: str
    message: str
    next_step: str
    refused: bool
    misread: bool


@dataclass(slots=True)
class _Tally:
    place: Place
    repair: Repair
    times: int


@dataclass(slots=True)
class Report:
    """Collects what is found; ``raising`` decides what a mistake does."""

    source: str
    raising: bool = True
    _tallies: dict[str, _Tally] = field(default_factory=dict)
    _findings: list[Finding] = field(default_factory=list)
    _refusals: dict[str, int] = field(default_factory=dict)

    def place(self, line: int = 0, column: int = 0) -> Place:
        """A place in this report's source."""
        return Place(self.source, line, column)

    def refuse(self, place: Place, mistake: Mistake) -> None:
        """Raise :class:`CallerMistake`, or remember the mistake when only reporting."""
        if self.raising:
            raise mistake.at(place)
        code = mistake.code
        times = self._refusals[code] = self._refusals.get(code, 0) + 1
        if times <= _KEPT:
            message = f"{place}: {mistake.what}"
            self._findings.append(Finding(code, message, mistake.next_step, True, True))

    def note(self, place: Place, repair: Repair, times: int = 1) -> None:
        """Something was repaired or accepted, ``times`` over."""
        tally = self._tallies.get(repair.code)
        if tally is None:
            self._tallies[repair.code] = _Tally(place, repair, times)
        else:
            tally.times += times

    def seen(self, code: str) -> int:
        """How often :meth:`note` was called with ``code``."""
        tally = self._tallies.get(code)
        return tally.times if tally else 0

    @property
    def refused(self) -> bool:
        """Whether a mistake was reported."""
        return bool(self._refusals)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What was repaired or accepted, one notice per kind, at its first place."""
        return tuple(
            Notice(code, f"{tally.place}: {tally.repair.what}{_times(tally)}; {tally.repair.done}.")
            for code, tally in self._tallies.items()
        )

    @property
    def findings(self) -> list[Finding]:
        """Mistakes first, then what a submission would repair or accept."""
        noted = [
            Finding(
                code,
                f"{tally.place}: {tally.repair.what}{_times(tally)}.",
                f"In a submission: {tally.repair.done}.",
                refused=False,
                misread=tally.repair.misread,
            )
            for code, tally in self._tallies.items()
        ]
        return [*self._findings, *noted]


def _times(tally: _Tally) -> str:
    return f" (and {tally.times - 1:,} more)" if tally.times > 1 else ""
