"""What happens in one simulated run: who takes part, what is asked for, and what goes wrong.

A schedule is made from a seed. What the seed decides call by call (faults) is recorded while it
runs, so that the run can be repeated from the record, and the record made smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What a simulated process is."""

    SERVE = "serve"
    """Runs searches of every account until it is stopped."""
    SEARCH = "search"
    """Runs what it submitted, and adopts what a dead process of its account left; then ends."""
    COMMAND = "command"
    """Passes both gates once, without a row."""
    TWIN = "twin"
    """A command whose delivery came twice: both try to run one search."""
    EXEC = "exec"
    """Runs a submit command inside Gate A; only where there is a cluster."""


class Trouble(StrEnum):
    """What can happen at one point of one process where others could act."""

    LOST_REQUEST = "lost_request"
    LOST_ANSWER = "lost_answer"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"
    LATE = "late"
    """The caller gives up; the write lands after ``seconds``."""
    DELAY = "delay"
    """The call takes ``seconds``."""
    FREEZE = "freeze"
    """The whole process stands still for ``seconds``."""
    CRASH = "crash"
    """The process is killed, and comes back after ``seconds``."""
    BUSY = "busy"
    """429, as only an API server says it; so are the two that follow."""
    GATEWAY = "gateway"
    """It happens, but a proxy answers in its own way."""
    TRUNCATED = "truncated"
    """It happens, and half of the answer arrives."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One trouble. ``seconds`` is how long it takes, where that means something."""

    trouble: Trouble
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Role:
    """One place among the processes. A killed one comes back in its place under a new name."""

    kind: Kind
    account: int = 1
    arrives_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Order:
    """One search that is asked for."""

    name: str
    slot: int
    at: float
    user: str
    level: int
    seconds: float
    """How long its command takes."""
    fails: bool = False
    patience: float | None = None
    """How long it may wait for capacity, and for the submit slot."""
    posted: bool = False
    """Submitted by a command that ends at once, for whoever runs it."""


class Habitat(StrEnum):
    """What a schedule is rich in; most are rich in nothing special."""

    ANY = "any"
    STALLS = "stalls"
    """Processes and calls that stand still for longer than a lease lasts, and long commands."""
    DELIVERIES = "deliveries"
    """Searches without a row that were delivered twice."""
    DEATHS = "deaths"
    """Killed commands whose guardians take their time, and lost ledgers."""
    INTRUDERS = "intruders"
    """Searches that asked nobody, ceilings that change, reservations that wait."""
    LOSSES = "losses"
    """Lost ledgers while attempts are under way, and writes that come late."""
    CLOCKS = "clocks"
    """Clocks put back, and holders that died before."""


class Deed(StrEnum):
    """What comes from outside the processes, at a moment."""

    CEILING = "ceiling"
    CAP = "cap"
    PARK = "park"
    CANCEL = "cancel"
    DELETE_ROW = "delete_row"
    LOSE_LEDGER = "lose_ledger"
    GARBLE_LEDGER = "garble_ledger"
    CLOCK = "clock"
    DOWN = "down"
    FREEZE = "freeze"
    CRASH = "crash"
    STOP = "stop"
    COPY = "copy"
    FOREIGN = "foreign"
    """Somebody who is no blastyard goes inside Gate A."""
    INTRUDER = "intruder"
    """Somebody who asks nobody runs a search; the census shows it."""

    LOSE_LEASE = "lose_lease"
    LOSE_FINALIZER = "lose_finalizer"
    """Somebody deletes the finalizer of a search by hand."""
    PEER_CANCEL = "peer_cancel"
    """A stranger cancels a search of ours, as strangers do."""
    COMPACT = "compact"
    """The API server forgets what happened so far."""
    SILENCE = "silence"
    """All watches become half open."""
    CUT = "cut"
    DROP = "drop"
    """The next events go unheard."""
    STRANGER_FREEZE = "stranger_freeze"
    STRANGER_CRASH = "stranger_crash"


ON_ONE_MACHINE: Final = (
    Deed.CEILING,
    Deed.CAP,
    Deed.PARK,
    Deed.CANCEL,
    Deed.DELETE_ROW,
    Deed.LOSE_LEDGER,
    Deed.GARBLE_LEDGER,
    Deed.CLOCK,
    Deed.DOWN,
    Deed.FREEZE,
    Deed.CRASH,
    Deed.STOP,
    Deed.COPY,
    Deed.FOREIGN,
    Deed.INTRUDER,
)
IN_A_CLUSTER: Final = (
    Deed.CEILING,
    Deed.PARK,
    Deed.LOSE_LEDGER,
    Deed.LOSE_LEASE,
    Deed.LOSE_FINALIZER,
    Deed.CLOCK,
    Deed.DOWN,
    Deed.COMPACT,
    Deed.SILENCE,
    Deed.CUT,
    Deed.DROP,
    Deed.FREEZE,
    Deed.CRASH,
    Deed.STOP,
    Deed.STRANGER_FREEZE,
    Deed.STRANGER_CRASH,
    Deed.PEER_CANCEL,
)


@dataclass(frozen=True, slots=True)
class Intervention:
    """One deed. ``target`` is a slot, order or stranger, ``value`` a number or seconds."""

    at: float
    deed: Deed
    target: int = 0
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """One run. ``faults`` = ``None`` draws them by ``rates``; else exactly those happen.

    Faults are keyed by slot and by the count of points at which that slot's processes let others
    act; ``rates`` are probabilities at such a point, six times as likely around a write.
    """

    seed: int
    habitat: Habitat
    picks: int
    stickiness: float
    ceiling: int
    cap: int | None
    ageing: int
    roles: tuple[Role, ...]
    orders: tuple[Order, ...]
    interventions: tuple[Intervention, ...]
    trouble_until: float
    """Afterwards nothing goes wrong any more, and everything must come to an end."""
    rates: Mapping[Trouble, float] = field(default_factory=dict)
    faults: Mapping[tuple[int, int], Fault] | None = None
    kill_delay: float = 0.5
    """At most so long a dead process's guardian takes to end its command."""
    hard_of_hearing: float = 0.0
    """How likely a watch misses a change."""

    @property
    def is_calm(self) -> bool:
        """Whether nothing can go wrong."""
        return not self.rates and not self.faults and not self.interventions

    def described(self) -> list[str]:
        """It in lines, for people."""
        lines = [
            f"seed {self.seed} ({self.habitat}), picks {self.picks}, stickiness {self.stickiness}",
            f"ceiling {self.ceiling}, cap {self.cap}, ageing {self.ageing} s, "
            f"trouble until {self.trouble_until} s, guardians take {self.kill_delay} s",
        ]
        for slot, role in enumerate(self.roles):
            lines.append(
                f"process {slot}: {role.kind} of account {role.account}, "
                f"arrives at {role.arrives_at:.3f}"
            )
        lines += [f"order: {order}" for order in self.orders]
        lines += [f"at {one.at:.3f}: {one}" for one in self.interventions]
        for (slot, count), fault in sorted((self.faults or {}).items()):
            lines.append(f"fault: process {slot}, point {count}: {fault.trouble} {fault.seconds}")
        return lines


def order_name(number: int) -> str:
    """The id of an order's search."""
    return f"search{number:02}"


def repeated(schedule: Schedule, drawn: Mapping[tuple[int, int], Fault]) -> Schedule:
    """The same schedule with the faults that were drawn in it, and no others."""
    return replace(schedule, rates={}, faults=dict(drawn))
