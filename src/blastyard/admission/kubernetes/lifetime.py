"""How long searches lasted that have ended in a namespace, from their finalizers."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from blastyard.admission.kubernetes.job_sight import Job
from blastyard.kube.client import Client, Selection
from blastyard.kube.resource import JOBS

MOST: Final = 50


def lifetimes(client: Client) -> tuple[timedelta, ...]:
    """The spans for which the searches that ended last had a finalizer, the latest ones first.

    That is from the end of their submission to their own; one request for each 500 that are still
    there. Raises ``Unavailable`` and ``Misconfigured``.
    """
    listing = client.listing(JOBS, Job, Selection("app=finalizer", "status.successful=1"))
    ended = [
        (job.status.completion_time, job.metadata.creation_timestamp)
        for job in listing.items
        if job.status.completion_time is not None
    ]
    ended.sort(reverse=True)
    return tuple(end - begin for end, begin in ended[:MOST])
