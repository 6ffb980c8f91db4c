"""Tells a history change by change, as a recorder would have seen it."""

from __future__ import annotations

import json
from typing import Any

from blastyard.testing.foreign.lease import stamp
from blastyard.testing.recorded.deed import ADDED, DELETED, GAP, MODIFIED, Change, Deed
from blastyard.testing.recorded.rule import Terms
from blastyard.testing.recorded.verdict import Verdict, check

BEGAN = 1_800_000_000.0


class Story:
    """A namespace ``lab``, one second for each thing that happens."""

    def __init__(self, ceiling: int = 3) -> None:
        self.at = BEGAN
        self.version = 10
        self.changes: list[Change] = []
        self.deeds: list[Deed] = []
        self.ceiling = ceiling
        self.uid = "u1"
        self.fence = 0
        self.holds: dict[str, dict[str, Any]] = {}
        self.tickets: dict[str, dict[str, Any]] = {}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.beat()

    def verdict(self, **terms: Any) -> Verdict:
        return check("lab", self.changes, self.deeds, Terms(**terms))

    def rules(self, **terms: Any) -> list[str]:
        """Which rules were broken."""
        return [violation.rule for violation in self.verdict(**terms).violations]

    def wait(self, seconds: float) -> None:
        self.at += seconds

    def say(self, what: str, search: str, who: str = "serve-1", **more: Any) -> None:
        self.at += 0.1
        self.deeds.append(Deed(self.at, who, what, search, more))

    def _change(self, what: str, kind: str, document: dict[str, Any], **more: Any) -> None:
        self.version += 1
        self.at += 1.0
        name = document["metadata"]["name"]
        self.changes.append(Change(self.version, self.at, what, kind, name, document, **more))

    # -- objects -----------------------------------------------------------------------------------

    def lease(self, holder: str, seconds: int = 900) -> str:
        """Write the submit Lease; its version."""
        spec = {
            "holderIdentity": holder,
            "renewTime": stamp(self.at),
            "leaseDurationSeconds": seconds,
        }
        metadata = {"name": "elb-blast-submit-lab", "uid": "lease"}
        self._change(MODIFIED, "Lease", {"metadata": metadata, "spec": spec})
        return str(self.version)

    def beat(self, submitter: str = "serve-1") -> None:
        metadata = {"name": f"blastyard-submitter-{submitter}", "uid": submitter}
        self._change(
            MODIFIED, "Lease", {"metadata": metadata, "spec": {"holderIdentity": submitter}}
        )

    def ledger(self) -> None:
        body = {
            "uid": self.uid,
            "fence": self.fence,
            "policy": {"ceiling": self.ceiling},
            "holds": self.holds,
            "tickets": self.tickets,
        }
        metadata = {"name": "elb-blast-ledger-lab", "uid": "ledger"}
        document = {"metadata": metadata, "data": {"ledger": json.dumps(body)}}
        self._change(MODIFIED, "ConfigMap", document)

    def job(self, app: str, name: str, *, marker: bool = False, **notes: str) -> str:
        """Make a Job; its name."""
        labels = {"app": app, "elb-job-id": name}
        if marker:
            labels["blastyard/marker"] = "true"
        title = f"{app}-{name}-{self.version}"
        annotations = {f"blastyard/{key}": text for key, text in notes.items()}
        metadata = {"name": title, "uid": title, "labels": labels, "annotations": annotations}
        self.jobs[title] = {"metadata": metadata, "status": {}}
        self._change(ADDED, "Job", self.jobs[title])
        return title

    def complete(self, title: str) -> None:
        self.jobs[title] = {**self.jobs[title], "status": {"succeeded": 1}}
        self._change(MODIFIED, "Job", self.jobs[title])

    def delete(self, title: str) -> None:
        self._change(DELETED, "Job", self.jobs.pop(title))

    def gap(self) -> None:
        self._change(GAP, "Lease", {"metadata": {"name": ""}})

    # -- what blastyard does ---------------------------------------------------------------------

    def ticket(self, search: str, user: str = "ada", level: int = 1, **more: Any) -> None:
        entry = {"user": user, "level": level, "submitter": "serve-1"}
        entry |= {"sequence": len(self.tickets) + len(self.holds) + 1, **more}
        self.tickets[search] = entry
        self.say("accepted", search)
        self.ledger()

    def enter(self, search: str) -> str:
        holder = f"blastyard-{search}-1"
        self.say("acquired", search, holder=holder, version=self.lease(holder))
        return holder

    def reserve(self, search: str) -> None:
        self.fence += 1
        ticket = self.tickets.pop(search)
        self.holds[search] = {
            "ticket": ticket,
            "submitter": "serve-1",
            "attempt": 1,
            "fence": self.fence,
            "state": "reserved",
        }
        self.ledger()

    def make(self, search: str, holder: str) -> list[str]:
        """The command: its Jobs."""
        self.say("submitting", search, holder=holder, ids=[search])
        fence = f"{self.uid}/{self.fence}"
        made = [
            self.job("submit", search),
            self.job("finalizer", search, holder=holder, fence=fence, id=search),
        ]
        self.say("submitted", search, holder=holder, ids=[search], code=0)
        return made

    def leave(self, search: str, holder: str) -> None:
        self.holds[search]["state"] = "submitted"
        self.ledger()
        self.say("releasing", search, holder=holder)
        self.say("released", search, holder=holder, version=self.lease(""))

    def admit(self, search: str) -> list[str]:
        """All of it, for a search with a ticket."""
        holder = self.enter(search)
        self.reserve(search)
        made = self.make(search, holder)
        self.leave(search, holder)
        return made

    def end(self, search: str, made: list[str]) -> None:
        for title in made:
            self.complete(title)
        self.say("ended", search, outcome="completed")
        self.holds.pop(search, None)
        self.ledger()

    # -- what others do ----------------------------------------------------------------------------

    def foreign(self, search: str, *, gate: bool = True) -> list[str]:
        """A foreign program's submission."""
        holder = f"dash-{search}" if gate else ""
        self.say("accepted", search, "dash")
        if gate:
            self.say("acquired", search, "dash", holder=holder, version=self.lease(holder))
        self.say("submitting", search, "dash", holder=holder, gate=gate, ids=[search])
        made = [self.job("submit", search), self.job("finalizer", search)]
        self.say("submitted", search, "dash", holder=holder, gate=gate, ids=[search])
        if gate:
            self.say("releasing", search, "dash", holder=holder)
            self.say("released", search, "dash", holder=holder, version=self.lease(""))
        return made

    def foreign_end(self, search: str, made: list[str]) -> None:
        for title in made:
            self.complete(title)
        self.say("ended", search, "dash", outcome="completed")
