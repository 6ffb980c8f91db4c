"""What a run consists of, drawn from its seed: who submits what, and what goes wrong when.

The same seed draws the same plan. What comes of it depends on real time, and differs.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from blastyard.admission.timing import Timings

SHORT: Final = Timings(
    request_timeout=timedelta(seconds=1.5),
    margin=timedelta(seconds=2),
    beat=timedelta(seconds=1),
    takeover=timedelta(seconds=6),
    lapse=timedelta(seconds=5),
    skew=timedelta(seconds=2),
    command=timedelta(seconds=15),
    settle=timedelta(seconds=4),
    courtesy=timedelta(seconds=5),
    patient_turn=timedelta(seconds=5),
    unbroken_use=timedelta(seconds=30),
    forgotten=timedelta(seconds=15),
)
"""The protocol's constants, as short as stamps of whole seconds and a busy machine allow."""


class Trouble(StrEnum):
    """One kind of what goes wrong."""

    KILL = "kill"
    """A process is killed, and started again after so many seconds where that makes sense."""
    STOP = "stop"
    """A process stands still for so many seconds; its guardians do not."""
    CUT = "cut"
    """The network of one process, and of its commands, is gone for so many seconds."""
    LOSSES = "losses"
    """Requests and answers of one process are lost, refused or cut off, for so many seconds."""
    PAUSE = "pause"
    """The API server answers nothing for so many seconds."""
    RESTART = "restart"
    """The API server is killed and started again."""
    LEDGER = "ledger"
    """The ledger is deleted by hand."""
    LEASE = "lease"
    """The submit lease is deleted by hand while nobody is inside."""


INSIDE: Final = "inside"
"""As a target: whichever blastyard is inside Gate A by then."""

MODES: Final[dict[str, dict[Trouble, int]]] = {
    "calm": {},
    **{trouble.value: {trouble: 1} for trouble in Trouble},
    "mixed": {
        Trouble.KILL: 6,
        Trouble.STOP: 6,
        Trouble.CUT: 4,
        Trouble.LOSSES: 4,
        Trouble.PAUSE: 2,
        Trouble.RESTART: 1,
        Trouble.LEDGER: 1,
        Trouble.LEASE: 1,
    },
}
"""Which troubles a run may have, and how often one comes compared with the others."""

_RARE: Final = {Trouble.RESTART: 1, Trouble.LEDGER: 1, Trouble.LEASE: 2, Trouble.PAUSE: 3}
"""How often one may come in a run, where that is limited."""


class Script(StrEnum):
    """How a submit command goes about it."""

    COMPLETE = "complete"
    SLOW = "slow"
    """The finalizer comes seconds after the other Jobs."""
    FAIL = "fail"
    """It gives up after its first Job, with exit code 7."""
    MINT = "mint"
    """It makes an id of its own."""


@dataclass(frozen=True, slots=True)
class Order:
    """One search of ours. All times in seconds."""

    search: str
    user: str
    level: int
    script: Script
    delay: float
    """Between the first Jobs and the finalizer."""
    life: float
    """How long its Jobs go on."""
    arrives: float = 0.0
    """When it is asked for, after the beginning of the run."""


@dataclass(frozen=True, slots=True)
class Worker:
    """An installation with a store, in which searches wait."""

    name: str
    orders: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A foreign program."""

    name: str
    kind: str
    searches: int
    arrival: float
    starts: float = 0.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Something goes wrong."""

    at: float
    trouble: Trouble
    target: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole run."""

    seed: int
    seconds: float
    """How long faults come; afterwards everything has to come to its end."""
    ceiling: int
    workers: tuple[Worker, ...]
    commands: tuple[Order, ...]
    """Each is a `blastyard exec` of its own."""
    programs: tuple[Program, ...]
    ceilings: tuple[tuple[float, int], ...]
    """When an operator changes the ceiling, and to what."""
    faults: tuple[Fault, ...]

    def described(self) -> list[str]:
        """The plan for people."""
        lines = [f"seed {self.seed}: {self.seconds:.0f} s, ceiling {self.ceiling}"]
        lines += [f"  {one.name}: {len(one.orders)} searches" for one in self.workers]
        lines += [f"  exec {one.search} at {one.arrives:.1f}" for one in self.commands]
        lines += [f"  {one.name}: {one.searches} searches ({one.kind})" for one in self.programs]
        lines += [f"  {at:5.1f} ceiling {ceiling}" for at, ceiling in self.ceilings]
        lines += [
            f"  {one.at:5.1f} {one.trouble} {one.target} {one.seconds:.1f}" for one in self.faults
        ]
        return lines


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is in a run."""

    seconds: float = 60.0
    workers: int = 2
    searches: int = 8
    """Of each worker."""
    commands: int = 6
    foreign: int = 4
    """Searches of each foreign program; 0 = no foreign programs."""
    fault_every: float = 7.0
    """Seconds between two faults, on average."""


class _Maker:
    def __init__(self, seed: int, mode: str, size: Size, takeover: float) -> None:
        self.seed = seed
        self.chance = random.Random(f"cluster soak {seed} {mode}")
        self.weights = MODES[mode]
        self.size = size
        self.takeover = takeover

    def plan(self) -> Plan:
        size, chance = self.size, self.chance
        count = size.workers + (1 if size.workers > 1 and chance.random() < 0.3 else 0)
        workers = tuple(
            Worker(f"w{number}", tuple(self._order(0.0) for _ in range(size.searches)))
            for number in range(count)
        )
        commands = tuple(
            self._order(chance.uniform(0.0, size.seconds * 0.8), mint=True)
            for _ in range(size.commands)
        )
        programs = self._programs() if size.foreign else ()
        return Plan(
            self.seed,
            size.seconds,
            chance.choice((1, 2, 3, 3)),
            workers,
            commands,
            programs,
            self._ceilings(),
            tuple(self._faults(workers, programs)),
        )

    def _order(self, arrives: float, *, mint: bool = False) -> Order:
        chance = self.chance
        scripts = [Script.COMPLETE] * 9 + [Script.SLOW] * 3 + [Script.FAIL]
        scripts += [Script.MINT] if mint else []
        script = chance.choice(scripts)
        slow = script is Script.SLOW
        return Order(
            search=f"soak-{chance.getrandbits(40):010x}",
            user=chance.choice(("ada", "bo", "cy")),
            level=chance.choice((0, 1, 1, 1, 2)),
            script=script,
            delay=chance.uniform(2.0, 5.0) if slow else chance.uniform(0.05, 0.8),
            life=chance.uniform(0.5, 5.0),
            arrives=arrives,
        )

    def _programs(self) -> tuple[Program, ...]:
        size = self.size
        arrival = size.seconds / max(1, size.foreign)
        found = [
            Program("dashboard", "dashboard", size.foreign, arrival),
            Program("service", "service", size.foreign, arrival),
        ]
        if self.chance.random() < 0.3:
            starts = self.chance.uniform(0.0, size.seconds * 0.7)
            found.append(Program("kubectl", "rude", 1, 0.0, starts))
        return tuple(found)

    def _ceilings(self) -> tuple[tuple[float, int], ...]:
        seconds = self.size.seconds
        times = sorted(self.chance.uniform(5.0, seconds) for _ in range(int(seconds / 20)))
        changes = [(at, self.chance.choice((1, 2, 3, 3))) for at in times]
        return (*changes, (seconds, 3))

    def _faults(self, workers: tuple[Worker, ...], programs: tuple[Program, ...]) -> list[Fault]:
        chance, weights = self.chance, dict(self.weights)
        left = dict(_RARE)
        found: list[Fault] = []
        at = 3.0 + chance.expovariate(1.0 / self.size.fault_every)
        while weights and at < self.size.seconds:
            trouble = chance.choices(list(weights), list(weights.values()))[0]
            found.append(self._fault(at, trouble, workers, programs))
            if trouble in left:
                left[trouble] -= 1
                if not left[trouble]:
                    del weights[trouble]
            at += 0.5 + chance.expovariate(1.0 / self.size.fault_every)
        return found

    def _fault(
        self,
        at: float,
        trouble: Trouble,
        workers: tuple[Worker, ...],
        programs: tuple[Program, ...],
    ) -> Fault:
        chance, takeover = self.chance, self.takeover
        names = [one.name for one in workers]
        strangers = [one.name for one in programs if one.kind != "rude"]
        target = chance.choice([INSIDE] * 4 + names + (strangers if chance.random() < 0.5 else []))
        match trouble:
            case Trouble.KILL:
                return Fault(at, trouble, target, chance.uniform(0.2, 1.5 * takeover))
            case Trouble.LOSSES:
                return Fault(at, trouble, target, chance.uniform(0.3 * takeover, takeover))
            case Trouble.STOP | Trouble.CUT:
                longest = 0.5 * takeover if target in strangers else 2.0 * takeover
                return Fault(at, trouble, target, chance.uniform(0.1 * takeover, longest))
            case Trouble.PAUSE:
                return Fault(at, trouble, "", chance.uniform(0.1 * takeover, 1.5 * takeover))
            case _:
                return Fault(at, trouble)


def make(seed: int, mode: str, size: Size, takeover: float) -> Plan:
    """The plan of a seed. ``takeover`` in seconds: what goes wrong lasts shorter, or longer."""
    return _Maker(seed, mode, size, takeover).plan()
