"""A submit command: ``submit.py SCRIPT DELAY LIFE`` with BLASTYARD_SEARCH_ID and KUBECONFIG.

It makes the Jobs of a search in the order of the real command, the finalizer last. Standard library
only, and started with ``-I -S``: many of them run on a small machine.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import select
import ssl
import sys
from urllib.parse import urlsplit

_PATIENCE = 5.0
MANAGED_BY = "example.com/soak-submitter"
"""No controller answers to it, so no pods are made and the status is ours to write."""


class Server:
    """The API server and namespace of a kubeconfig in JSON."""

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  (pathlib costs time)
            document = json.load(file)
        cluster = document["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        trust = ssl.create_default_context(cadata=authority)
        address = urlsplit(cluster["server"])
        self._token = document["users"][0]["user"]["token"]
        self.namespace = document["contexts"][0]["context"]["namespace"]
        self._connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, timeout=_PATIENCE, context=trust
        )

    def create(self, job: dict[str, object]) -> None:
        """Create a Job, sent once. Ends this program when that fails."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        try:
            self._connection.request("POST", path, json.dumps(job), headers)
            answer = self._connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            sys.stderr.write(f"submit: {error!r}\n")
            sys.exit(8)
        if answer.status != 201:
            sys.stderr.write(f"submit: HTTP {answer.status} {body[:200]!r}\n")
            sys.exit(7)


def job(app: str, name: str, search: str, known_as: str, life: float) -> dict[str, object]:
    """One Job of a search."""
    labels = {"app": app, "elb-job-id": known_as}
    notes = {"soak/life": str(life), "soak/search": search}
    container = {"name": app, "image": "localhost/none:1", "command": ["/bin/true"]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": notes},
        "spec": {
            "managedBy": MANAGED_BY,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def main() -> int:
    """The command; returns its exit code."""
    script, delay, life = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    search = os.environ["BLASTYARD_SEARCH_ID"]  # noqa: TID251  (a program of its own)
    known_as = f"job-{os.urandom(16).hex()}" if script == "mint" else search
    server = Server(os.environ["KUBECONFIG"])  # noqa: TID251
    tail = known_as[-8:]
    server.create(job("submit", f"submit-{tail}", search, known_as, life))
    if script == "fail":
        return 7
    server.create(job("blast", f"blast-{tail}-000", search, known_as, life))
    select.select([], [], [], delay)
    server.create(job("finalizer", f"f-{tail}", search, known_as, life))
    return 0


if __name__ == "__main__":
    sys.exit(main())
