"""Gate B as a foreign program passes it: how many searches run, told from their finalizers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from blastyard.testing.foreign.api import Api, Document, Unanswered

SELECTOR: Final = "app in (finalizer,blast,submit)"
PAGE: Final = "500"
_RESTARTS: Final = 5


@dataclass(frozen=True, slots=True)
class Count:
    """The searches that occupy a slot, and those whose finalizer was judged a phantom."""

    active: frozenset[str]
    phantoms: frozenset[str] = frozenset()


def is_terminal(job: Document) -> bool:
    """Whether the Job has definitely ended. A failed pod alone may be tried again."""
    status = job.get("status") or {}
    if (status.get("succeeded") or 0) > 0 or status.get("completionTime"):
        return True
    return any(
        condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )


def count(jobs: Iterable[Document], now: float, grace_seconds: float) -> Count:
    """Distinct ids of the finalizers that have not ended, without the phantoms among them.

    A phantom has no live companion of its id, and is older than the grace by the caller's clock.
    A finalizer without an id counts as a search of its own.
    """
    live = [job for job in jobs if not is_terminal(job)]
    companions = {_id(job) for job in live if _app(job) in ("submit", "blast")}
    active: set[str] = set()
    phantoms: set[str] = set()
    for job in live:
        if _app(job) != "finalizer":
            continue
        name = _id(job)
        if not name:
            active.add("uid:" + job["metadata"]["uid"])
        elif name in companions or now - _created(job) <= grace_seconds:
            active.add(name)
        else:
            phantoms.add(name)
    return Count(frozenset(active), frozenset(phantoms - active))


def _labels(job: Document) -> dict[str, str]:
    return job["metadata"].get("labels") or {}


def _app(job: Document) -> str:
    return _labels(job).get("app", "")


def _id(job: Document) -> str:
    return _labels(job).get("elb-job-id", "")


def _created(job: Document) -> float:
    return datetime.fromisoformat(job["metadata"]["creationTimestamp"]).timestamp()


def list_jobs(api: Api) -> list[Document]:
    """All Jobs that matter, fresh, every page. Raises ``Unanswered`` rather than answer in part."""
    for _ in range(_RESTARTS):
        jobs: list[Document] = []
        query = {"labelSelector": SELECTOR, "limit": PAGE}
        while True:
            status, page = api.ask("GET", "batch/v1/jobs", query=query)
            if status == 410:
                break  # the list has expired: from the beginning
            if status != 200:
                raise Unanswered(f"the list of Jobs: HTTP {status}")
            jobs += page["items"]
            token = page["metadata"].get("continue")
            if not token:
                return jobs
            query = {**query, "continue": token}
    raise Unanswered("the list of Jobs expired again and again")
