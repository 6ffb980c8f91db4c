"""The one informer of a process: it follows leases, ledger and Jobs, so that waiting costs nothing.

Three streams, whatever the number of searches that wait. It answers glances and rings the bell; a
submitter's sign of life rings for nobody, a submitter that disappears does. Its death costs time
only: glances are reads then, and whoever waits has a floor under it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from threading import Event, Thread
from typing import Final

from blastyard.admission.kubernetes import codec
from blastyard.admission.kubernetes.bell import Bell
from blastyard.admission.kubernetes.job_sight import (
    SEARCHES,
    UNSUCCESSFUL,
    Job,
    JobSight,
    JobSights,
)
from blastyard.admission.kubernetes.sighting import Sightings, order_of
from blastyard.admission.onlooker import Onlooker
from blastyard.admission.port import LEASE, LEDGER, SUBMITTER
from blastyard.kube.client import Client, Listing, Selection
from blastyard.kube.outcome import Object
from blastyard.kube.rbac import ledger_name
from blastyard.kube.reflector import Pace, Reflector, Source, Time
from blastyard.kube.resource import CONFIGMAPS, JOBS, LEASES, Resource

_JOIN_SECONDS: Final = 5.0
QUIET_SECONDS: Final = 25.0
"""A stream of leases on which nothing comes for so long is broken, as our own signs of life are on
it. Noticed later, everybody else would seem to have ended meanwhile."""


class _Documents:
    """Takes in the objects of one kind that documents stand in."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        seen: tuple[Sightings, Bell],
        onlooker: Onlooker,
    ) -> None:
        self._namespace = client.namespace
        self._resource = resource
        self._sightings, self._bell = seen
        self._onlooker = onlooker

    def listed(self, listing: Listing[Object]) -> None:
        found = {}
        for each in listing.items:
            name = codec.document_in(self._namespace, self._resource, each)
            if name is not None:
                found[name] = each
                self._keep(name, each, listing.received_at)
        if self._resource is LEASES and LEASE not in found:  # never taken yet, so it is free
            self._onlooker.lease(order_of(listing.version), "", listing.received_at)
        changed, gone = self._sightings.replace(
            self._concerns, found, listing.sent_at, listing.received_at
        )
        if gone or any(not name.startswith(SUBMITTER) for name in changed):
            self._bell.ring()

    def changed(self, item: Object, at: float) -> None:
        name = codec.document_in(self._namespace, self._resource, item)
        if name is None:
            return
        self._keep(name, item, at)
        _, is_news = self._sightings.see(name, item, at)
        if is_news and not name.startswith(SUBMITTER):
            self._bell.ring()

    def gone(self, item: Object, version: str, at: float) -> None:
        name = codec.document_in(self._namespace, self._resource, item)
        if name is not None and self._sightings.see_deleted(name, order_of(version), at):
            self._bell.ring()

    def _concerns(self, name: str) -> bool:
        return (name == LEDGER) == (self._resource is CONFIGMAPS)

    def _keep(self, name: str, item: Object, at: float) -> None:
        if name == LEASE:
            holder = str(item.get("spec", {}).get("holderIdentity") or "")
            self._onlooker.lease(order_of(codec.version_in(item)), holder, at)
        if not name.startswith(SUBMITTER):  # each writes its own only
            self._sightings.keep(name, item, codec.body_in(name, item))


class Informer:
    """Follows the documents and Jobs of a client's namespace.

    ``start`` has each loop run in a daemon thread of its own; a simulator runs :attr:`loops`
    itself, and gives its own ``pause``. ``deserted`` is told of each Job that was deleted before it
    had ended, by the thread that saw it.
    """

    def __init__(
        self,
        client: Client,
        monotonic: Callable[[], float],
        *,
        pace: Pace | None = None,
        pause: Callable[[float], None] | None = None,
        random: Random | None = None,
        deserted: Callable[[JobSight], None] = lambda _: None,
    ) -> None:
        self.sightings = Sightings(client.clock)
        self.bell = Bell()
        self.onlooker = Onlooker()
        self.jobs = JobSights(self.bell.ring, deserted, self._appeared)
        self._stopped = Event()
        self._threads: list[Thread] = []
        time = Time(
            monotonic,
            pause or self._nap,
            random or Random(),  # noqa: S311  (it spreads load, and guards nothing)
            pace or Pace(),
        )

        def documents(resource: Resource, selection: Selection, time: Time) -> Reflector[Object]:
            sink = _Documents(client, resource, (self.sightings, self.bell), self.onlooker)
            source = Source(resource, Object, selection, selection)
            return Reflector(client, source, sink, time)

        named = Selection(fields=f"metadata.name={ledger_name(client.namespace)}")
        jobs = Source(JOBS, Job, Selection(SEARCHES, UNSUCCESSFUL), Selection(SEARCHES))
        beats = replace(time, pace=replace(time.pace, quiet=min(time.pace.quiet, QUIET_SECONDS)))
        self._leases = documents(LEASES, Selection(), beats)
        self._ledger = documents(CONFIGMAPS, named, time)
        self._jobs = Reflector(client, jobs, self.jobs, time)

    @property
    def loops(self) -> tuple[Callable[[], None], ...]:
        """What has to be run, each by one thread, until the informer is closed."""
        return (self._leases.run, self._ledger.run, self._jobs.run)

    @property
    def restarts(self) -> int:
        """How often a stream or a list failed since the start."""
        return sum(each.restarts for each in self._reflectors)

    @property
    def trouble(self) -> Exception | None:
        """What keeps it from following at the moment."""
        return next((each.trouble for each in self._reflectors if each.trouble), None)

    def follows(self, resource: Resource) -> bool:
        """Whether everything of that kind is known here, but for what is on its way."""
        return any(
            each.is_following for each in self._reflectors if each.source.resource is resource
        )

    def known_jobs(self) -> Sequence[JobSight]:
        """The Jobs as they were just now; none while that cannot be told."""
        return self.jobs.all() if self.follows(JOBS) else ()

    def start(self) -> None:
        """Run the loops, in threads that end with the process."""
        for loop, resource in zip(self.loops, (LEASES, CONFIGMAPS, JOBS), strict=True):
            thread = Thread(target=loop, name=f"blastyard-{resource.plural}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """End the loops."""
        self._stopped.set()
        for each in self._reflectors:
            each.close()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def _appeared(self, job: JobSight, version: str, at: float) -> None:
        self.onlooker.job(int(version), job.search or "", job.labels, at)

    def _nap(self, seconds: float) -> None:
        self._stopped.wait(seconds)

    @property
    def _reflectors(self) -> tuple[Reflector[Object] | Reflector[Job], ...]:
        return (self._leases, self._ledger, self._jobs)
