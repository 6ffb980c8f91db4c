"""What a passage through the gates needs, and what it can come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from blastyard.admission.gate import Gate
from blastyard.admission.port import Watch


class Running(Protocol):
    """A command under its guardian."""

    def extend(self, deadline: float | None) -> None:
        """Move the deadline (monotonic seconds); ``None`` = none."""
        ...

    def end(self) -> None:
        """Have the command and all its descendants killed."""
        ...

    def wait(self) -> object:
        """Block until nothing of it is left."""
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


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for the submit slot and for capacity; ``None`` = for ever."""

    submit_slot: timedelta | None = None
    capacity: timedelta | None = None
