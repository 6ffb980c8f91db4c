"""A wire whose calls go wrong as a plan says, around any wire that works.

A plan is asked once per call, with the verb and the resource as Kubernetes names them, and answers
a :class:`~blastyard.testing.wire_fault.WireFault`. The checkpoint is called before and after every
call, so that a scheduler can let others act there: ``before:update:leases/elb-blast-submit-lab``,
``after:list:jobs``.

A conflict that never was is no fault here: no API server answers 409 to what it applied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import msgspec

from blastyard.domain.errors import Unavailable
from blastyard.kube.wire import Answer, Call, Stream, Wire
from blastyard.testing.faulty import Checkpoint, no_checkpoint
from blastyard.testing.line import Line
from blastyard.testing.memory_api.feed import Refused, Signal
from blastyard.testing.wire_fault import (
    MADE_UP,
    Ailment,
    Trouble,
    WireFault,
    WirePlan,
    no_wire_fault,
)


class FaultyWire:
    """A ``Wire`` around ``inner``."""

    def __init__(
        self,
        inner: Wire,
        line: Line,
        plan: WirePlan = no_wire_fault,
        checkpoint: Checkpoint = no_checkpoint,
    ) -> None:
        self._inner = inner
        self._line = line
        self._plan = plan
        self._checkpoint = checkpoint

    def send(self, call: Call) -> Answer:
        """See ``Wire``."""
        verb, resource = named(call)
        self._checkpoint(f"before:{verb}:{resource}")
        try:
            return self._send(call, self._plan(verb, resource))
        finally:
            self._checkpoint(f"after:{verb}:{resource}")

    def stream(self, call: Call) -> Stream:
        """See ``Wire``."""
        verb, resource = named(call)
        self._checkpoint(f"before:{verb}:{resource}")
        try:
            return self._stream(call, self._plan(verb, resource))
        finally:
            self._checkpoint(f"after:{verb}:{resource}")

    def close(self) -> None:
        """See ``Wire``."""
        self._inner.close()

    def _send(self, call: Call, fault: WireFault) -> Answer:
        journey = self._depart(call, fault)
        made_up = self._made_up(fault)
        if made_up is None:
            answer = self._inner.send(call)
        else:
            answer = made_up
            if fault.trouble is Trouble.GATEWAY_TIMEOUT:
                self._inner.send(call)
        journey.travel(fault.after)
        if fault.trouble is Trouble.LOST_ANSWER:
            raise _lost("the answer was lost")
        if fault.trouble is Trouble.TRUNCATED:
            answer = replace(answer, body=answer.body[: len(answer.body) // 2])
        return replace(answer, sent_at=journey.since, received_at=self._line.monotonic())

    def _stream(self, call: Call, fault: WireFault) -> Stream:
        journey = self._depart(call, fault)
        answer = self._made_up(fault)
        if answer is not None:
            return Refused(answer.status, answer.body)
        opened = self._inner.stream(call)
        if fault.trouble in (Trouble.LOST_ANSWER, Trouble.TRUNCATED):
            opened.close()
            raise _lost("the answer was lost")
        try:
            journey.travel(fault.after)
        except BaseException:
            opened.close()
            raise
        return AilingStream(opened, fault.lines, self._line.signal())

    def _depart(self, call: Call, fault: WireFault) -> _Journey:
        """Let the request arrive. Raises ``Unavailable`` if it does not, or not in time."""
        journey = _Journey(self._line, call.timeout)
        if fault.trouble is Trouble.LOST_REQUEST:
            raise _lost("the request was lost")
        if fault.trouble is Trouble.LATE_REQUEST:
            self._line.later(max(fault.before, call.timeout), lambda: self._arrive_late(call))
            journey.travel(float("inf"))
        journey.travel(fault.before)
        return journey

    def _arrive_late(self, call: Call) -> None:
        """Nobody waits for the answer any more."""
        if named(call)[0] != "watch":
            self._inner.send(call)

    def _made_up(self, fault: WireFault) -> Answer | None:
        """An answer that is not the API server's own."""
        made_up = MADE_UP.get(fault.trouble)
        if made_up is None:
            return None
        retry_after = fault.retry_after if fault.trouble is Trouble.BUSY else None
        return Answer(*made_up, date=None, retry_after=retry_after, sent_at=0.0, received_at=0.0)


class _Journey:
    """One call on its way, which has only so much time."""

    def __init__(self, line: Line, timeout: float) -> None:
        self.since = line.monotonic()
        self._line = line
        self._timeout = timeout

    def travel(self, seconds: float) -> None:
        """Let so much time pass. Raises ``Unavailable`` at the time-out."""
        left = self.since + self._timeout - self._line.monotonic()
        if min(seconds, left) > 0:
            self._line.signal().wait(min(seconds, left))
        if seconds > left:
            raise _lost("no answer came in time")


class AilingStream:
    """A ``Stream`` around an open one, some of whose lines are not heard."""

    def __init__(
        self, inner: Stream, ailments: Callable[[int, bytes], Ailment], closed: Signal
    ) -> None:
        self.status = inner.status
        self.body = inner.body
        self.retry_after = inner.retry_after
        self._inner = inner
        self._ailments = ailments
        self._closed = closed
        self._index = 0

    def lines(self, quiet: float) -> Iterator[bytes]:
        """See ``Stream``."""
        for line in self._inner.lines(quiet):
            ailment = self._ailments(self._index, line)
            self._index += 1
            match ailment:
                case Ailment.OK:
                    yield line
                case Ailment.GARBLED:
                    yield line[: len(line) // 2]
                case Ailment.BROKEN | Ailment.ENDED | Ailment.SILENT:
                    self._inner.close()
                    self._fall_ill(ailment, quiet)
                    return

    def close(self) -> None:
        """See ``Stream``."""
        self._inner.close()
        self._closed.set()

    def _fall_ill(self, ailment: Ailment, quiet: float) -> None:
        if ailment is Ailment.BROKEN:
            raise _lost("the connection was reset")
        if ailment is Ailment.SILENT and not self._closed.wait(quiet):
            raise _lost("nothing came for too long")


_NAMESPACED: Final = re.compile(r"/namespaces/[^/]+/(.+)")
_VERBS: Final[Mapping[str, tuple[str, str]]] = {
    "GET": ("get", "list"),
    "POST": ("create", "create"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("delete", "deletecollection"),
}
"""Method to the verb for one object, and for a collection."""


def named(call: Call) -> tuple[str, str]:
    """The verb and the resource of a call; what is created is named by its body."""
    found = _NAMESPACED.search(call.path)
    resource = found[1] if found else call.path.rpartition("/")[2]
    single, several = _VERBS[call.method]
    verb = single if "/" in resource else several
    if verb == "create":
        return verb, "/".join(filter(None, (resource, _name(call.body))))
    if verb == "list" and call.query.get("watch") in ("1", "true"):
        verb = "watch"
    return verb, resource


class _Named(msgspec.Struct):
    name: str = ""


class _Sent(msgspec.Struct):
    metadata: _Named = msgspec.field(default_factory=_Named)


def _name(body: bytes | None) -> str:
    try:
        return msgspec.json.decode(body or b"{}", type=_Sent).metadata.name
    except msgspec.DecodeError:
        return ""


def _lost(why: str) -> Unavailable:
    message = f"The call came to nothing: {why}."
    return Unavailable("cluster_unavailable", message, "Read again before anything else.")
