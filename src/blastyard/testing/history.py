"""What happened in a simulated run, and the first thing in it that must not happen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold. ``rule`` is a stable name, ``detail`` what was seen."""

    rule: str
    detail: str
    at: float

    def __str__(self) -> str:
        return f"{self.rule} at {self.at:.3f}: {self.detail}"


class History:
    """Entries of (virtual seconds, who, what). Only the first violation is kept."""

    def __init__(self) -> None:
        self.entries: list[tuple[float, str, str]] = []
        self.violation: Violation | None = None

    def note(self, at: float, who: str, what: str) -> None:
        """Something happened."""
        self.entries.append((at, who, what))

    def accuse(self, rule: str, detail: str, at: float) -> None:
        """An invariant does not hold."""
        if self.violation is None:
            self.violation = Violation(rule, detail, at)
            self.note(at, "VIOLATION", f"{rule}: {detail}")

    def lines(self, last: int | None = None) -> list[str]:
        """The entries, or the last of them, for people."""
        chosen = self.entries if last is None else self.entries[-last:]
        return [f"{at:10.3f}  {who:<14}  {what}" for at, who, what in chosen]
