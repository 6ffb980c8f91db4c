"""Admission in a Kubernetes namespace, which other installations and foreign programs share."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event

from blastyard.admission.gate import Gate
from blastyard.admission.kubernetes.documents import KubernetesDocumentStore
from blastyard.admission.kubernetes.jobs import KubernetesCensus, KubernetesMarkers
from blastyard.admission.kubernetes.pulse import Pulse
from blastyard.admission.kubernetes.watch import Informer
from blastyard.admission.ledger import Policy, Submitter
from blastyard.admission.onlooker import Passed
from blastyard.admission.outlook import GateSettings, Surroundings
from blastyard.admission.restoration import Claim
from blastyard.admission.tending import Tending
from blastyard.bootstrap.backend import is_shared_by_machines
from blastyard.bootstrap.gate import (
    OpenGate,
    is_gone_elsewhere,
    is_of_this_machine,
    timings,
    told_apart,
)
from blastyard.bootstrap.instrument import SILENT, Followed, Instruments, instruments_of
from blastyard.bootstrap.seam import PLAIN, Seam
from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import PASSING, Unavailable
from blastyard.kube.client import Client
from blastyard.kube.config import Target, Wanted, find
from blastyard.kube.http import HttpWire
from blastyard.kube.resource import JOBS
from blastyard.logline import note
from blastyard.settings import Settings, caller_environment

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Connection:
    """A cluster that was found, and a client of the namespace."""

    target: Target
    wire: HttpWire
    client: Client
    instruments: Instruments = SILENT


def connect(settings: Settings, instruments: Instruments = SILENT) -> Connection:
    """Find the cluster that the settings mean. Raises ``Misconfigured``; asks it nothing yet."""
    clock = SystemClock()
    wanted = Wanted(
        caller_environment(),
        Path.home(),
        kubeconfig=settings.kubeconfig,
        context=settings.kube_context,
        namespace=settings.namespace,
    )
    target = find(wanted, clock.now)
    wire = HttpWire(target.endpoint, clock.monotonic)
    client = Client(wire, target.namespace, clock.monotonic, instruments.called)
    return Connection(target, wire, client, instruments)


def _nap(seconds: float) -> None:
    Event().wait(seconds)


def is_gone(submitter: Submitter, own: str) -> bool:
    """Whether a submitter has certainly ended, as far as this machine can tell. ``own`` is the
    installation whose processes all run here; empty when its store is shared by machines."""
    if is_of_this_machine(submitter):
        return is_gone_elsewhere(submitter)
    # a data folder is not shared between machines: its earlier processes ended with a restart
    return bool(own) and submitter.installation == own


def _passed(each: Passed) -> None:
    labels = ",".join(f"{name}={text}" for name, text in sorted(each.labels.items()))
    note(LOG, logging.WARNING, "k8s_gate_passed", search=each.search, labels=labels)


@dataclass(frozen=True, slots=True)
class Assembled:
    """The gate of a namespace, and what follows the namespace on its behalf once started."""

    opened: OpenGate
    informer: Informer


def open_cluster_gate(
    settings: Settings,
    me: Submitter,
    claims: Callable[[], Sequence[Claim]] = tuple,
    *,
    signed_on: bool = True,
    seam: Seam = PLAIN,
) -> OpenGate:
    """The gate of the namespace. Who does not sign on only looks, and follows nothing."""
    instruments = instruments_of(settings, me) if signed_on else SILENT
    made = assembled(connect(settings, instruments), settings, me, claims, seam)
    if signed_on:
        made.informer.start()
        _sign_on(made.opened.gate)
    return made.opened


def _sign_on(gate: Gate) -> None:
    """A submit command does it again before it queues, and says meanwhile what it waits for."""
    try:
        gate.beat()
    except Unavailable as error:
        if error.code not in PASSING or gate.me.kind != "exec":
            raise


def assembled(
    connection: Connection,
    settings: Settings,
    me: Submitter,
    claims: Callable[[], Sequence[Claim]] = tuple,
    seam: Seam = PLAIN,
) -> Assembled:
    """The gate of a connection's namespace, not signed on. Closing it closes the connection."""
    clock = SystemClock()
    client, instruments = connection.client, connection.instruments
    informer = Informer(client, clock.monotonic)

    def close() -> None:
        informer.close()
        connection.wire.close()

    documents = seam.documents(KubernetesDocumentStore(client, informer, clock.monotonic, close))
    chosen = seam.timings or timings(settings)
    me = told_apart(me, settings)
    own = "" if is_shared_by_machines(settings) else me.installation
    around = Surroundings(
        clock.monotonic,
        lambda submitter: is_gone(submitter, own),
        KubernetesCensus(
            client, informer.jobs, lambda: informer.follows(JOBS), Pulse(client, clock.monotonic)
        ),
        lambda: uuid.uuid4().hex,
        claims,
        instruments.around(KubernetesMarkers(client, chosen.marker, _nap, informer.known_jobs)),
        instruments.observer,
    )
    seed = Policy(ceiling=settings.max_run_concurrency)
    gate = Gate(documents, me, GateSettings(seed, chosen, shared=True), around)
    instruments.follow(Followed(gate, seed, lambda: informer.restarts))

    def passed(each: Passed) -> None:
        _passed(each)
        instruments.passed(each)

    tending = Tending(gate, lambda: uuid.uuid4().hex[:12], informer.onlooker, passed)
    opened = OpenGate(gate, documents, clock, tending, instruments, partial(_sign, informer))
    return Assembled(opened, informer)


def _sign(informer: Informer, name: str) -> object:
    """What is seen of the Jobs with this id, if they are followed."""
    if not informer.follows(JOBS):
        return None
    jobs = (job for job in informer.known_jobs() if job.search == name)
    return frozenset((job.uid, job.has_ended, job.is_being_deleted) for job in jobs)
