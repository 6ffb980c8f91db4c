"""The Jobs of a namespace: the census of what runs, and the markers that make peers count.

The census is the list of Jobs by which every submitter counts, fresh, all pages of it, without
those that have succeeded. Glances come from the informer's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from blastyard.admission.census import FINALIZER, UNLABELLED, Census, MarkerKind, take
from blastyard.admission.kubernetes import marker_job
from blastyard.admission.kubernetes.job_sight import (
    SEARCHES,
    UNSUCCESSFUL,
    Job,
    JobSight,
    JobSights,
    sight,
)
from blastyard.admission.kubernetes.pulse import Pulse
from blastyard.admission.marking import Extend, Put, Take
from blastyard.domain.errors import Unavailable
from blastyard.kube.client import Client, Selection
from blastyard.kube.outcome import AlreadyExists, Denied, Found, Object
from blastyard.kube.policy import refusal
from blastyard.kube.resource import JOBS

_NAMES_IN_A_QUESTION: Final = 50
_TRIES: Final = 20
_AGAIN_SECONDS: Final = 0.05


class KubernetesCensus:
    """A :class:`~blastyard.admission.census.CensusReader`.

    ``follows()`` says whether ``sights`` is kept up to date, and may answer a glance.
    """

    def __init__(
        self, client: Client, sights: JobSights, follows: Callable[[], bool], pulse: Pulse
    ) -> None:
        self._client = client
        self._sights = sights
        self._follows = follows
        self._pulse = pulse
        self._latest = (-1, Census())
        """What was told last, and how much the informer had heard before."""

    def read(self, *, urgent: bool = False) -> Census:
        """See the port. Raises ``Unavailable`` rather than answer in part."""
        if urgent:
            self._pulse.before()
        changes = self._sights.changes
        listing = self._client.listing(JOBS, Job, Selection(SEARCHES, UNSUCCESSFUL))
        if urgent:
            self._pulse.after()
        census = take(sight(job).counted for job in listing.items)
        self._latest = changes, census
        return self.later(census)

    def glance(self) -> Census:
        """See the port. What was read counts until the informer hears of anything: it may have
        missed what the read has shown, and whoever goes by it would ask again and again."""
        if not self._follows():
            return self.read()
        changes = self._sights.changes
        known, census = self._latest
        if known != changes:
            census = take(job.counted for job in self._sights.all())
            self._latest = changes, census
        return self.later(census)

    def finished(self, names: Iterable[str]) -> frozenset[str]:
        """See the port."""
        asked = sorted(names)
        found: frozenset[str] = frozenset()
        for first in range(0, len(asked), _NAMES_IN_A_QUESTION):
            some = ",".join(asked[first : first + _NAMES_IN_A_QUESTION])
            selection = Selection(f"app={FINALIZER},{marker_job.SEARCH_ID} in ({some})")
            listing = self._client.listing(JOBS, Job, selection)
            found |= take(sight(job).counted for job in listing.items).finished
        return found

    def later(self, census: Census) -> Census:
        """See the port: what a list does not show, or no more."""
        finished = census.finished | (self._sights.finished - census.families)
        return replace(census, finished=finished, deserted=self._sights.deserted)


class KubernetesMarkers:
    """The :class:`~blastyard.admission.markers.Markers` of a namespace.

    ``known()`` are the Jobs that this process has seen lately, if it follows them.
    """

    def __init__(
        self,
        client: Client,
        stands: timedelta,
        pause: Callable[[float], None],
        known: Callable[[], Iterable[JobSight]] = tuple,
    ) -> None:
        self._client = client
        self._stands = stands
        self._pause = pause
        self._known = known

    def put(self, put: Put, *, holder: str = "", fence: str = "") -> None:
        """See the port."""
        for app in put.apps:
            new = marker_job.made(
                self._client.namespace,
                put.marker,
                app,
                stands=self._stands,
                holder=holder,
                fence=fence,
            )
            match self._created(new, tries=_TRIES if holder else 1):
                case AlreadyExists():
                    self._renew(new["metadata"]["name"])

    def _created(self, new: Object, tries: int) -> Found | AlreadyExists | Denied:
        """A policy of ours may not have heard yet that the lease or the fence is another one."""
        outcome = self._client.create(JOBS, new)
        for _ in range(tries - 1):
            if not isinstance(outcome, Denied) or refusal(outcome.status, outcome.message) is None:
                break
            self._pause(_AGAIN_SECONDS)
            outcome = self._client.create(JOBS, new)
        return outcome

    def _renew(self, name: str) -> None:
        """A Job of that name is there: good if it lives; one that has ended makes room."""
        found = self._client.get(JOBS, name)
        if found is None:
            raise _changing(name)
        metadata = found.object["metadata"]
        status = found.object.get("status", {})
        ended = any(
            each.get("type") in ("Failed", "Complete") and each.get("status") == "True"
            for each in status.get("conditions", ())
        )
        if not ended and "deletionTimestamp" not in metadata:
            return
        self._client.delete(JOBS, name, metadata["uid"])
        raise _changing(name)

    def extend(self, extend: Extend) -> None:
        """See the port."""
        change = {
            "metadata": {"uid": extend.uid},
            "spec": {"activeDeadlineSeconds": extend.seconds},
        }
        self._client.patch(JOBS, extend.name, change)

    def take(self, take: Take) -> None:
        """See the port."""
        self._client.delete(JOBS, take.name, take.uid)

    def drop(self, search: str, kind: MarkerKind | None = None) -> None:
        """See the port. One by one where they are known: a deletion of many is a list first."""
        if not self._dropped(search, kind):
            labels = f"{marker_job.SEARCH}={marker_job.key(search)}"
            labels += f",{marker_job.MARKER}" + (f"={kind.value}" if kind else "")
            self._client.delete_collection(JOBS, Selection(labels))

    def drop_known(self, search: str) -> None:
        """See the port."""
        self._dropped(search, None)

    def _dropped(self, search: str, kind: MarkerKind | None) -> bool:
        key = marker_job.key(search)
        known = [job for job in self._known() if marker_job.is_marker_of(job.labels, key, kind)]
        for job in known:
            self._client.delete(JOBS, job.name, job.uid)
        return bool(known)

    def delete_search(self, name: str) -> None:
        """See the port: its Jobs, whose pods follow. Companions of ours are among them."""
        if name != UNLABELLED:
            self._client.delete_collection(JOBS, Selection(f"{marker_job.SEARCH_ID}={name}"))


def _changing(name: str) -> Unavailable:
    return Unavailable(
        "cluster_unavailable", f"the Job {name} is just being removed", "try again in a moment"
    )
