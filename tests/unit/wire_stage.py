"""An API server in virtual time, behind a faulty wire."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from blastyard.kube.wire import Call
from blastyard.testing.faulty_wire import FaultyWire
from blastyard.testing.line import VirtualLine
from blastyard.testing.memory_api import MemoryApi
from blastyard.testing.scheduler import Process, Scheduler
from blastyard.testing.wire_fault import FINE, WireFault

MAPS = "/api/v1/namespaces/lab/configmaps"
TIMEOUT = 5.0


@dataclass
class Stage:
    """An API server in virtual time, and a faulty wire to it."""

    fault: WireFault = FINE
    asked: list[tuple[str, str]] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(random.Random(1))
        self.line = VirtualLine(self.scheduler)
        self.api = MemoryApi(self._now, self.line.monotonic, signal=self.line.signal)
        self.wire = FaultyWire(self.api, self.line, self._plan, self.passed.append)

    def run(self, call: Callable[[], object]) -> None:
        """Let a task act, until nobody has anything left to do."""
        self.scheduler.spawn(Process("client"), "task", call)
        self.scheduler.run(lambda: False, 1000.0)

    def exists(self) -> bool:
        """Whether the ConfigMap is there."""
        return "a" in self.api.documents("configmaps", "lab")

    def _now(self) -> datetime:
        return datetime(2031, 5, 1, tzinfo=UTC) + timedelta(seconds=self.scheduler.now)

    def _plan(self, verb: str, resource: str) -> WireFault:
        self.asked.append((verb, resource))
        return self.fault


def creation(name: str = "a") -> Call:
    """Create a ConfigMap."""
    body = msgspec.json.encode({"metadata": {"name": name}, "data": {"x": "y"}})
    return Call("POST", MAPS, body=body, timeout=TIMEOUT)


def watch() -> Call:
    """Watch all ConfigMaps."""
    return Call("GET", MAPS, {"watch": "1", "timeoutSeconds": "100"}, timeout=TIMEOUT)
