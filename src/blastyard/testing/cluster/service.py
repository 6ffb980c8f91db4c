"""`blastyard serve` in a simulated cluster: it runs searches on its own machine."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from blastyard.domain.errors import Unavailable
from blastyard.testing.cast import Errand, Runner
from blastyard.testing.cluster.actor import OnCluster

if TYPE_CHECKING:
    from blastyard.testing.cluster.world import ClusterWorld


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
