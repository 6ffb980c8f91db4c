"""At which of the points of a life a process is killed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from blastyard.testing.checkpoint import Point

P = TypeVar("P", bound=Point)


class Deaths(Protocol):
    """Those of the points at which to kill."""

    def __call__(self, points: Sequence[P], /) -> Sequence[P]: ...


def every_one(points: Sequence[P], /) -> Sequence[P]:
    """All of them: a search of the state space."""
    return points


def one_of_each_kind(points: Sequence[P], /) -> Sequence[P]:
    """For each name one of its points: of the first kind the first, of the second the second …"""
    kinds: dict[str, list[P]] = {}
    for point in points:
        kinds.setdefault(point.name, []).append(point)
    return [kind[number % len(kind)] for number, kind in enumerate(kinds.values())]
