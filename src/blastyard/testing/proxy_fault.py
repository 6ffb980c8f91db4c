"""What the proxy does to which requests: faults, the rules that choose them, and what was seen.

All of it is thread-safe, and deterministic by count: a rule acts on the ``skip`` + 1st matching
request and on the ``times`` - 1 after it, whatever the time.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from blastyard.domain.clock import Clock, SystemClock

WAIT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class LostRequest:
    """The connection is closed, and the server never hears of the request."""


@dataclass(frozen=True, slots=True)
class LostAnswer:
    """The server has done what was asked; the connection is closed before a byte of its answer."""


@dataclass(frozen=True, slots=True)
class Delay:
    """The request, or the answer, is kept until its rule is released, at most so many seconds.

    A kept request is forwarded in the end even when whoever asked has gone: it lands late.
    """

    answer: bool = False
    at_most: float = WAIT_SECONDS


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset after so many bytes of the answer's body."""

    after: int = 0


@dataclass(frozen=True, slots=True)
class Truncated:
    """Only the first ``keep`` bytes of the body come. For answers that end by themselves.

    ``honest``: the announced length is the shortened one, and only the JSON is broken; otherwise
    the full length was announced, and the connection closes early.
    """

    keep: int
    honest: bool = True


@dataclass(frozen=True, slots=True)
class HalfOpen:
    """After so many lines of the body nothing more comes, and the connection stays."""

    after: int = 0


@dataclass(frozen=True, slots=True)
class Said:
    """The proxy answers by itself; the server never hears of the request."""

    status: int
    body: bytes
    content_type: str = "application/json"
    retry_after: int | None = None
    fields: tuple[tuple[str, str], ...] = ()
    """Further header fields."""


Fault = LostRequest | LostAnswer | Delay | Reset | Truncated | HalfOpen | Said

_HTML: Final = b"<html><head><title>%d</title></head><body><h1>%d</h1></body></html>"


def _status(code: int, reason: str, message: str, retry_after: int | None = None) -> Said:
    """A ``Status`` as the API server says it."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason}
    said = json.dumps({**body, "message": message, "code": code}).encode()
    return Said(code, said, retry_after=retry_after)


def too_many(retry_after: int = 1) -> Said:
    """429 as the API server's own flow control says it."""
    message = "too many requests, please try again later"
    return _status(429, "TooManyRequests", message, retry_after)


def html(status: int = 502) -> Said:
    """What a load balancer in front of the API server says."""
    return Said(status, _HTML % (status, status), "text/html")


def unavailable(status: int = 503) -> Said:
    """What the API server says while it starts or loses its store."""
    message = "the server is currently unable to handle the request"
    return _status(status, "ServiceUnavailable", message)


def forbidden() -> Said:
    """What the API server says to whoever has no right, and to all before it knows of rights."""
    return _status(403, "Forbidden", 'leases is forbidden: User "lab" cannot get resource')


class Rule:
    """One fault for some requests.

    ``verb`` and ``path`` are regular expressions: the method as a whole, and something to be found
    in the path with its query. ``times`` = ``None`` acts for ever.
    """

    def __init__(
        self,
        fault: Fault,
        verb: str = ".*",
        path: str = "",
        *,
        skip: int = 0,
        times: int | None = 1,
    ) -> None:
        self.fault = fault
        self._verb = re.compile(verb)
        self._path = re.compile(path)
        self._skip = skip
        self._left = times
        self._hits = 0
        self._released = False
        self._waiting: list[Callable[[], None]] = []
        self._changed = threading.Condition()

    def takes(self, verb: str, target: str) -> bool:
        """Whether this request gets the fault; counts it."""
        if not self._verb.fullmatch(verb) or not self._path.search(target):
            return False
        with self._changed:
            if self._skip > 0:
                self._skip -= 1
                return False
            if self._left == 0:
                return False
            if self._left is not None:
                self._left -= 1
            self._hits += 1
            self._changed.notify_all()
            return True

    @property
    def hits(self) -> int:
        """How many requests got the fault."""
        with self._changed:
            return self._hits

    def wait(self, hits: int = 1, timeout: float = WAIT_SECONDS) -> None:
        """Until so many requests got the fault. Raises ``TimeoutError``."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._hits >= hits, timeout):
                raise TimeoutError(f"{self._hits} of {hits} requests met {self.fault} in time")

    def release(self) -> None:
        """Let go what is kept: delayed requests and answers go on, half-open streams end."""
        with self._changed:
            self._released = True
            waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def when_released(self, call: Callable[[], None]) -> None:
        """Call it once the rule is released, at once if it is already."""
        with self._changed:
            if not self._released:
                self._waiting.append(call)
                return
        call()


class Plan:
    """The rules in force. The first one that takes a request decides; later ones do not see it."""

    def __init__(self) -> None:
        self._rules: tuple[Rule, ...] = ()
        self._lock = threading.Lock()

    def add(self, rule: Rule) -> Rule:
        """Put a rule behind the others."""
        with self._lock:
            self._rules = (*self._rules, rule)
        return rule

    def clear(self) -> None:
        """Fine weather: no rules, and what they kept goes on."""
        with self._lock:
            rules, self._rules = self._rules, ()
        for rule in rules:
            rule.release()

    def choose(self, verb: str, target: str) -> Rule | None:
        """The rule for this request."""
        with self._lock:
            rules = self._rules
        return next((rule for rule in rules if rule.takes(verb, target)), None)


@dataclass(slots=True)
class Record:
    """One request that came."""

    verb: str
    target: str
    client: str
    """Its User-Agent."""
    at: float
    """Monotonic seconds when all of it had come."""
    fault: Fault | None
    status: int = 0
    """Set just before the answer's head is passed on; 0 = none was."""
    seconds: float | None = None
    """Until all of its answer had been passed on, or it ended otherwise; ``None`` = not yet."""


class Log:
    """Every request, in the order in which they came."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._records: list[Record] = []
        self._changed = threading.Condition()

    def begin(self, verb: str, target: str, client: str, fault: Fault | None) -> Record:
        """A request has come."""
        record = Record(verb, target, client, self._clock.monotonic(), fault)
        with self._changed:
            self._records.append(record)
        return record

    def end(self, record: Record) -> None:
        """Nothing more of its answer will be passed on."""
        with self._changed:
            record.seconds = self._clock.monotonic() - record.at
            self._changed.notify_all()

    def clear(self) -> None:
        """Forget what was seen so far."""
        with self._changed:
            self._records.clear()

    def records(self, verb: str = ".*", path: str = "", client: str = "") -> list[Record]:
        """Those that match the regular expressions: the verb as a whole, the others in part."""
        with self._changed:
            records = list(self._records)
        return [
            record
            for record in records
            if re.fullmatch(verb, record.verb)
            and re.search(path, record.target)
            and re.search(client, record.client)
        ]

    def wait(self, count: int, verb: str = ".*", path: str = "", seconds: float = 30.0) -> None:
        """Until so many matching requests have ended. Raises ``TimeoutError``."""

        def is_over() -> bool:
            ended = [r for r in self.records(verb, path) if r.seconds is not None]
            return len(ended) >= count

        with self._changed:
            if not self._changed.wait_for(is_over, seconds):
                raise TimeoutError(f"no {count} requests {verb} {path} ended in {seconds} s")
