"""A wire whose answers are given beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from blastyard.kube.client import Client
from blastyard.kube.wire import Answer, Call

DATE = datetime(2026, 11, 30, 17, 46, 13, tzinfo=UTC)
UID = "29bf31f8-7899-4ea4-8ca2-0553fcabc435"


@dataclass
class Said:
    """A stream of these lines; an exception among them is raised in its place."""

    told: list[bytes | Exception] = field(default_factory=list)
    status: int = 200
    body: bytes = b""
    retry_after: float | None = None
    closed: bool = False
    quiet: float | None = None

    def lines(self, quiet: float) -> Iterator[bytes]:
        self.quiet = quiet
        for line in self.told:
            if isinstance(line, Exception):
                raise line
            yield line

    def close(self) -> None:
        self.closed = True


class Script:
    """Answers in their order, whatever is asked; and what was asked."""

    def __init__(self, *answers: Answer | Exception | Said) -> None:
        self.answers = list(answers)
        self.calls: list[Call] = []
        self.observed: list[tuple[str, str, int]] = []

    def send(self, call: Call) -> Answer:
        self.calls.append(call)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Answer)
        return answer

    def stream(self, call: Call) -> Said:
        self.calls.append(call)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Said)
        return answer

    def close(self) -> None:
        """Nothing is open."""

    def client(self, namespace: str = "lab") -> Client:
        return Client(self, namespace, lambda: 1.0, lambda *told: self.observed.append(told[:3]))

    def body(self, number: int = -1) -> Any:
        """What a request carried."""
        return msgspec.json.decode(self.calls[number].body or b"null")


def answer(body: Any = None, status: int = 200, retry_after: float | None = None) -> Answer:
    """An answer of the server; a body of bytes is sent as it is."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return Answer(status, raw, DATE, retry_after, 0.5, 1.0)


def status(code: int, reason: str, message: str = "said", **details: Any) -> Answer:
    """A ``Status`` of the server."""
    document = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return answer({**document, "details": details} if details else document, code)


def page(names: list[str], version: str = "9", continued: str = "") -> Answer:
    """A page of a list of Leases."""
    metadata = {"resourceVersion": version, "continue": continued}
    return answer({"metadata": metadata, "items": [lease(name) for name in names]})


def lease(name: str = "x", version: str = "5", **more: Any) -> dict[str, Any]:
    """A Lease as the server has it."""
    metadata = {"name": name, "uid": UID, "resourceVersion": version}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, **more}


def event(kind: str, item: object) -> bytes:
    """A line of a watch."""
    return msgspec.json.encode({"type": kind, "object": item})


def bookmark(version: str) -> bytes:
    """A line that says that nothing happened."""
    return event("BOOKMARK", {"kind": "Lease", "metadata": {"resourceVersion": version}})
