"""A cluster without one: searches that are handed to it go on until the test says otherwise."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

from blastyard.domain.errors import Failure
from blastyard.engine.port import Output, Task
from blastyard.engine.remote import (
    Absent,
    AtWork,
    Broken,
    Collected,
    Errand,
    NoAnswer,
    Outcome,
    Over,
    Partial,
    Sighted,
    Submitted,
)

ENDED = Failure("terminal_exec_unavailable", "The submit command was ended.", "Try again.")
BROKEN = Failure("blast_failed", "A Job has failed.", "See its logs.")
MISSING = Failure("result_incomplete", "There is no result.", "Run it again.")


class Makes(StrEnum):
    """What a submit command makes before it ends."""

    ALL = "all"
    PART = "part"
    NOTHING = "nothing"


@dataclass(slots=True)
class Plan:
    """What the next commands do. ``waits``: they do not end by themselves; ``dies``: the process
    that runs one comes no further than that."""

    makes: Makes = Makes.ALL
    outcome: Outcome = field(default_factory=Submitted)
    waits: bool = False
    dies: bool = False


class Died(BaseException):
    """The process is no more."""


@dataclass(slots=True)
class FakeCluster:
    """What is there, by id, whoever handed it over, and how often that was done."""

    plan: Plan = field(default_factory=Plan)
    there: dict[str, Sighted] = field(default_factory=dict)
    results: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    """Ids whose command did not come to its end by itself."""
    submitted: list[str] = field(default_factory=list)

    def finish(self, name: str) -> None:
        """It ends well."""
        self.there[name] = Over(2)
        self.results.add(name)

    def fail(self, name: str) -> None:
        """It ends badly."""
        self.there[name] = Broken(BROKEN)


class FakeSubmission:
    """A :class:`~blastyard.engine.remote.Submission` on a fake cluster."""

    def __init__(self, cluster: FakeCluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self._outcome: Outcome | None = None
        cluster.submitted.append(name)
        made: dict[Makes, Sighted] = {
            Makes.ALL: AtWork(0, 2),
            Makes.PART: Partial((f"submit-{name}",)),
        }
        if found := made.get(cluster.plan.makes):
            cluster.there[name] = found
        if not cluster.plan.waits:
            self._outcome = cluster.plan.outcome
            if not isinstance(self._outcome, Submitted):
                cluster.ended.add(name)

    def extend(self, deadline: float | None) -> None:
        """See the port, as for all below."""

    def end(self) -> None:
        if self._outcome is None:
            self._outcome = NoAnswer(ENDED)
            self._cluster.ended.add(self._name)

    def wait(self, timeout: float | None = None) -> object | None:  # noqa: ARG002
        if self._cluster.plan.dies:
            raise Died
        return self._outcome

    def outcome(self) -> Outcome | None:
        return self._outcome

    def close(self) -> None:
        self.end()


@dataclass(frozen=True, slots=True)
class _Ready:
    cluster: FakeCluster
    name: str

    def start(self, deadline: float | None) -> FakeSubmission:  # noqa: ARG002
        return FakeSubmission(self.cluster, self.name)


class FakeRemoteEngine:
    """A :class:`~blastyard.engine.remote.RemoteEngine` of one process on a fake cluster."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster

    def name(self, search_id: str, attempt: int) -> str:
        """See the port, as for all below."""
        return f"{search_id}-{attempt}"

    def prepare(self, errand: Errand) -> _Ready:
        return _Ready(self.cluster, errand.name)

    def look(self, name: str) -> Sighted:
        return self.cluster.there.get(name, Absent())

    def left(self, errand: Errand) -> Sighted:
        found = self.look(errand.name)
        if errand.name in self.cluster.ended and not isinstance(found, Absent):
            return Partial((errand.name,))
        return found

    def poll(self, name: str) -> Sighted:
        return self.look(name)

    def cancel(self, name: str) -> None:
        self.cluster.there.pop(name, None)

    def collect(self, errand: Errand, seen: int) -> Collected | Failure:  # noqa: ARG002
        if errand.name not in self.cluster.results:
            return MISSING
        content = f"result of {errand.name}\n".encode()
        path = errand.task.directory / f"result.{errand.task.extension}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return Collected(Output(path, len(content), hashlib.sha256(content).hexdigest()))

    def discard(self, task: Task) -> None:
        """There is nothing to remove."""
