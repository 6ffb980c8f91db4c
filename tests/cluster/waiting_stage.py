"""Waiting for what must happen in a namespace, and the protocol's constants scaled down for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from threading import Event
from typing import Final, TypeVar

from blastyard.admission.outcome import Reason, Waiting
from blastyard.admission.port import Watch
from blastyard.admission.timing import Timings
from blastyard.domain.clock import SystemClock

CLOCK: Final = SystemClock()
PATIENCE: Final = 60.0
"""Seconds that a test waits for what must happen."""
_PAUSE: Final = 0.02

_SCALED: Final = Timings(
    request_timeout=timedelta(seconds=1),
    margin=timedelta(seconds=1.5),
    beat=timedelta(seconds=0.5),
    takeover=timedelta(seconds=4),
    lapse=timedelta(seconds=4),
    forgotten=timedelta(seconds=8),
)
TENTH: Final = replace(
    _SCALED,
    skew=timedelta(seconds=0.5),
    command=timedelta(seconds=3),
    ending=timedelta(seconds=0.5),
    turn=timedelta(seconds=0.3),
    patient_turn=timedelta(seconds=2),
    settle=timedelta(seconds=2),
    courtesy=timedelta(seconds=3),
    unbroken_use=timedelta(seconds=20),
)
"""The protocol's constants, scaled down as far as stamps of whole seconds allow."""
QUICK: Final = replace(
    _SCALED,
    lapse=timedelta(seconds=3),
    settle=timedelta(seconds=3),
    courtesy=timedelta(seconds=2),
    command=timedelta(seconds=20),
)
"""The same where commands take their time, and turns and foreign leases are as they are."""

T = TypeVar("T")


def until(look: Callable[[], T | None], seconds: float = PATIENCE, bell: Watch | None = None) -> T:
    """What ``look`` finds at last; fails when that takes longer than it may.

    It is asked again and again, and at once when the bell rings.
    """
    latest, nobody = CLOCK.monotonic() + seconds, Event()
    while not (found := look()):
        assert CLOCK.monotonic() < latest, f"not within {seconds:.0f} s"
        (bell or nobody).wait(_PAUSE)
    return found


def through(seconds: float, true: Callable[[], bool]) -> None:
    """Ask again and again for so long; fail as soon as it is not true any more."""
    ends_at, nobody = CLOCK.monotonic() + seconds, Event()
    while CLOCK.monotonic() < ends_at:
        assert true(), "it did not stay true"
        nobody.wait(0.1)


def reason(outcome: object) -> Reason | None:
    """Why somebody has to wait; ``None`` = nobody has to."""
    return outcome.reason if isinstance(outcome, Waiting) else None


def is_full(outcome: object) -> bool:
    """Whether it is for want of a run slot."""
    return reason(outcome) is Reason.CAPACITY
