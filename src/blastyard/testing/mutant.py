"""Rules made wrong on purpose, to prove that the simulator sees it.

A :class:`Mutant` replaces functions of the package while its context lasts, in every module that
has them by name. Replacing parts of one's own package is otherwise against the house style; here
the wrong rule is what is tested.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from blastyard.testing.schedule import Habitat


@dataclass(frozen=True, slots=True)
class Swap:
    """One function of the package and what stands in for it.

    ``where`` is ``package.module:name`` or ``package.module:Class.name``; ``made`` gets the right
    function and returns the wrong one.
    """

    where: str
    made: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong rule: a name, and what is wrong, in words. ``habitat`` is where it shows soonest."""

    name: str
    wrong: str
    swap: Swap
    habitat: Habitat


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Make the package wrong, and right again at the end."""
    swap = mutant.swap
    module_name, _, path = swap.where.partition(":")
    owner_name, _, attribute = path.rpartition(".")
    module = importlib.import_module(f"blastyard.{module_name}")
    if owner_name:
        places = [(getattr(module, owner_name), attribute)]
        right = vars(places[0][0])[attribute]
    else:
        right = getattr(module, attribute)
        places = _places_of(right)
    wrong = swap.made(right)
    for owner, name in places:
        setattr(owner, name, wrong)
    try:
        yield
    finally:
        for owner, name in places:
            setattr(owner, name, right)


def _places_of(function: object) -> list[tuple[Any, str]]:
    """Every module of the package that has this function, and under which name."""
    return [
        (module, name)
        for module_name, module in list(sys.modules.items())
        if module_name.startswith("blastyard.")
        for name, value in list(vars(module).items())
        if value is function
    ]


_REGISTRY: Final[dict[str, Mutant]] = {}


def mutant(name: str, wrong: str, swap: Swap, habitat: Habitat = Habitat.ANY) -> Mutant:
    """Register a mutant; names are unique."""
    if name in _REGISTRY:
        raise ValueError(f"two mutants are called {name}")
    _REGISTRY[name] = made = Mutant(name, wrong, swap, habitat)
    return made


def mutants() -> dict[str, Mutant]:
    """All registered mutants, by name."""
    from blastyard.testing import (  # noqa: F401, PLC0415  (registering is what they are for)
        gate_mutants,
        order_mutants,
        service_mutants,
    )

    return dict(_REGISTRY)
