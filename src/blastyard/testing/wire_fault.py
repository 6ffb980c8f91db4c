"""What can go wrong between a client and an API server, and with the lines of a watch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec


class Trouble(StrEnum):
    """What happens to one call, or to the opening of one stream."""

    OK = "ok"
    LOST_REQUEST = "lost_request"
    """It never arrives: nothing happens, ``Unavailable``."""
    LOST_ANSWER = "lost_answer"
    """It happens, and then ``Unavailable``."""
    LATE_REQUEST = "late_request"
    """``Unavailable`` at the caller's time-out, and *later* it happens all the same."""
    BUSY = "busy"
    """429 with ``Retry-After``; nothing happens."""
    REFUSED = "refused"
    """503 from the API server; nothing happens."""
    CRASHED = "crashed"
    """500 and a page of HTML; nothing happens."""
    GATEWAY_TIMEOUT = "gateway_timeout"
    """It happens, but a proxy answers 504 and a page of HTML."""
    TRUNCATED = "truncated"
    """It happens, and half of the answer's body arrives as if it were whole."""


class Ailment(StrEnum):
    """What happens to one line of a stream that was opened."""

    OK = "ok"
    DROPPED = "dropped"
    """It is not heard; the next one is."""
    BROKEN = "broken"
    """Instead of it, the connection is reset."""
    ENDED = "ended"
    """Instead of it, the stream ends as if the server had closed it."""
    SILENT = "silent"
    """Instead of it, nothing: the connection is half open from now on."""
    GARBLED = "garbled"
    """Half of it is heard."""


def _hear_all(index: int, line: bytes) -> Ailment:  # noqa: ARG001
    return Ailment.OK


@dataclass(frozen=True, slots=True)
class WireFault:
    """What happens to one call, and how long it takes."""

    trouble: Trouble = Trouble.OK
    before: float = 0.0
    """Seconds that the request travels. Longer than the call's time-out, it never arrives."""
    after: float = 0.0
    """Seconds that the answer travels. It is lost when the call's time-out is over by then."""
    retry_after: float = 1.0
    lines: Callable[[int, bytes], Ailment] = field(default=_hear_all)
    """Asked for every line of a stream, with its index from 0."""


WirePlan = Callable[[str, str], WireFault]
"""From the verb (``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete``,
``deletecollection``) and the resource (``jobs``, ``jobs/name``, ``jobs/name/status``) to a fault.
"""

FINE: Final = WireFault()


def no_wire_fault(verb: str, resource: str) -> WireFault:  # noqa: ARG001
    """The plan under which every call goes well."""
    return FINE


def _status(code: int, reason: str, message: str) -> bytes:
    document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return msgspec.json.encode({**document, "message": message, "reason": reason, "code": code})


def _page(title: str) -> bytes:
    return f"<html><head><title>{title}</title></head><body>{title}</body></html>".encode()


MADE_UP: Final[Mapping[Trouble, tuple[int, bytes]]] = {
    Trouble.BUSY: (
        429,
        _status(429, "TooManyRequests", "Too many requests, please try again later."),
    ),
    Trouble.REFUSED: (
        503,
        _status(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
    ),
    Trouble.CRASHED: (500, _page("500 Internal Server Error")),
    Trouble.GATEWAY_TIMEOUT: (504, _page("504 Gateway Time-out")),
}
"""Status and body of the answers that no API server gave."""
