"""Where an installation may be given other parts than its own.

What is put between the parts must keep their ports' promises; tests put checkpoints there, at which
a process may die.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from blastyard.admission.port import DocumentStore
    from blastyard.admission.timing import Timings
    from blastyard.engine.port import Engine
    from blastyard.engine.remote import RemoteEngine
    from blastyard.store.port import SearchStore

T = TypeVar("T")


def as_it_is(part: T) -> T:
    """Put nothing in between."""
    return part


@dataclass(frozen=True, slots=True)
class Seam:
    """What goes around each part; ``timings`` instead of those that the settings give."""

    timings: Timings | None = None
    documents: Callable[[DocumentStore], DocumentStore] = as_it_is
    store: Callable[[SearchStore], SearchStore] = as_it_is
    engine: Callable[[Engine], Engine] = as_it_is
    remote: Callable[[RemoteEngine], RemoteEngine] = as_it_is


PLAIN: Final = Seam()
