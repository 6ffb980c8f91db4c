"""Jobs as a lab's test makes and ends them, and what a foreign program counts."""

from __future__ import annotations

import secrets
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from gate_stage import Lab

from blastyard.domain.clock import SystemClock
from blastyard.testing.controlplane_request import MERGE_PATCH
from blastyard.testing.foreign.api import Api
from blastyard.testing.foreign.count import Count, count, list_jobs
from blastyard.testing.plain_wire import Access, PlainWire

CLOCK: Final = SystemClock()
_MANAGED_BY: Final = "example.com/test"
"""No controller answers to it: the status is the test's to write."""


def jobs_path(lab: Lab) -> str:
    return f"/apis/batch/v1/namespaces/{lab.namespace}/jobs"


def a_job(search: str | None, app: str) -> dict[str, Any]:
    """A Job of a search that nobody but the test ends."""
    container = {"name": "none", "image": "localhost/none:1"}
    labels = {"app": app} | ({"elb-job-id": search} if search else {})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{app}-{search or 'x'}".lower(), "labels": labels},
        "spec": {
            "managedBy": _MANAGED_BY,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def make(lab: Lab, search: str | None, *apps: str) -> None:
    """Have Jobs of a search running, in this order."""
    for app in apps:
        lab.plane.admin.send("POST", jobs_path(lab), a_job(search, app)).expect(201)


def set_status(lab: Lab, name: str, **status: Any) -> None:
    """Have a Job say this of itself."""
    path = f"{jobs_path(lab)}/{name}/status"
    lab.plane.admin.send("PATCH", path, {"status": status}, kind=MERGE_PATCH).expect(200)


def end(lab: Lab, name: str, outcome: str = "Complete") -> None:
    """Have a Job end, ``Complete`` or ``Failed``."""
    found = lab.plane.admin.send("GET", f"{jobs_path(lab)}/{name}").expect(200)
    begun = found["status"].get("startTime") or found["metadata"]["creationTimestamp"]
    first = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[outcome]
    done = [{"type": kind, "status": "True", "reason": "Test"} for kind in (first, outcome)]
    more = {"succeeded": 1, "completionTime": begun} if outcome == "Complete" else {"failed": 1}
    set_status(lab, name, startTime=begun, active=0, ready=0, conditions=done, **more)


def delete(lab: Lab, selector: str) -> None:
    """Delete Jobs by label, as a cancel or a clean-up does."""
    query = f"labelSelector={quote(selector)}&propagationPolicy=Background"
    lab.plane.admin.send("DELETE", f"{jobs_path(lab)}?{query}").expect(200)


def jobs(lab: Lab, selector: str = "") -> list[dict[str, Any]]:
    """The Jobs there are."""
    path = f"{jobs_path(lab)}?labelSelector={quote(selector)}"
    found: list[dict[str, Any]] = lab.plane.admin.send("GET", path).expect(200)["items"]
    return found


# -- strangers -------------------------------------------------------------------------------------


def kubeconfig_of_stranger(lab: Lab) -> Path:
    """A credential that may do everything, as a foreign program has it."""
    path = lab.folder / f"stranger-{secrets.token_hex(4)}"
    return lab.plane.write_kubeconfig(path, lab.plane.admin_token, lab.namespace)


def counted_by_peers(lab: Lab, *, later: float = 0.0, grace: float = 300.0) -> Count:
    """What a peer counts, by a clock that is so many seconds ahead."""
    with closing(PlainWire(Access.read(kubeconfig_of_stranger(lab)), "stranger")) as wire:
        found = list_jobs(Api(wire, lab.namespace))
    return count(found, CLOCK.now().timestamp() + later, grace)
