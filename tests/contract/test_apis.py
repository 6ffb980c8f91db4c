"""The API server in memory does what a real one does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from blastyard.domain.clock import SystemClock
from blastyard.testing.contract_api_jobs import JobContract
from blastyard.testing.contract_api_leases import LeaseContract
from blastyard.testing.contract_api_lists import HistoryContract, ListContract
from blastyard.testing.contract_api_objects import ObjectContract
from blastyard.testing.contract_api_watches import ForgetfulWatchContract, WatchContract
from blastyard.testing.memory_api import MemoryApi

PATIENCE = 60
"""Steps of half a second after which what did not come true will not."""


class SteppedClock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def now(self) -> datetime:
        return datetime(2031, 5, 1, 12, tzinfo=UTC) + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        return self._seconds

    def step(self) -> None:
        self._seconds += 0.5


class InMemory:
    """An API server in memory, under test."""

    namespace = "lab"

    def __init__(self, wire: MemoryApi, step: Callable[[], None]) -> None:
        self.wire = wire
        self._step = step

    def until(self, true: Callable[[], bool]) -> None:
        for _ in range(PATIENCE):
            if true():
                return
            self._step()
            self.wire.tick()
        pytest.fail("it did not become true")

    def complete(self, name: str) -> None:
        self.wire.complete(self.namespace, name)

    def fail(self, name: str) -> None:
        self.wire.fail(self.namespace, name)

    def forget(self) -> None:
        self.wire.compact()


class TestMemoryApi(ObjectContract, LeaseContract, JobContract, ListContract, HistoryContract):
    @pytest.fixture
    def api(self) -> InMemory:
        clock = SteppedClock()
        return InMemory(MemoryApi(clock.now, clock.monotonic), clock.step)


class TestWatchesOfMemoryApi(WatchContract, ForgetfulWatchContract):
    @pytest.fixture
    def api(self) -> InMemory:
        clock = SystemClock()
        return InMemory(MemoryApi(clock.now, clock.monotonic), lambda: None)
