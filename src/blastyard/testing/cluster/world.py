"""The shared part of a simulated cluster: the API server, what runs, and who observes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from blastyard.admission.kubernetes.marker_job import MARKER, SEARCH_ID, stand_in_id
from blastyard.admission.timing import Timings
from blastyard.domain.search import DatabaseState
from blastyard.kube.rbac import ledger_name, submit_lease_name
from blastyard.kube.wire import Call
from blastyard.store.memory import MemorySearchStore
from blastyard.testing import sample
from blastyard.testing.cluster.invariant import ClusterObserver
from blastyard.testing.cluster.schedule import ClusterOrder, ClusterSchedule
from blastyard.testing.cluster.wire import NAMESPACE
from blastyard.testing.faulty_wire import named
from blastyard.testing.foreign.count import is_terminal
from blastyard.testing.memory_api import MemoryApi
from blastyard.testing.scheduler import Process, Signal
from blastyard.testing.shared_store import SharedSearches, memory_stores
from blastyard.testing.world import DATABASE, World

if TYPE_CHECKING:
    from blastyard.testing.actor import Actor
    from blastyard.testing.cluster.command import SubmitCommand
    from blastyard.testing.cluster.stranger import StrangerProcess

TIMINGS: Final = Timings(
    command=timedelta(seconds=40),
    settle=timedelta(seconds=30),
    courtesy=timedelta(seconds=20),
    unbroken_use=timedelta(seconds=150),
    forgotten=timedelta(seconds=200),
)
"""The defaults, but shorter where minutes or hours would pass, so that what comes after it happens
too."""
TICK_SECONDS: Final = 5.0
ORPHAN_SECONDS: Final = 300.0
"""How long Jobs of a stranger go on when it does not end them itself."""
NOTE: Final = "foreign/search"
"""Annotation of what a submit command makes: the id."""

Document = dict[str, Any]


class ClusterWorld(World):
    """Everything that simulated processes share."""

    schedule: ClusterSchedule

    def __init__(self, schedule: ClusterSchedule) -> None:
        super().__init__(schedule, memory_stores)
        self.api = MemoryApi(
            self.clock.now,
            self.clock.monotonic,
            signal=lambda: Signal(self.scheduler),
            namespaces=(NAMESPACE,),
            seed=schedule.picks,
        )
        self.api.page_size = schedule.page_size
        self.timings = replace(TIMINGS, marker=timedelta(seconds=schedule.marker_seconds))
        self.observer: ClusterObserver = ClusterObserver(self)
        self.requests: dict[int, int] = {}
        self.commands: list[SubmitCommand] = []
        self.strangers: dict[str, StrangerProcess] = {}
        self.ids: dict[str, str] = {order.name: order.name for order in schedule.orders}
        """Ids that submit commands of ours have used, and the searches they are of."""
        self._lives = {
            order.name: order for order in schedule.orders if isinstance(order, ClusterOrder)
        }
        """Per id, how long its Jobs go on."""
        self._company: dict[str, float] = {}
        self.zombies: set[str] = set()
        """Ids of searches that somebody has cancelled behind their submitter's back."""
        self._stores: dict[str, SharedSearches] = {}
        self._objects = {
            submit_lease_name(NAMESPACE): self.observer.lease_written,
            ledger_name(NAMESPACE): self.observer.ledger_written,
        }
        self.scheduler.at(TICK_SECONDS, self._tick)

    @property
    def calls(self) -> Mapping[int, int]:
        """Per slot, how many requests of its processes arrived at the API server."""
        return self.requests

    def searches_of(self, installation: str) -> SharedSearches:
        """The store of one installation. The rows of all are known to the observer."""
        if installation not in self._stores:
            store = SharedSearches(self, MemorySearchStore(self.clock.now))
            store.rows = self.searches.rows
            store.add_database(replace(sample.database(DATABASE), state=DatabaseState.READY))
            self._stores[installation] = store
        return self._stores[installation]

    def is_phantom(self, id_: str) -> bool:
        """Whether it is a finalizer that has been alone for so long that nobody counts it."""
        since = self._company.get(id_, self.now)
        return self.now - since >= self.timings.forgotten.total_seconds() - 1.0

    def look_for_company(self) -> None:
        """Remember until when each finalizer had other Jobs beside it."""
        for app, id_ in self.live_jobs():
            if app != "finalizer" or id_ not in self._company:
                self._company[id_] = self.now

    def minted(self, id_: str, search: str) -> None:
        """A submit command runs under an id of its own."""
        self._lives[id_] = self._lives[search]
        self.ids[id_] = search

    def disown(self, minted: Iterable[str]) -> None:
        """A command that failed has left searches of which it told nobody: strangers' from now on.

        Their Jobs end all the same.
        """
        for id_ in minted:
            self.ids.pop(id_, None)

    def has_died(self, name: str) -> bool:
        """Whether the process of that name has ended."""
        actor = self.everyone.get(name)
        return actor is None or actor.dead

    def end_commands_of(self, owner: Process) -> None:
        """The guardians of a process that is gone end its commands."""
        for command in self.commands:
            if command.owner is owner and command.is_live:
                command.kill("its owner is gone")

    # -- the cluster ---------------------------------------------------------------------------

    def _tick(self) -> None:
        self.api.tick()
        self.scheduler.at(self.now + TICK_SECONDS, self._tick)

    def landed(self, who: Actor | None, call: Call) -> None:
        """A request has changed something."""
        verb, resource = named(call)
        kind, _, name = resource.partition("/")
        if name in self._objects:
            self._objects[name](who)
        elif kind == "jobs" and verb == "create":
            self._job_made(msgspec.json.decode(call.body or b"{}"))
        if kind == "jobs":
            self.observer.slots_changed()

    def _job_made(self, job: Document) -> None:
        metadata = job["metadata"]
        id_ = (metadata.get("annotations") or {}).get(NOTE)
        if id_ is None:
            return
        if id_ in self.ids:
            self.observer.ledger_rules.job_made(self.ids[id_], id_)
        order = self._lives.get(id_)
        seconds, merge = (order.seconds, order.merge) if order else (ORPHAN_SECONDS, 0.0)
        if metadata["labels"]["app"] != "finalizer":
            merge = 0.0
        name = metadata["name"]
        uid = self.api.documents("jobs", NAMESPACE)[name]["metadata"]["uid"]
        self.scheduler.at(self.now + seconds + merge, lambda: self._job_ends(name, uid))

    def _job_ends(self, name: str, uid: str) -> None:
        """The Job controller's part; pods of what was deleted are gone with it."""
        found = self.api.documents("jobs", NAMESPACE).get(name)
        if found is None or found["metadata"]["uid"] != uid or is_terminal(found):
            return
        search = found["metadata"]["labels"].get(SEARCH_ID)
        if found["metadata"]["labels"]["app"] == "finalizer" and search in self.zombies:
            return  # it waits for what was deleted, for ever
        self.note(f"job {name} completes")
        self.api.complete(NAMESPACE, name)
        self.observer.slots_changed()

    # -- what is true --------------------------------------------------------------------------

    def live_jobs(self) -> Iterator[tuple[str, str]]:
        """App and id of every Job of a search that has not ended, markers apart."""
        for job in self.api.documents("jobs", NAMESPACE).values():
            labels = job["metadata"].get("labels") or {}
            if "app" in labels and MARKER not in labels and not is_terminal(job):
                yield labels["app"], labels.get(SEARCH_ID, "")

    def slot_of(self, id_: str) -> str:
        """Whose run slot the Jobs with this id use, as far as anybody knows."""
        ledger = self.observer.ledger_rules.ledger
        for name, hold in ledger.holds.items() if ledger is not None else ():
            if hold.alias == id_:
                return name
        search = self.ids.get(id_, id_)
        if any(one.is_live and one.order.name == search for one in self.commands):
            return search
        return id_

    def _running_here(self) -> set[str]:
        """Searches whose commands run on machines that we see."""
        self.machine.tick()
        found = {run.task.search_id for run in self.machine.runs if run.is_live}
        return found | {command.order.name for command in self.commands if command.is_live}

    def live(self) -> frozenset[str]:
        """Everything that runs, by the names of its run slots."""
        found = {self.slot_of(id_) for _, id_ in self.live_jobs() if id_ not in self.zombies}
        return frozenset(found | self._running_here())

    def ours(self) -> frozenset[str]:
        """The searches of ours among them."""
        found = {
            self.slot_of(id_)
            for _, id_ in self.live_jobs()
            if id_ in self.ids and id_ not in self.zombies
        }
        return frozenset(found | self._running_here())

    def complete(self, search: str) -> bool:
        """Whether a complete submission of this search runs."""
        return any(
            app == "finalizer" and id_ not in self.zombies and self.slot_of(id_) == search
            for app, id_ in self.live_jobs()
        )

    def shown_as(self, search: str) -> set[str]:
        """The ids by which a peer may count a search of ours."""
        found = {id_ for id_, name in self.ids.items() if name == search}
        found |= {id_ for id_ in self.ids if self.slot_of(id_) == search}
        return found | {stand_in_id(search)}

    def markers(self) -> list[str]:
        """Names of the markers that stand."""
        return [
            name
            for name, job in self.api.documents("jobs", NAMESPACE).items()
            if MARKER in (job["metadata"].get("labels") or {}) and not is_terminal(job)
        ]

    def server_now(self) -> datetime:
        """The API server's clock."""
        return self.clock.now()
