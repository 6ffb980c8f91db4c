"""An API server in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from blastyard.kube.wire import Call, Stream
from blastyard.testing.contract_api import Caller
from blastyard.testing.line import VirtualLine
from blastyard.testing.memory_api import MemoryApi
from blastyard.testing.scheduler import Process, Scheduler


class Stage:
    """An API server in virtual time."""

    namespace = "lab"

    def __init__(self, seed: int | None = None) -> None:
        self.scheduler = Scheduler(random.Random(1))
        line = VirtualLine(self.scheduler)
        self.wire = MemoryApi(self.now, line.monotonic, signal=line.signal, seed=seed)
        self.maps = Caller(self, "configmaps")
        self.jobs = Caller(self, "jobs")

    def now(self) -> datetime:
        return datetime(2031, 5, 1, 12, tzinfo=UTC) + timedelta(seconds=self.scheduler.now)

    def until(self, true: Callable[[], bool]) -> None:
        raise NotImplementedError

    complete = fail = forget = until

    def watch(self, plural: str = "configmaps", **query: str) -> Stream:
        """Watch from now on."""
        version = str(self.wire.revision)
        whole = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "300", **query}
        return self.wire.stream(Call("GET", Caller(self, plural).collection, whole))

    def run(self, *calls: Callable[[], object], until: float = 1000.0) -> None:
        """Let tasks act, until nobody has anything left to do."""
        for call in calls:
            self.scheduler.spawn(Process("client"), "task", call)
        self.scheduler.run(lambda: False, until)


def types(lines: Iterable[bytes]) -> list[str]:
    """The types of events."""
    return [msgspec.json.decode(line)["type"] for line in lines]
