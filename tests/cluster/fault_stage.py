"""Blastyards of a lab, at a tenth of the protocol's pace, driven by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from gate_stage import Lab
from waiting_stage import CLOCK, TENTH
from waiting_stage import until as wait_until

from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt
from blastyard.admission.kubernetes.watch import Informer
from blastyard.admission.ledger import Ledger
from blastyard.admission.onlooker import Passed
from blastyard.admission.outcome import Granted, Refused, Waiting
from blastyard.admission.port import Watch
from blastyard.admission.restoration import Claim
from blastyard.admission.stay import Stay
from blastyard.admission.tending import Tending
from blastyard.admission.ticket import Wish
from blastyard.admission.timing import Timings
from blastyard.bootstrap.cluster import assembled, connect
from blastyard.bootstrap.gate import OpenGate, this_process
from blastyard.bootstrap.instrument import instruments_of
from blastyard.bootstrap.seam import Seam
from blastyard.domain.errors import Unavailable
from blastyard.kube.resource import CONFIGMAPS, JOBS, LEASES
from blastyard.settings import read_settings


@dataclass
class Yard:
    """A blastyard in this process. ``tick`` does what its threads would do now and then."""

    opened: OpenGate
    informer: Informer
    passed: list[Passed] = field(default_factory=list)
    """What came past Gate A."""
    _beaten_at: float = float("-inf")

    def __post_init__(self) -> None:
        onlooker = self.informer.onlooker
        self.tend = Tending(self.gate, lambda: "x", onlooker, self.passed.append, patience=0.0)

    @property
    def gate(self) -> Gate:
        return self.opened.gate

    def close(self) -> None:
        """End it as a crash would: nothing is signed off."""
        self.opened.documents.close()
        self.opened.instruments.close()

    def tick(self) -> None:
        """A sign of life when it is time, and the upkeep."""
        if CLOCK.monotonic() - self._beaten_at >= self.gate.timings.beat.total_seconds():
            self._beaten_at = CLOCK.monotonic()
            self.gate.beat()
        with suppress(Unavailable):  # the next call is the remedy
            self.tend()

    def admit(self, search: str, **wish: Any) -> tuple[Stay, Granted]:
        """Wait for the turn of a new search, go in, and reserve; the caller leaves."""
        self.gate.publish([Wish(search, "ada", 1, **wish)])
        found: list[tuple[Stay, Granted]] = []

        def granted() -> bool:
            if search not in self.gate.due().searches:
                return False
            stay = self.gate.enter(search, 1)
            if isinstance(stay, Waiting):
                return False
            outcome = stay.reserve(Attempt(search, 1, self.gate.me.name))
            if isinstance(outcome, Granted):
                found.append((stay, outcome))
                return True
            self.gate.leave(stay)
            return False

        until(granted, self)
        return found[0]

    def hold(self, search: str, **wish: Any) -> None:
        """A search of ours with a run slot, that only its owner can end."""
        stay, granted = self.admit(search, **wish)
        assert stay.confirm(search, granted.fence)
        self.gate.leave(stay)

    def ask(self, search: str, number: int = 1) -> Granted | Waiting | Refused:
        """Ask for a slot inside Gate A, whatever a glance says; out again. New searches queue."""
        self.gate.publish([Wish(search, "ada", 1)])
        stay = self.gate.enter(search, number)
        assert isinstance(stay, Stay), stay
        try:
            return stay.reserve(Attempt(search, number, self.gate.me.name))
        finally:
            self.gate.leave(stay)

    def ledger(self) -> Ledger:
        """The ledger as it is read now."""
        return self.gate.ledger()


def yard_in(
    lab: Lab,
    *,
    kubeconfig: Path | None = None,
    ceiling: int = 3,
    kind: str = "exec",
    home: str = "home",
    timings: Timings = TENTH,
    claims: Callable[[], Sequence[Claim]] = tuple,
    **identity: Any,
) -> Yard:
    """A blastyard that has signed on and follows the namespace; ``identity`` is who it says it is.

    ``boot_id="elsewhere"``: nobody here can tell whether it is dead.
    """
    environment = {
        **lab.environment,
        "BLAST_MAX_RUN_CONCURRENCY": str(ceiling),
        "BLASTYARD_HOME": str(lab.folder / home),
    }
    if kubeconfig is not None:
        environment["KUBECONFIG"] = str(kubeconfig)
    settings = read_settings(environment)
    me = msgspec.structs.replace(this_process(kind), **identity)
    connection = connect(settings, instruments_of(settings, me))
    made = assembled(connection, settings, me, claims, Seam(timings))
    made.informer.start()
    made.opened.gate.beat()
    yard = Yard(made.opened, made.informer)
    until(lambda: all(map(made.informer.follows, (LEASES, CONFIGMAPS, JOBS))))
    return yard


def until(true: Callable[[], bool], *yards: Yard, bell: Watch | None = None) -> None:
    """Ask again and again, while these blastyards live; fail if it has not become true in time."""

    def look() -> bool:
        if true():
            return True
        for yard in yards:
            yard.tick()
        return False

    if bell is None and yards:
        bell = yards[0].opened.documents.watch()
    wait_until(look, bell=bell)


NewYard = Callable[..., Yard]


@contextmanager
def yards_in(lab: Lab) -> Iterator[NewYard]:
    """Makes blastyards as :func:`yard_in` does, and closes them in the end."""
    with ExitStack() as stack:

        def new(**words: Any) -> Yard:
            yard = yard_in(lab, **words)
            stack.callback(yard.close)
            return yard

        yield new
