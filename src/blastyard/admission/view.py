"""What a process is told when it looks at admission: for its worker, and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from blastyard.admission.census import Census
from blastyard.admission.lease import Free, Held
from blastyard.admission.ledger import Ledger
from blastyard.admission.order import Place
from blastyard.admission.outcome import Reason, Waiting
from blastyard.admission.roster import Presence


@dataclass(frozen=True, slots=True)
class Due:
    """Which of one's own searches may claim now, and when asking again could help by itself."""

    searches: tuple[str, ...]
    waiting: tuple[str, ...]
    """All of one's own that have a ticket."""
    until: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class View:
    """Everything an operator may want to see, of one moment."""

    ledger: Ledger
    gate: Free | Held
    queue: tuple[Place, ...]
    submitters: Mapping[str, Presence]
    census: Census
    now: datetime


def slot_taken(held: Free | Held, position: int | None) -> Waiting:
    """What to tell a search that finds somebody inside Gate A."""
    if isinstance(held, Free):
        return Waiting(Reason.SUBMIT_SLOT, "another submission was quicker", position)
    detail = f"{held.holder} is submitting"
    if held.note:
        detail += f"; {held.note}"
    return Waiting(Reason.SUBMIT_SLOT, detail, position, held.until)
