"""Rules of admission on a cluster made wrong on purpose, to prove that the simulator sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from blastyard.testing.mutant import Mutant, Swap
from blastyard.testing.schedule import Habitat

_REGISTRY: Final[dict[str, Mutant]] = {}
_WHERE: Final = {
    "trust for ever": Habitat.STALLS,
    "trust beyond takeover": Habitat.STALLS,
    "no guardian": Habitat.STALLS,
    "release without a holder check": Habitat.STALLS,
    "takeover without waiting": Habitat.STALLS,
    "no uid in a write": Habitat.LOSSES,
    "another's lease adopted": Habitat.DELIVERIES,
    "another's hold given back": Habitat.DELIVERIES,
    "markers not asserted": Habitat.DEATHS,
    "no recount": Habitat.INTRUDERS,
    "holds only": Habitat.INTRUDERS,
    "cached census": Habitat.INTRUDERS,
    "no settle after a failure": Habitat.LOSSES,
    "no fence check": Habitat.LOSSES,
    "fence without uid": Habitat.LOSSES,
    "fence from the beginning": Habitat.LOSSES,
    "no stand-in before the command": Habitat.DEATHS,
    "swept while claims are collected": Habitat.LOSSES,
    "ledger before list": Habitat.LOSSES,
    "markers not consulted": Habitat.LOSSES,
    "nobody is waited for": Habitat.LOSSES,
    "tended by nobody": Habitat.DEATHS,
    "heir of any installation": Habitat.DELIVERIES,
    "markers never swept": Habitat.DEATHS,
    "cancel unnoticed": Habitat.DEATHS,
}
"""The habitats where some of them show soonest."""


def cluster_mutant(name: str, wrong: str, where: str, made: Callable[[Any], Any]) -> None:
    """Register a mutant."""
    _REGISTRY[name] = Mutant(name, wrong, Swap(where, made), _WHERE.get(name, Habitat.ANY))


def nothing(*_: object, **__: object) -> None:
    """Instead of what should be done."""


def cluster_mutants() -> dict[str, Mutant]:
    """All of them, by name."""
    from blastyard.testing.cluster import (  # noqa: F401, PLC0415  (registering is what they are for)
        courtesy_mutants,
        marker_mutants,
        slot_mutants,
    )

    return dict(_REGISTRY)
