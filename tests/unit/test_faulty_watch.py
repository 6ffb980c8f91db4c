"""Watches go wrong exactly as planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event, Thread

import msgspec
import pytest
from wire_stage import TIMEOUT, Stage, creation, watch

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable
from blastyard.kube.wire import Stream
from blastyard.testing.faulty_wire import FaultyWire
from blastyard.testing.line import RealLine
from blastyard.testing.memory_api import MemoryApi
from blastyard.testing.wire_fault import Ailment, Trouble, WireFault


@pytest.mark.parametrize(
    "fault",
    [
        WireFault(Trouble.LOST_REQUEST),
        WireFault(Trouble.LATE_REQUEST),
        WireFault(Trouble.LOST_ANSWER),
        WireFault(Trouble.TRUNCATED),
        WireFault(before=TIMEOUT + 1),
        WireFault(after=TIMEOUT + 1),
    ],
)
def test_a_watch_whose_opening_is_lost_is_not_open(fault: WireFault) -> None:
    stage = Stage(fault)

    def call() -> None:
        with pytest.raises(Unavailable):
            stage.wire.stream(watch())

    stage.run(call)

    assert stage.api.watches.count() == 0
    assert stage.passed == ["before:watch:configmaps", "after:watch:configmaps"]


def test_a_watch_can_be_refused() -> None:
    stage = Stage(WireFault(Trouble.BUSY))
    opened: list[Stream] = []

    stage.run(lambda: opened.append(stage.wire.stream(watch())))

    assert opened[0].status == 429
    assert list(opened[0].lines(1.0)) == []


@dataclass
class Listened:
    """What became of listening to three events."""

    lines: list[bytes] = field(default_factory=list)
    ending: str = ""
    at: float = 0.0
    still_open: int = 0

    @property
    def names(self) -> list[str]:
        """Of what was heard."""
        return [msgspec.json.decode(line)["object"]["metadata"]["name"] for line in self.lines]


def listened(ailment: Ailment) -> Listened:
    """Listen to events about a, b and c, of which the second is ailing."""
    stage = Stage(WireFault(lines=lambda index, _: ailment if index == 1 else Ailment.OK))
    result = Listened()

    def call() -> None:
        for name in "abc":
            stage.api.send(creation(name))
        stream = stage.wire.stream(watch())
        try:
            for line in stream.lines(10.0):
                result.lines.append(line)
            result.ending = "ended"
        except Unavailable as error:
            result.ending = error.code
        result.at = stage.scheduler.now
        result.still_open = stage.api.watches.count()

    stage.run(call)
    return result


def test_a_dropped_line_is_not_heard_and_the_next_one_is() -> None:
    result = listened(Ailment.DROPPED)

    assert result.names == ["a", "c"]


def test_a_garbled_line_is_no_json_and_the_next_one_is() -> None:
    result = listened(Ailment.GARBLED)

    assert len(result.lines) == 3
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(result.lines[1])


@pytest.mark.parametrize(
    ("ailment", "ending", "at"),
    [
        (Ailment.BROKEN, "cluster_unavailable", 0.0),
        (Ailment.ENDED, "ended", 0.0),
        (Ailment.SILENT, "cluster_unavailable", 10.0),
    ],
)
def test_a_watch_that_breaks_ends_or_falls_silent_is_over(
    ailment: Ailment, ending: str, at: float
) -> None:
    result = listened(ailment)

    assert (result.names, result.ending, result.at) == (["a"], ending, at)
    assert result.still_open == 0


def test_a_half_open_watch_can_be_closed_from_another_thread() -> None:
    clock = SystemClock()
    waits = Event()

    class Announced(RealLine):
        def signal(self) -> Closing:
            return Closing(waits)

    api = MemoryApi(clock.now, clock.monotonic)
    silent = WireFault(lines=lambda index, line: Ailment.SILENT)
    wire = FaultyWire(api, Announced(clock.monotonic), lambda verb, resource: silent)
    api.send(creation())
    stream = wire.stream(watch())

    def close() -> None:
        assert waits.wait(10.0)
        stream.close()

    thread = Thread(target=close)
    thread.start()
    heard = list(stream.lines(300.0))
    thread.join()

    assert heard == []


class Closing(Event):
    """Tells when somebody waits for it."""

    def __init__(self, waits: Event) -> None:
        super().__init__()
        self._waits = waits

    def wait(self, timeout: float | None = None) -> bool:
        self._waits.set()
        return super().wait(timeout)
