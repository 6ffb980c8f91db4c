"""Making a failing schedule smaller: fewer faults, deeds, orders and processes, the same violation.

Each candidate is run, also with a few other sequences of picks, since taking something away moves
all later picks. What is left is rarely the smallest there is, but small enough to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from blastyard.testing.schedule import Kind, Schedule, repeated
from blastyard.testing.simulation import Verdict
from blastyard.testing.simulator import run

T = TypeVar("T")

OTHER_PICKS: Final = 6
MOST_RUNS: Final = 4000


class _Shrinker:
    def __init__(self, failing: Verdict[Schedule]) -> None:
        if failing.violation is None:
            raise ValueError("only a failing schedule can be shrunk")
        self._rule = failing.violation.rule
        self._runs = 0
        self.best = failing

    def shrunk(self) -> Verdict[Schedule]:
        """The smallest failing run that was found."""
        self._try(repeated(self.best.schedule, self.best.drawn))
        size = -1
        while size != self._size() and self._runs < MOST_RUNS:
            size = self._size()
            self._faults()
            self._parts()
            self._simpler()
        return self.best

    def _size(self) -> int:
        schedule = self.best.schedule
        parts = len(schedule.orders) + len(schedule.interventions)
        return parts + len(schedule.faults or {})

    def _try(self, candidate: Schedule) -> bool:
        picks = [candidate.picks, *range(OTHER_PICKS)]
        for pick in picks:
            self._runs += 1
            verdict = run(replace(candidate, picks=pick))
            if verdict.violation is not None and verdict.violation.rule == self._rule:
                self.best = verdict
                return True
        return False

    def _faults(self) -> None:
        faults = dict(self.best.schedule.faults or {})
        self._fewer(
            sorted(faults),
            lambda kept: replace(self.best.schedule, faults={key: faults[key] for key in kept}),
        )

    def _parts(self) -> None:
        self._fewer(
            self.best.schedule.interventions,
            lambda kept: replace(self.best.schedule, interventions=tuple(kept)),
        )
        single = {
            slot
            for slot, role in enumerate(self.best.schedule.roles)
            if role.kind in (Kind.COMMAND, Kind.TWIN)
        }
        fixed = [order for order in self.best.schedule.orders if order.slot in single]
        self._fewer(
            [order for order in self.best.schedule.orders if order.slot not in single],
            lambda kept: replace(self.best.schedule, orders=(*fixed, *kept)),
        )

    def _simpler(self) -> None:
        for change in (
            {"hard_of_hearing": 0.0},
            {"stickiness": 0.9},
            {"kill_delay": 0.01},
            {"cap": None},
            {"ageing": 3600},
        ):
            candidate = replace(self.best.schedule, **change)
            if candidate != self.best.schedule:
                self._try(candidate)
        roles = self.best.schedule.roles
        if roles and not any(order.slot == len(roles) - 1 for order in self.best.schedule.orders):
            self._try(replace(self.best.schedule, roles=roles[:-1]))

    def _fewer(self, items: Sequence[T], made: Callable[[Sequence[T]], Schedule]) -> None:
        """Leave out halves, quarters … of the items, as long as it goes on failing."""
        kept = list(items)
        size = max(1, len(kept))
        while size and kept and self._runs < MOST_RUNS:
            for part in _chunks(kept, size):
                fewer = [item for item in kept if item not in part]
                if self._try(made(fewer)):
                    kept = fewer
            size //= 2


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def shrink(failing: Verdict[Schedule]) -> Verdict[Schedule]:
    """A smaller run with the same violation. Raises ``ValueError`` when there is none."""
    return _Shrinker(failing).shrunk()
