"""`blastyard serve` in a simulated cluster: it runs searches on its own machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from blastyard.domain.errors import Unavailable
from blastyard.testing.cast import Errand, Runner
from blastyard.testing.cluster.actor import OnCluster

if TYPE_CHECKING:
    from blastyard.testing.cluster.world import ClusterWorld
    from blastyard.testing.schedule import Role


class Service(OnCluster, Runner):
    """A service."""

    world: ClusterWorld

    def live(self) -> None:
        """See the runner."""
        self.follow()
        super().live()
        self.on_crash(1.0)  # whoever stopped it starts it again

    def _upkeep(self) -> None:
        with suppress(Unavailable):
            self.tend()
        super()._upkeep()


class Operator(OnCluster, Errand):
    """A short process of an operator."""

    world: ClusterWorld

    def __init__(self, world: ClusterWorld, slot: int, role: Role, number: int) -> None:
        super().__init__(world, slot, role, number)

    def begin(self, live: Callable[[], None]) -> None:
        """See the errand; it follows nothing."""
        super().begin(live)
