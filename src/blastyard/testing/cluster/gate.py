"""Admission of a simulated process on the cluster: the real parts, with waits in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING

from blastyard.admission.census import Census
from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt
from blastyard.admission.kubernetes.documents import KubernetesDocumentStore
from blastyard.admission.kubernetes.jobs import KubernetesCensus, KubernetesMarkers
from blastyard.admission.kubernetes.pulse import Pulse
from blastyard.admission.kubernetes.watch import Informer
from blastyard.admission.ledger import Fence, Policy, Submitter
from blastyard.admission.outcome import Granted, Refused, Waiting
from blastyard.admission.outlook import GateSettings, Surroundings
from blastyard.admission.port import Watch
from blastyard.admission.restoration import Claim
from blastyard.admission.stay import Stay
from blastyard.kube.client import Client
from blastyard.kube.resource import JOBS
from blastyard.kube.wire import Wire
from blastyard.testing.cluster.wire import NAMESPACE
from blastyard.testing.observed import ObservedGate, ObservedStay
from blastyard.testing.scheduler import Scheduler, Signal, VirtualWatch

if TYPE_CHECKING:
    from blastyard.testing.cluster.actor import OnCluster


class VirtualLock:
    """A lock among tasks: whoever waits for it lets virtual time go on."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._held = False
        self._freed = Signal(scheduler)

    def __enter__(self) -> None:
        while self._held:
            self._freed.clear()
            self._freed.wait()
        self._held = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._held = False
        self._freed.set()


class VirtualDocumentStore(KubernetesDocumentStore):
    """The documents of one process, whose lock and watches know virtual time."""

    def __init__(
        self, client: Client, informer: Informer, scheduler: Scheduler, now: Callable[[], float]
    ) -> None:
        super().__init__(client, informer, now, informer.close)
        self._reading = VirtualLock(scheduler)  # type: ignore[assignment]
        self._scheduler = scheduler
        self._bell = informer.bell

    def watch(self) -> Watch:
        """See the store."""
        watch = VirtualWatch(self._scheduler)
        self._bell._watches.add(watch)  # type: ignore[arg-type]
        return watch


class Connection:
    """What ``bootstrap.cluster`` makes of a wire."""

    def __init__(self, wire: Wire, scheduler: Scheduler, now: Callable[[], float], seed: str):
        self.client = Client(wire, NAMESPACE, now)
        self.informer = Informer(self.client, now, pause=scheduler.sleep, random=Random(seed))
        self.documents = VirtualDocumentStore(self.client, self.informer, scheduler, now)
        self.census = KubernetesCensus(
            self.client,
            self.informer.jobs,
            lambda: self.informer.follows(JOBS),
            Pulse(self.client, now),
        )
        self._pause = scheduler.sleep

    def markers(self, stands: timedelta) -> KubernetesMarkers:
        """Those of the namespace."""
        known = self.informer.known_jobs
        return KubernetesMarkers(self.client, stands, self._pause, known)


class ClusterGate(ObservedGate):
    """A gate of the cluster that tells the observer who is inside."""

    def __init__(
        self, actor: OnCluster, connection: Connection, claims: Callable[[], Sequence[Claim]]
    ) -> None:
        world = actor.world
        around = Surroundings(
            world.clock.monotonic,
            actor.is_gone,
            connection.census,
            world.new_uid,
            claims,
            connection.markers(world.timings.marker),
        )
        schedule = world.schedule
        seed = Policy(schedule.ceiling, schedule.cap, schedule.ageing)
        settings = GateSettings(seed, world.timings, shared=True)
        Gate.__init__(self, connection.documents, actor.me, settings, around)
        self._actor = actor

    def enter(self, search: str, attempt: int) -> Stay | Waiting:
        """See the gate."""
        stay = super().enter(search, attempt)
        return ClusterStay(stay.inner, self._actor) if isinstance(stay, ObservedStay) else stay


class ClusterStay(ObservedStay):
    """An observed stay with all that the cluster's submissions want of it."""

    @property
    def census(self) -> Census:  # type: ignore[override]
        """See the stay."""
        return self.inner.census

    @property
    def is_abandoned(self) -> bool:  # type: ignore[override]
        """See the stay."""
        return self.inner.is_abandoned

    def reserve(self, attempt: Attempt, *, stands_in: bool = True) -> Granted | Waiting | Refused:
        """See the stay."""
        outcome = super().reserve(attempt, stands_in=stands_in)
        if isinstance(outcome, Granted):
            self._actor.world.note(
                f"granted {attempt.search} fence {outcome.fence.number % 100000}"
            )
        return outcome

    def fail(self, search: str, fence: Fence) -> bool:
        """See the stay."""
        return self.inner.fail(search, fence)

    def assert_markers(self) -> None:
        """See the stay."""
        self.inner.assert_markers()


def gone(
    submitter: Submitter, dead: Callable[[str], bool], machine: int, installation: str
) -> bool:
    """Whether a submitter has certainly ended, as ``bootstrap.cluster`` tells."""
    if submitter.account == machine:
        return dead(submitter.name)
    return submitter.installation == installation
