"""What lies between a simulated process and the API server: time, faults, and an observer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from blastyard.kube.wire import Answer, Call, Stream
from blastyard.testing.faulty_wire import named
from blastyard.testing.schedule import Fault
from blastyard.testing.schedule import Trouble as Kind
from blastyard.testing.scheduler import Signal
from blastyard.testing.wire_fault import Trouble, WireFault

if TYPE_CHECKING:
    from blastyard.testing.actor import Actor
    from blastyard.testing.cluster.world import ClusterWorld

NAMESPACE: Final = "lab"

_TROUBLES: Final = {
    Kind.LOST_REQUEST: Trouble.LOST_REQUEST,
    Kind.LOST_ANSWER: Trouble.LOST_ANSWER,
    Kind.UNAVAILABLE: Trouble.REFUSED,
    Kind.CONFLICT: Trouble.CRASHED,
    Kind.BUSY: Trouble.BUSY,
    Kind.GATEWAY: Trouble.GATEWAY_TIMEOUT,
    Kind.TRUNCATED: Trouble.TRUNCATED,
    Kind.LATE: Trouble.LATE_REQUEST,
}
LENGTHS: Final[dict[Kind, tuple[float, ...]]] = {
    Kind.DELAY: (0.02, 0.4, 2.0, 4.5, 12.0, -0.02, -0.4, -2.0, -4.5, -12.0),
    Kind.LATE: (5.5, 9.0, 15.0, 25.0),
    Kind.FREEZE: (3.0, 15.0, 23.0, 31.0, 40.0, 60.0, 130.0),
    Kind.CRASH: (0.2, 2.0, 10.0, 40.0),
}
"""A negative delay is one of the answer."""


def wire_fault(fault: Fault) -> WireFault:
    """What a process's fault is on its wire."""
    if fault.trouble is Kind.DELAY:
        before, after = max(0.0, fault.seconds), max(0.0, -fault.seconds)
        return WireFault(before=before, after=after)
    return WireFault(_TROUBLES[fault.trouble], before=fault.seconds)


class VirtualLine:
    """The time of a wire, in virtual time. What lands late is told whose deed it was."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world

    def monotonic(self) -> float:
        """See ``Line``, as for the others."""
        return self._world.now

    def signal(self) -> Signal:
        return Signal(self._world.scheduler)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        rules = self._world.observer.ledger_rules
        deed = rules.deed()

        def land() -> None:
            rules.landing = deed
            call()
            rules.landing = None

        self._world.scheduler.at(self._world.now + seconds, land)


class ObservedWire:
    """A wire to the API server whose writes the observer sees when they happen."""

    def __init__(self, world: ClusterWorld, who: Actor | None, manager: str) -> None:
        self._world = world
        self._who = who
        self._inner = world.api.client(manager)

    def send(self, call: Call) -> Answer:
        """See ``Wire``, as for the others."""
        answer = self._inner.send(call)
        if self._who is not None:
            self._world.requests[self._who.slot] = self._world.requests.get(self._who.slot, 0) + 1
        if call.method != "GET" and answer.status in (200, 201):
            self._world.landed(self._who, call)
        elif named(call) == ("list", "jobs"):
            self._world.observer.listed()
        return answer

    def stream(self, call: Call) -> Stream:
        return self._inner.stream(call)

    def close(self) -> None:
        self._inner.close()
