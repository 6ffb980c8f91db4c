"""Blastyards whose every request is counted, and commands that wait in them for their turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from typing import Any, Final, cast

import msgspec
from fault_command import Program
from fault_jobs import end, make
from gate_stage import Lab
from waiting_stage import CLOCK, PATIENCE, until

from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt
from blastyard.admission.kubernetes.watch import Informer
from blastyard.admission.lease import format_time
from blastyard.admission.outcome import Granted, Reason, Waiting
from blastyard.admission.port import LEDGER
from blastyard.admission.stay import Stay
from blastyard.admission.ticket import Wish
from blastyard.admission.timing import Timings
from blastyard.bootstrap.cluster import assembled, connect
from blastyard.bootstrap.gate import OpenGate, this_process
from blastyard.bootstrap.seam import Seam
from blastyard.kube import rbac
from blastyard.kube.client import Client
from blastyard.kube.http import HttpWire
from blastyard.kube.resource import CONFIGMAPS, JOBS, LEASES
from blastyard.kube.wire import Answer, Call, Stream, Wire
from blastyard.service.entrance import Entrance, Patience, Stopped
from blastyard.service.submitting import Submitting
from blastyard.settings import read_settings
from blastyard.testing.controlplane_request import MERGE_PATCH

PLAIN: Final = Timings()


class CountingWire:
    """Notes every request, as method and path; a stream is a ``WATCH``."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.calls: list[tuple[str, str]] = []

    def send(self, call: Call) -> Answer:
        self.calls.append((call.method, call.path))
        return self._wire.send(call)

    def stream(self, call: Call) -> Stream:
        self.calls.append(("WATCH", call.path))
        return self._wire.stream(call)

    def close(self) -> None:
        self._wire.close()


@dataclass
class Seat:
    """A blastyard in this process."""

    opened: OpenGate
    informer: Informer
    wire: CountingWire

    @property
    def gate(self) -> Gate:
        return self.opened.gate

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Its requests so far, but for its own signs of life."""
        calls = list(self.wire.calls)
        return [each for each in calls if "/blastyard-submitter-" not in each[1]]

    def publish(self, search: str, user: str = "ada", level: int = 1, **more: Any) -> None:
        """A ticket for a search of its own."""
        self.gate.publish([Wish(search, user, level, **more)])

    def claimed(self, search: str) -> int | None:
        """The fence of the grant if the search's turn has come and nobody is inside."""
        if search not in self.gate.due().searches:
            return None
        stay = self.gate.enter(search, 1)
        if not isinstance(stay, Stay):
            return None
        try:
            outcome = stay.reserve(Attempt(search, 1, self.gate.me.name))
            if not isinstance(outcome, Granted):
                return None
            assert stay.confirm(search, outcome.fence)
            return outcome.fence.number
        finally:
            self.gate.leave(stay)

    def served(self, search: str) -> int:
        """Wait for the turn of a search of its own; its fence. It ends at once."""
        fences: list[int] = []

        def claimed() -> bool:
            fence = self.claimed(search)
            if fence is not None:
                fences.append(fence)
            return fence is not None

        until(claimed)
        self.gate.end(search)
        return fences[0]

    def fills(self, search: str = "first") -> None:
        """Have a search of its own take the only slot, until it is said that it has ended."""
        self.publish(search)
        until(lambda: self.claimed(search))

    def head(self) -> str:
        """The search that is first in the queue."""
        return self.gate.view().queue[0].search

    def lives(self) -> bool:
        """Give a sign of life; true."""
        self.gate.beat()
        return True

    def reason(self, search: str) -> Reason | None:
        """Why it waits, as it is told."""
        outcome = self.gate.turn(search)
        return outcome.reason if isinstance(outcome, Waiting) else None

    def close(self) -> None:
        """End it as a crash would: nothing is signed off."""
        self.opened.documents.close()
        self.opened.instruments.close()


def seat_in(
    lab: Lab, *, follows: bool = True, timings: Timings = PLAIN, ceiling: int = 1, **me: Any
) -> Seat:
    """A blastyard that has signed on; ``boot_id="elsewhere"``: nobody here can tell if it is dead.

    One that ``follows`` nothing is as one whose streams are all broken.
    """
    settings = read_settings({**lab.environment, "BLAST_MAX_RUN_CONCURRENCY": str(ceiling)})
    found = connect(settings)
    wire = CountingWire(found.wire)
    client = Client(wire, found.target.namespace, CLOCK.monotonic)
    connection = replace(found, wire=cast("HttpWire", wire), client=client)
    who = msgspec.structs.replace(this_process(me.pop("kind", "exec")), **me)
    made = assembled(connection, settings, who, seam=Seam(timings))
    if follows:
        made.informer.start()
        until(lambda: all(map(made.informer.follows, (LEASES, CONFIGMAPS, JOBS))))
    made.opened.gate.beat()
    return Seat(made.opened, made.informer, wire)


NewSeat = Callable[..., Seat]


@contextmanager
def seats_in(lab: Lab) -> Iterator[NewSeat]:
    """Makes blastyards as :func:`seat_in` does, and closes them in the end."""
    seats: list[Seat] = []

    def new(**words: Any) -> Seat:
        seats.append(seat_in(lab, **words))
        return seats[-1]

    try:
        yield new
    finally:
        for seat in seats:
            seat.close()


@dataclass
class Queued:
    """A submit command that waits in a thread, as `exec` does; it makes a running search."""

    lab: Lab
    seat: Seat
    search: str
    user: str = "ada"
    begun_at: float = 0.0
    begun: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)
    told: list[Waiting] = field(default_factory=list)
    before_told: Callable[[], object] = lambda: None
    """Called at each look, before it is noted; may keep its thread."""
    error: BaseException | None = None

    def __post_init__(self) -> None:
        watch = self.seat.opened.documents.watch()
        gate = self.seat.gate
        entrance = Entrance(gate, watch, CLOCK.monotonic, lambda: None, self.seat.opened.tend)
        wish = Wish(self.search, self.user, 1)
        self.passage = Submitting(
            entrance, wish, Patience(), self._told, limit=gate.timings.command, watched=True
        )
        Thread(target=self._run, name=f"exec-{self.search}", daemon=True).start()

    def waits(self) -> Queued:
        """Until it has been told to wait."""
        until(lambda: self.told)
        return self

    def finish(self) -> float:
        """Have its search end in the cluster; the moment."""
        assert self.ended.wait(PATIENCE)
        assert self.error is None, self.error
        at = CLOCK.monotonic()
        for app in ("submit", "finalizer"):
            end(self.lab, f"{app}-{self.search}")
        return at

    def close(self) -> None:
        """Stop waiting."""
        self.passage.stop()
        self.ended.wait(PATIENCE)

    def _told(self, waiting: Waiting, _: float) -> None:
        self.before_told()
        self.told.append(waiting)

    def _run(self) -> None:
        try:
            with self.passage:
                self.passage.admit(self._start)
        except Stopped:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.ended.set()

    def _start(self, deadline: float) -> Program:
        self.begun_at = CLOCK.monotonic()
        self.begun.set()

        def work(_: Event) -> int:
            make(self.lab, self.search, "submit", "finalizer")
            return 0

        return Program(work).start(deadline)


def put_foreign(lab: Lab, holder: str | None) -> None:
    """Have a foreign program take the submit lease, which is there, or clear it (``None``)."""
    name = rbac.submit_lease_name(lab.namespace)
    path = f"/apis/coordination.k8s.io/v1/namespaces/{lab.namespace}/leases/{name}"
    now = format_time(CLOCK.now())
    spec: dict[str, Any] = {"holderIdentity": holder, "leaseDurationSeconds": 900}
    spec |= {"acquireTime": now, "renewTime": now}
    lab.plane.admin.send("PATCH", path, {"spec": spec}, kind=MERGE_PATCH).expect(200)


def rewrite_ledger(seat: Seat, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the text of the ledger by hand."""

    def written() -> bool:
        found = seat.opened.documents.read(LEDGER)
        ledger = msgspec.json.decode(found.body or b"{}")
        change(ledger)
        body = msgspec.json.encode(ledger)
        return seat.opened.documents.swap(LEDGER, found.version, body) is not None

    until(written)
