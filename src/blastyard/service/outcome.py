"""What one step of one search comes to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing more to do here: the search has ended, or somebody else looks after it."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Step again after ``delay``, or sooner when something changes. ``phase`` says what for."""

    delay: timedelta
    phase: str


NOW = timedelta(0)
