"""How long things may take in admission, and the relations that make the rules sound."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta

from blastyard.domain.errors import Misconfigured


@dataclass(frozen=True, slots=True)
class Timings:
    """The constants of the admission protocol. Refuses values under which it would not hold."""

    request_timeout: timedelta = timedelta(seconds=5)
    """How long one call to a store may take."""
    margin: timedelta = timedelta(seconds=8)
    """How long before a possible takeover a guarded command is ended."""
    beat: timedelta = timedelta(seconds=10)
    """Between two signs of life of a submitter, and between two renewals of the lease."""
    takeover: timedelta = timedelta(seconds=30)
    """How long a blastyard holder may be silent before another blastyard takes its lease."""
    lapse: timedelta = timedelta(seconds=45)
    """How long a submitter may be silent before its tickets are skipped."""
    wire: timedelta = timedelta(seconds=900)
    """Duration written on the lease, for programs that judge by their own clocks."""
    skew: timedelta = timedelta(seconds=30)
    """Added before a foreign lease counts as expired."""
    command: timedelta = timedelta(seconds=600)
    """The longest one submit command may take."""
    ending: timedelta = timedelta(seconds=5)
    """How long after the end of a process its guardians may still be ending its commands."""
    turn: timedelta = timedelta(seconds=1)
    """How long the head of the queue has to claim a free slot before it is passed over."""
    patient_turn: timedelta = timedelta(seconds=45)
    """The turn of a head that was passed over :attr:`passes` times."""
    passes: int = 3
    settle: timedelta = timedelta(seconds=60)
    """How long a request that timed out may still arrive, and a search may stay unseen."""
    courtesy: timedelta = timedelta(seconds=45)
    """How long a slot, or Gate A, is left free for programs that poll."""
    unbroken_use: timedelta = timedelta(seconds=600)
    """After so much use of Gate A without such a pause, one is made."""
    marker: timedelta = timedelta(days=3)
    """How long a marker stands by itself; extended while its search lives."""
    forgotten: timedelta = timedelta(seconds=7200)
    """How long the claims of a silent submitter are waited for when the ledger was lost."""

    def __post_init__(self) -> None:
        problems = [
            f"{field.name} must be positive"
            for field in fields(self)
            if getattr(self, field.name) <= type(getattr(self, field.name))(0)
        ]
        if not self.request_timeout < self.margin < self.takeover < self.wire:
            problems.append("request_timeout < margin < takeover < wire must hold")
        if not self.beat < self.takeover - self.margin:
            problems.append("beat < takeover - margin must hold")
        if not self.beat < self.lapse:
            problems.append("beat < lapse must hold")
        if not self.command < self.wire:
            problems.append("command < wire must hold")
        if problems:
            raise Misconfigured("settings_invalid", "; ".join(problems))
