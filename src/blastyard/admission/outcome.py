"""What asking for admission can come to. Denial is a value; *cannot tell* is an exception."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from blastyard.admission.ledger import Fence
from blastyard.domain.job import Phase


class Reason(StrEnum):
    """Why a search waits; each belongs to one phase."""

    CAPACITY = "capacity"
    DRAINED = "drained"
    SUBMIT_SLOT = "submit_slot"
    TURN = "turn"
    USER_CAP = "user_cap"
    PARKED = "parked"
    BLOCKED = "blocked"
    SUBMITTER = "submitter"
    RESTORING = "restoring"
    UNPUBLISHED = "unpublished"
    COURTESY = "courtesy"
    PAUSE = "pause"

    @property
    def phase(self) -> Phase:
        """The word operators grep for."""
        return _PHASES.get(self, Phase.WAITING_FOR_CAPACITY)


_PHASES = {
    Reason.SUBMIT_SLOT: Phase.WAITING_FOR_SUBMIT_SLOT,
    Reason.TURN: Phase.WAITING_FOR_SUBMIT_SLOT,
    Reason.RESTORING: Phase.WAITING_FOR_SUBMIT_SLOT,
    Reason.PAUSE: Phase.WAITING_FOR_SUBMIT_SLOT,
    Reason.PARKED: Phase.PARKED,
    Reason.BLOCKED: Phase.WAITING_FOR_DATABASE,
    Reason.SUBMITTER: Phase.WAITING_FOR_RUNNER,
}


@dataclass(frozen=True, slots=True)
class Granted:
    """The search has a run slot; its submission may begin."""

    fence: Fence


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not now. ``position`` counts from 1; ``until`` is when asking again could help by itself."""

    reason: Reason
    detail: str
    position: int | None = None
    until: datetime | None = None

    @property
    def phase(self) -> Phase:
        """The phase this reason belongs to."""
        return self.reason.phase


@dataclass(frozen=True, slots=True)
class Refused:
    """Never like this: there is no ticket or hold to act on (cancelled, ended, or taken over)."""

    detail: str
