"""What a passage through the gates needs, and what it can come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from blastyard.admission.gate import Gate
from blastyard.admission.port import Watch
from blastyard.domain.errors import Unavailable


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


def lease_lost() -> Unavailable:
    """The error of a command that was ended because its turn at the gate was over."""
    return Unavailable(
        "interrupted",
        "this process stood still for so long that another took its place at the gate; the "
        "command was ended before it could disturb the other",
        "start it again",
    )
