"""What a passage through the gates needs, and what it can come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from blastyard.admission.gate import Gate
from blastyard.admission.outcome import Waiting
from blastyard.admission.port import Watch
from blastyard.domain.errors import Unavailable
from blastyard.domain.job import Phase


class Running(Protocol):
    """A command under its guardian."""

    def extend(self, deadline: float | None) -> None:
        """Move the deadline (monotonic seconds); ``None`` = none."""
        ...

    def end(self) -> None:
        """Have the command and all its descendants killed."""
        ...

    def wait(self, timeout: float | None = None) -> object | None:
        """Block until nothing of it is left, or for so many seconds; how it ended, if it has."""
        ...


class Stopped(Exception):
    """:meth:`Passage.stop` was called before the command started."""


@dataclass(frozen=True, slots=True)
class Entrance:
    """Admission as a passage needs it."""

    gate: Gate
    watch: Watch
    monotonic: Callable[[], float]
    sweep: Callable[[], None]
    """Puts right what dead processes left behind; called when one of them is in the way."""
    tend: Callable[[], None] = lambda: None
    """Keeps what is shared with others in order; called every few seconds."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for the submit slot and for capacity; ``None`` = for ever."""

    submit_slot: timedelta | None = None
    capacity: timedelta | None = None

    def limits(self) -> list[float]:
        """Both in seconds, those that there are."""
        limits = (self.submit_slot, self.capacity)
        return [limit.total_seconds() for limit in limits if limit is not None]

    def require(self, waiting: Waiting, waited: float) -> None:
        """Raises ``Unavailable('…_timeout')`` when that is long enough for this reason to wait."""
        slot = waiting.phase == Phase.WAITING_FOR_SUBMIT_SLOT
        limit = self.submit_slot if slot else self.capacity
        if limit is not None and waited >= limit.total_seconds():
            raise Unavailable(
                "submit_slot_timeout" if slot else "capacity_timeout",
                f"waited {int(waited)} s and did not get its turn: {waiting.detail}",
                "see `blastyard gate status` for who holds what, then start it again",
            )


def lease_lost() -> Unavailable:
    """The error of a command that was ended because its turn at the gate was over."""
    return Unavailable(
        "interrupted",
        "this process stood still for so long that another took its place at the gate; the "
        "command was ended before it could disturb the other",
        "start it again",
    )
