"""Who counts and logs what a process does: nobody, unless it is a service or was asked to.

The libraries for it are loaded only then; a drop-in command never pays for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from blastyard.admission.observer import Observer, nobody

if TYPE_CHECKING:
    from blastyard.admission.gate import Gate
    from blastyard.admission.ledger import Policy, Submitter
    from blastyard.admission.markers import Markers
    from blastyard.admission.onlooker import Passed
    from blastyard.settings import Settings

_SERVICES: Final = frozenset({"serve", "worker", "web"})
_SUBMITTING: Final = frozenset({"serve", "worker", "exec", "search"})
"""Kinds of processes that wait for a turn, the drop-in commands excepted."""


def _unseen(*_: object) -> None:
    """Nobody wants to know."""


def _as_it_is(markers: Markers) -> Markers:
    return markers


@dataclass(frozen=True, slots=True)
class Followed:
    """An open gate, as its gauges are read."""

    gate: Gate
    seed: Policy
    """What a ledger begins with that nobody remembers."""
    restarts: Callable[[], int] | None = None
    """How often the watch was begun anew; ``None`` where nothing watches a cluster."""


@dataclass(frozen=True, slots=True)
class Instruments:
    """What the parts of an installation tell."""

    observer: Observer = nobody
    called: Callable[[str, str, int, float], None] = _unseen
    """A request to the API server: verb, resource, status (0 = none), seconds."""
    passed: Callable[[Passed], None] = _unseen
    """A search came past Gate A."""
    around: Callable[[Markers], Markers] = _as_it_is
    """Markers that are counted."""
    follow: Callable[[Followed], None] = _unseen
    """Read gauges from this gate."""
    exposition: Callable[[], bytes] = bytes
    """All metrics as Prometheus reads them."""
    close: Callable[[], None] = _unseen
    """The process ends: leave behind what has to stay. Raises nothing."""


SILENT: Final = Instruments()


def instruments_of(settings: Settings, me: Submitter) -> Instruments:
    """Those of a process that takes part in admission as ``me``."""
    if me.kind not in _SUBMITTING:
        return SILENT
    counts = me.kind in _SERVICES or bool(settings.metrics_file)
    logs = me.kind in _SERVICES or settings.log_format == "json" or settings.log_level == "debug"
    if not (counts or logs):
        return SILENT
    from blastyard.bootstrap.observing import observing  # noqa: PLC0415  (see the module)

    return observing(settings, me, counts=counts, logs=logs)
