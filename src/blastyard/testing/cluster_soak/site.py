"""Opening the gate of the soak's namespace in a process of the soak."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from blastyard.admission.ledger import Submitter
from blastyard.admission.port import DocumentStore
from blastyard.admission.restoration import Claim
from blastyard.admission.timing import Timings
from blastyard.bootstrap.cluster import Connection, assembled, connect
from blastyard.bootstrap.gate import OpenGate, this_process
from blastyard.bootstrap.seam import Seam
from blastyard.domain.clock import SystemClock
from blastyard.kube.client import Client
from blastyard.kube.wire import Answer, Call, Stream, Wire
from blastyard.settings import Settings
from blastyard.testing.cluster_soak.deeds import Teller, ToldDocuments
from blastyard.testing.cluster_soak.plan import SHORT


class HastyWire(Wire):
    """A wire whose requests are given up after so many seconds at the latest."""

    def __init__(self, inner: Wire, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds

    def send(self, call: Call) -> Answer:
        """See the wire, as for all below."""
        return self._inner.send(replace(call, timeout=min(call.timeout, self._seconds)))

    def stream(self, call: Call) -> Stream:
        """See the wire."""
        return self._inner.stream(replace(call, timeout=min(call.timeout, self._seconds)))

    def close(self) -> None:
        """See the wire."""
        self._inner.close()


def timings_of(options: argparse.Namespace) -> Timings:
    """The protocol's constants that a process was started with."""
    return Timings() if options.real_timings else SHORT


@dataclass(frozen=True, slots=True)
class Site:
    """An open gate that tells what it does."""

    opened: OpenGate
    told: ToldDocuments


def open_site(
    settings: Settings,
    timings: Timings,
    tell: Teller,
    *,
    name: str = "",
    claims: Callable[[], Sequence[Claim]] = tuple,
) -> Site:
    """Open the gate and sign on. A ``name`` is kept over restarts, as by who has a store; without
    one this is an `exec`. Raises ``Unavailable``."""
    told: list[ToldDocuments] = []

    def around(inner: DocumentStore) -> DocumentStore:
        told.append(ToldDocuments(inner, tell))
        return told[0]

    me = _named(name) if name else this_process("exec")
    connection = _hasty(connect(settings), timings)
    made = assembled(connection, settings, me, claims, Seam(timings, around))
    made.informer.start()
    return Site(made.opened, told[0])


def _named(name: str) -> Submitter:
    return msgspec.structs.replace(this_process("serve"), name=f"serve-{name}")


def _hasty(connection: Connection, timings: Timings) -> Connection:
    wire = HastyWire(connection.wire, timings.request_timeout.total_seconds())
    make = partial(Client, wire, connection.client.namespace, SystemClock().monotonic)
    return replace(connection, client=make())
