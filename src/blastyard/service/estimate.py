"""When a waiting search may start, as far as those that ended lately let one guess. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Final

LEAST: Final = 3
"""From fewer ended searches than this, nothing is guessed."""
_NEVER: Final = datetime.max


@dataclass(frozen=True, slots=True)
class Slots:
    """The run slots as they are at ``now``."""

    ceiling: int
    busy_since: Sequence[datetime]
    """For each search that uses one, since when."""
    now: datetime


def starts(
    waiting: Iterable[str], slots: Slots, lifetimes: Sequence[timedelta]
) -> dict[str, datetime]:
    """When each of those that wait may start, in their order; one that is missing is unknown.

    Each is taken to last as long as the median of ``lifetimes``. One that runs already is taken to
    last as long as the median of those that lasted longer than it has by now; when none did,
    nothing is known of its slot.
    """
    if len(lifetimes) < LEAST:
        return {}
    each = typical(lifetimes)
    free_at = _free_at(slots, lifetimes)
    heapq.heapify(free_at)
    found: dict[str, datetime] = {}
    for search in waiting:
        if not free_at or free_at[0] == _NEVER:
            break
        at = free_at[0]
        found[search] = at.replace(tzinfo=slots.now.tzinfo)
        heapq.heapreplace(free_at, at + each)
    return found


def typical(lifetimes: Sequence[timedelta]) -> timedelta:
    """The median of at least one span."""
    return timedelta(seconds=median(span.total_seconds() for span in lifetimes))


def _free_at(slots: Slots, lifetimes: Sequence[timedelta]) -> list[datetime]:
    """When each slot can be used; instants without a zone, so that *never* is one of them."""
    now = slots.now.replace(tzinfo=None)
    ends = sorted(_end(slots.now - since, now, lifetimes) for since in slots.busy_since)
    free = slots.ceiling - len(ends)
    if free >= 0:
        return ends + [now] * free
    return ends[-free:]  # more run than may: the first that end make no room


def _end(age: timedelta, now: datetime, lifetimes: Sequence[timedelta]) -> datetime:
    longer = [span for span in lifetimes if span > age]
    return now + typical(longer) - age if longer else _NEVER
