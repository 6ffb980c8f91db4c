"""What the web service needs of an open installation; ``bootstrap.yard.Yard`` has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from blastyard.domain.clock import Clock
from blastyard.service.databases import Databases
from blastyard.service.searches import Searches
from blastyard.settings import Settings


class Watch(Protocol):
    """Wakes when something may have changed."""

    def wait(self, timeout_seconds: float) -> bool:
        """Block up to the timeout; whether something may have changed."""
        ...

    def wake(self) -> None:
        """End a ``wait`` from any thread."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


class Watchable(Protocol):
    """Gives watches."""

    def watch(self) -> Watch:
        """A new watch of this process."""
        ...


class Versioned(Protocol):
    """The BLAST+ programs."""

    def version(self) -> str:
        """Their version; raises ``Misconfigured('blast_missing')``."""
        ...


class Exposed(Protocol):
    """What was counted."""

    @property
    def exposition(self) -> Callable[[], bytes]:
        """All metrics in Prometheus' text format."""
        ...


class Installation(Protocol):
    """An open installation, as the web service sees it."""

    @property
    def settings(self) -> Settings:
        """How it is set up."""
        ...

    @property
    def clock(self) -> Clock:
        """What time it is."""
        ...

    @property
    def searches(self) -> Searches:
        """All that can be done with searches."""
        ...

    @property
    def databases(self) -> Databases:
        """The databases that searches may name."""
        ...

    @property
    def runner(self) -> str:
        """Who looks after what is submitted here; empty: whoever is told of it."""
        ...

    @property
    def documents(self) -> Watchable:
        """What wakes when the queue changes."""
        ...

    @property
    def toolchain(self) -> Versioned:
        """BLAST+."""
        ...

    @property
    def instruments(self) -> Exposed:
        """Metrics."""
        ...
