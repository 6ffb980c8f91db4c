"""A Job controller: ``… controller --kubeconfig FILE`` lets Jobs of searches complete in time.

Each Job goes on for as long as its annotation ``soak/life`` says, those of a foreign program for at
most ORPHAN_SECONDS, should that program not end them itself. Markers are not touched. Prints an
``ended`` deed for each finalizer of ours.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any, Final

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable
from blastyard.kube.wire import Call
from blastyard.testing.cluster_soak.deeds import Teller
from blastyard.testing.controlplane_request import MERGE_PATCH
from blastyard.testing.foreign.count import is_terminal
from blastyard.testing.plain_wire import Access, PlainWire

ORPHAN_SECONDS: Final = 25.0
EVERY_SECONDS: Final = 0.25
_FINALIZER_LATER: Final = 0.5
"""The merge goes on for a moment after the Jobs that compute."""


class Controller:
    """Lists, and completes what is due."""

    def __init__(self, access: Access) -> None:
        self._wire = PlainWire(access, "soak-controller")
        self._path = f"/apis/batch/v1/namespaces/{access.namespace}/jobs"
        self._clock = SystemClock()
        self._tell = Teller("controller")
        self._seen: dict[str, float] = {}
        """Uid to when it was first seen, in monotonic seconds."""
        self._told: set[str] = set()

    def run(self) -> None:
        """For ever."""
        never = Event()
        while True:
            with suppress(Unavailable):
                self.step()
            never.wait(EVERY_SECONDS)

    def step(self) -> None:
        """Once."""
        answer = self._wire.send(Call("GET", self._path, timeout=5.0))
        if answer.status != 200:
            return
        for job in json.loads(answer.body)["items"]:
            labels = job["metadata"].get("labels") or {}
            if "blastyard/marker" in labels:
                continue
            if is_terminal(job):
                self._tell_end(job, labels)
            elif self._is_due(job, labels):
                self._complete(job, labels)

    def _is_due(self, job: dict[str, Any], labels: dict[str, str]) -> bool:
        notes = job["metadata"].get("annotations") or {}
        now = self._clock.monotonic()
        age = now - self._seen.setdefault(job["metadata"]["uid"], now)
        life = float(notes.get("soak/life", ORPHAN_SECONDS))
        return age >= life + (_FINALIZER_LATER if labels.get("app") == "finalizer" else 0.0)

    def _complete(self, job: dict[str, Any], labels: dict[str, str]) -> None:
        at = datetime.fromtimestamp(self._clock.now().timestamp(), UTC)
        now = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        ends = [
            {"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        status = {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": ends}
        status |= {"active": 0, "ready": 0, "terminating": 0}
        path = f"{self._path}/{job['metadata']['name']}/status"
        body = json.dumps({"status": status}).encode()
        answer = self._wire.send(Call("PATCH", path, body=body, content_type=MERGE_PATCH))
        if answer.status == 200:
            self._tell_end(job, labels)

    def _tell_end(self, job: dict[str, Any], labels: dict[str, str]) -> None:
        search = (job["metadata"].get("annotations") or {}).get("soak/search")
        if search and labels.get("app") == "finalizer" and search not in self._told:
            self._told.add(search)
            self._tell("ended", search, outcome="completed")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; ends only by a signal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    Controller(Access.read(parser.parse_args(arguments).kubeconfig)).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
