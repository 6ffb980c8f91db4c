"""What a rule is: it looks at each change with the scene before and after, and accuses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from blastyard.testing.history import Violation
from blastyard.testing.recorded.cast import Cast
from blastyard.testing.recorded.deed import Change
from blastyard.testing.recorded.scene import JobSight, LeaseSight, LedgerSight, Scene


@dataclass(frozen=True, slots=True)
class Terms:
    """The figures that a recording is judged by, in seconds."""

    takeover: float = 30.0
    """A blastyard may succeed a blastyard whose Lease stood unchanged for so long."""
    lapse: float = 45.0
    """A submitter without a beat for so long may be overtaken in the queue."""
    peers_ceiling: int = 3
    skew: float = 30.0
    """Added by everybody before a foreign holder's Lease has expired."""
    peers_ahead: float = 0.0
    """How far the clock of a foreign program may be ahead: it takes over earlier by that."""
    tolerance: float = 1.0
    """Between the server's and the recorder's view of when something happened."""


@dataclass(slots=True)
class Court:
    """What all rules share while a recording is read."""

    scene: Scene
    cast: Cast
    terms: Terms = Terms()
    violations: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def accuse(self, rule: str, detail: str, at: float) -> None:
        """Something that must not happen has happened."""
        self.violations.append(Violation(rule, detail, at))

    def search_of(self, job: JobSight) -> str:
        """The search that a Job belongs to."""
        held = self.scene.ledger.searches() if self.scene.ledger else {}
        named = job.notes.get("blastyard/id")
        return named or held.get(job.slot) or self.cast.search_of.get(job.slot) or job.slot

    def is_rude(self, job: JobSight) -> bool:
        """Whether nobody who passes Gate A is known to have made it."""
        search = self.search_of(job)
        if job.slot in self.cast.rude or search in self.cast.rude:
            return True
        held = self.scene.ledger is not None and search in self.scene.ledger.holds
        told = search in self.cast.holders_of or "blastyard/holder" in job.notes
        return not held and not told


@dataclass(frozen=True, slots=True)
class Before:
    """What stood before the change; the scene has what stands after it."""

    lease: LeaseSight
    ledger: LedgerSight | None
    job: JobSight | None
    """The Job that the change is about, if it was there."""


class Rule(Protocol):
    """Something that must hold."""

    def saw(self, change: Change, before: Before) -> None:
        """One change, after it has happened."""
        ...

    def closed(self) -> None:
        """The recording has ended."""
        ...
