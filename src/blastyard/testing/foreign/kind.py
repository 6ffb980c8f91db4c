"""Which kinds of foreign submitters there are, and the figures that one of them works with."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """What a program does before and while it submits."""

    name: str
    retry: Callable[[random.Random], float]
    """Unscaled seconds until it asks again after a denial."""
    gate_a: bool = True
    """Whether it takes the submit Lease."""
    gate_b: bool = True
    """Whether it counts what runs."""
    labels: bool = True
    """Whether its objects carry a search id and there is a finalizer."""


DASHBOARD: Final = Kind("dashboard", lambda chance: 30.0 + chance.uniform(0.0, 10.0))
"""A web dashboard: a queue's worker that puts a denied search back for a while."""
SERVICE: Final = Kind("service", lambda chance: 5.0 * chance.uniform(0.8, 1.2))
"""A service in the cluster that polls in place."""
RUDE: Final = Kind("rude", lambda _: 1.0, gate_a=False, gate_b=False)
"""Somebody with kubectl: submits when it suits, looking at nothing."""
UPSTREAM: Final = Kind("upstream", lambda _: 60.0, gate_a=False, gate_b=False, labels=False)
"""The original elastic-blast: fixed object names, no ids, no finalizer, one search a namespace."""

KINDS: Final = {kind.name: kind for kind in (DASHBOARD, SERVICE, RUDE, UPSTREAM)}


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast its own time goes. All in unscaled seconds; ``scale`` shortens what is its own.

    What stands on the Lease, and the skew that is added to it, are never scaled: others judge it.
    """

    scale: float = 1.0
    life: tuple[float, float] = (20.0, 120.0)
    """How long the searches run, from the shortest to the longest."""
    merge: tuple[float, float] = (1.0, 60.0)
    """How long the finalizer goes on after them."""
    finalizer_delay: tuple[float, float] = (0.1, 1.1)
    """Between the first Jobs and the finalizer, inside the submit command."""
    arrival: float = 0.0
    """Between one search's arrival and the next one's."""
    patience: float | None = None
    """How long it asks for the submit slot, and how long for a run slot; ``None`` = for ever."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The figures of both gates, as the contract has them."""

    ceiling: int = 3
    grace_seconds: float = 300.0
    """A finalizer alone for longer is a phantom."""
    lease_seconds: int = 900
    skew_seconds: float = 30.0
    """Added before somebody else's Lease counts as expired."""


@dataclass(frozen=True, slots=True)
class Setup:
    """One foreign program."""

    source: str
    """The beginning of its holder names, lower-case."""
    namespace: str
    kind: Kind = DASHBOARD
    searches: int = 1
    seed: int = 0
    clock_error: float = 0.0
    """Seconds by which its own clock is ahead of the true time."""
    blast_jobs: int = 2
    cancel_every: int = 0
    """Every so many-th search is cancelled in the midst of its life; 0 = none."""
    pace: Pace = Pace()
    rules: Rules = Rules()
