"""What the stays inside Gate A work with, and what one hands on to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from blastyard.admission.census import Census
from blastyard.admission.hold import FenceRule
from blastyard.admission.ledger import Ledger
from blastyard.admission.markers import Marking
from blastyard.admission.observer import Observer
from blastyard.admission.outlook import Outlook
from blastyard.admission.record import Record


class LeaseLost(Exception):
    """Somebody else may be inside Gate A: touch nothing, end what was started."""


@dataclass(frozen=True, slots=True)
class Inside:
    """What a stay works with."""

    record: Record
    outlook: Outlook
    marking: Marking
    shared: bool
    """Programs that are no blastyards use the same gates."""
    observer: Observer


@dataclass(slots=True)
class Carried:
    """What goes on from search to search while Gate A is passed on.

    Nobody else can submit meanwhile, so the ``census`` of the first search still shows all that may
    run; what has ended since only makes room.
    """

    until: float
    """In monotonic seconds: nobody keeps Gate A for longer."""
    census: Census | None = None
    riding: list[FenceRule] = field(default_factory=list)
    """What the next swap is to write as well."""

    def ridden(self, ledger: Ledger, now: datetime) -> Ledger:
        """The ledger with all that rides; the same one when that is nothing."""
        for rule in self.riding:
            outcome = rule(ledger, now)
            ledger = outcome if isinstance(outcome, Ledger) else ledger
        return ledger

    def rule(self, ledger: Ledger, now: datetime) -> Ledger | None:
        """The same as a rule: ``None`` when there is nothing to write."""
        after = self.ridden(ledger, now)
        return None if after is ledger else after
