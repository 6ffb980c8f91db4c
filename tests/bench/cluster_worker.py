"""One submitter of the cluster benchmark: many searches wait in it, and each is submitted in turn.

    python cluster_worker.py NAME COUNT   (KUBECONFIG, BLASTYARD_HOME set)

Prints one JSON line when its searches are published, one for each submission (monotonic seconds
just before its finalizer was sent, and after its stay), and one with what it asked the API server.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import Counter
from threading import Event, Thread

from blastyard.admission.hold import Attempt, Submission
from blastyard.admission.ledger import Ledger
from blastyard.admission.outcome import Granted
from blastyard.admission.stay import Stay
from blastyard.admission.ticket import PUBLISHED_PER_SUBMITTER, Wish
from blastyard.bootstrap.cluster import assembled, connect
from blastyard.bootstrap.gate import this_process
from blastyard.kube.client import Client
from blastyard.kube.resource import JOBS
from blastyard.settings import read_settings

REFILL_AT = PUBLISHED_PER_SUBMITTER * 3 // 4


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def finalizer(namespace: str, search: str) -> dict[str, object]:
    """A search that never runs: whoever measures completes it."""
    labels = {"app": "finalizer", "elb-job-id": search}
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "localhost/x:1"}]}
    return {
        "metadata": {"name": f"f-{search}", "namespace": namespace, "labels": labels},
        "spec": {"suspend": True, "ttlSecondsAfterFinished": 20, "template": {"spec": pod}},
    }


class Submitter:
    """The searches of one process."""

    def __init__(self, name: str, count: int) -> None:
        settings = read_settings()
        connection = connect(settings)
        self.calls: Counter[tuple[str, str]] = Counter()
        self.client = Client(
            connection.wire, connection.client.namespace, time.monotonic, self._count
        )
        connection = type(connection)(connection.target, connection.wire, self.client)
        made = assembled(connection, settings, this_process("serve"))
        self.gate, self.documents = made.opened.gate, made.opened.documents
        self.tend = made.opened.tend
        made.informer.start()
        self.gate.beat()
        self.watch = self.documents.watch()
        self.left = [Wish(f"{name}-{number}", "ada", 1) for number in range(count)]
        self.waiting = 0
        Thread(target=self._beat, daemon=True).start()

    def _count(self, verb: str, resource_: str, _status: int, _seconds: float) -> None:
        self.calls[verb, resource_] += 1

    def _beat(self) -> None:
        while not Event().wait(self.gate.timings.beat.total_seconds()):
            self.gate.beat()

    def refill(self, ledger: Ledger | None = None) -> None:
        """Publish as many as the window has places for, when enough have gone."""
        if not self.left or self.waiting > REFILL_AT:
            return
        after = self.gate.publish(self.left[: PUBLISHED_PER_SUBMITTER + 25])
        before = len(self.left)
        self.left = [wish for wish in self.left if wish.search not in after.tickets]
        self.waiting += before - len(self.left)

    def run(self) -> None:
        self.refill()
        say(event="ready", published=self.waiting)
        sys.stdin.readline()
        self.calls.clear()
        tended = time.monotonic()
        while self.waiting or self.left:
            due = self.gate.due()
            if due.searches:
                self.submit(due.searches[0])
            else:
                pause = 2.0 if due.until is None else (due.until - due.now).total_seconds()
                self.watch.wait(max(0.0, min(2.0, pause)))
            if time.monotonic() - tended > 2.0:
                tended = time.monotonic()
                self.tend()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        say(event="end", calls={" ".join(key): n for key, n in self.calls.items()}, mib=memory)

    def submit(self, search: str) -> None:
        """Submit it, and what follows of ours while nobody else is first."""
        stay = self.gate.enter(search, 1)
        if not isinstance(stay, Stay):
            return
        at_work: Stay | None = stay
        following: str | None = search
        try:
            while at_work is not None and following is not None:
                stay, search = at_work, following
                following = self._inside(stay, search)
                if following is not None:
                    at_work = self.gate.pass_on(stay, following, 1)
        finally:
            if at_work is not None:
                self.gate.leave(at_work)
        self.refill()

    def _inside(self, stay: Stay, search: str) -> str | None:
        outcome = stay.reserve(Attempt(search, 1, self.gate.me.name), stands_in=False)
        if not isinstance(outcome, Granted):
            return None
        sent_at = time.monotonic()
        self.client.create(JOBS, finalizer(self.client.namespace, search))
        self.waiting -= 1
        made = Submission()  # its companion is up long before peers miss one
        following = self.gate.following(stay)
        if following is not None:
            stay.confirm_later(search, outcome.fence, made)
        else:
            stay.confirm(search, outcome.fence, made)
        say(event="submitted", search=search, at=sent_at, left=time.monotonic())
        return following


if __name__ == "__main__":
    Submitter(sys.argv[1], int(sys.argv[2])).run()
