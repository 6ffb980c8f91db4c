"""Ledgers, situations, clocks and gates for the tests of admission."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

from blastyard.admission.census import Census, CensusReader, NothingForeign
from blastyard.admission.gate import Gate
from blastyard.admission.hold import Attempt, Reserved, reserve
from blastyard.admission.ledger import Ledger, Policy, Submitter, encode
from blastyard.admission.memory import MemoryDocumentStore
from blastyard.admission.order import Situation
from blastyard.admission.outlook import GateSettings, Surroundings
from blastyard.admission.port import LEASE, LEDGER
from blastyard.admission.restoration import Claim
from blastyard.admission.stay import Stay
from blastyard.admission.ticket import Wish, publish
from blastyard.admission.timing import Timings
from blastyard.testing.faulty import (
    Checkpoint,
    Fault,
    FaultyDocumentStore,
    no_checkpoint,
    no_fault,
)

NOW: Final = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
TIMINGS: Final = Timings()
ME: Final = "serve-1"
OTHER: Final = "serve-2"


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


# -- rules -----------------------------------------------------------------------------------------


def wish(search: str, user: str = "ada", level: int = 1) -> Wish:
    return Wish(search, user, level)


def new_ledger(ceiling: int = 3, cap: int | None = None, ageing: int = 3600) -> Ledger:
    """A whole ledger on which nothing has happened; the turn of its head began at ``NOW``."""
    policy = Policy(ceiling=ceiling, user_cap=cap, ageing_seconds=ageing)
    return Ledger(uid="uid-1", policy=policy, fence=100, turn_at=NOW)


def queued(ledger: Ledger, *wishes: Wish | str, submitter: str = ME, at: datetime = NOW) -> Ledger:
    """``ledger`` with a ticket for each wish, in this order."""
    wanted = [one if isinstance(one, Wish) else wish(one) for one in wishes]
    return publish(ledger, submitter, wanted, at) or ledger


def situation(
    now: datetime = NOW,
    running: Iterable[str] = (),
    alive: Iterable[str] = (ME, OTHER),
    gate_free_since: datetime | None = None,
) -> Situation:
    return Situation(now, frozenset(alive), Census(frozenset(running)), gate_free_since)


def reserved(
    ledger: Ledger, search: str, now: datetime = NOW, number: int = 1, submitter: str = ME
) -> Ledger:
    """``ledger`` after ``search`` got its slot; it must be its turn."""
    outcome = reserve(ledger, Attempt(search, number, submitter), situation(now), TIMINGS)
    assert isinstance(outcome, Reserved), outcome
    return outcome.ledger


def order_of(ledger: Ledger, now: datetime = NOW) -> list[str]:
    """Who is granted a slot one after another when all ask at once."""
    granted = []
    while ledger.tickets:
        for search, ticket in ledger.tickets.items():
            attempt = Attempt(search, 1, ticket.submitter)
            outcome = reserve(ledger, attempt, situation(now), TIMINGS)
            if isinstance(outcome, Reserved):
                granted.append(search)
                ledger = outcome.ledger
                break
        else:
            return granted
    return granted


# -- gates -----------------------------------------------------------------------------------------


class Clock:
    """A clock that stands still between ``leap``s."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def leap(self, by: float) -> None:
        self.seconds += by


class Script:
    """A plan of faults for the next calls of an operation on a document; counts all calls."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self._next: dict[tuple[str, str], deque[Fault]] = {}
        self._always: dict[tuple[str, str], Fault] = {}

    def __call__(self, operation: str, name: str) -> Fault:
        call = (operation, name)
        self.calls[call] += 1
        coming = self._next.get(call)
        return coming.popleft() if coming else self._always.get(call, Fault.OK)

    def then(self, operation: str, name: str, *faults: Fault) -> None:
        """What the next calls meet."""
        self._next[operation, name] = deque(faults)

    def always(self, operation: str, name: str, fault: Fault) -> None:
        """What every call meets from now on, those of ``then`` excepted."""
        self._always[operation, name] = fault

    def heal(self) -> None:
        """All goes well from now on."""
        self._next.clear()
        self._always.clear()

    @property
    def swaps(self) -> int:
        """How many writes were tried."""
        return sum(number for (operation, _), number in self.calls.items() if operation == "swap")


class Yard:
    """One document store, its clock, and the gates of the processes that share it."""

    def __init__(self, ceiling: int = 1, documents: MemoryDocumentStore | None = None) -> None:
        self.clock = Clock()
        self.documents = documents or MemoryDocumentStore(self.clock.now)
        self.gone: set[str] = set()
        self._ceiling = ceiling
        self._uids = count(1)

    def gate(
        self,
        name: str = ME,
        plan: Callable[[str, str], Fault] | None = None,
        claims: Callable[[], Sequence[Claim]] = tuple,
        census: CensusReader | None = None,
        monotonic: Callable[[], float] | None = None,
        checkpoint: Checkpoint = no_checkpoint,
    ) -> Gate:
        """The gate of one more process; it has given no sign of life yet."""
        documents = FaultyDocumentStore(self.documents, plan or no_fault, checkpoint)
        around = Surroundings(
            monotonic or self.clock.monotonic,
            lambda submitter: submitter.name in self.gone,
            census or NothingForeign(),
            lambda: f"uid-{next(self._uids)}",
            claims,
        )
        me = Submitter(name, "serve", 1000)
        return Gate(documents, me, GateSettings(Policy(ceiling=self._ceiling)), around)

    def write(self, name: str, body: bytes | None) -> None:
        """Change a document by hand."""
        assert self.documents.swap(name, self.documents.read(name).version, body) is not None

    def write_ledger(self, ledger: Ledger) -> None:
        self.write(LEDGER, encode(ledger))

    def lease_body(self) -> bytes:
        return self.documents.read(LEASE).body or b""

    def ledger_body(self) -> bytes:
        return self.documents.read(LEDGER).body or b""


def inside(gate: Gate, search: str, attempt: int = 1) -> Stay:
    """A stay in Gate A, which must be free."""
    stay = gate.enter(search, attempt)
    assert isinstance(stay, Stay), stay
    return stay


def scripted(ceiling: int = 1) -> tuple[Yard, Script, Gate]:
    """A yard, and a gate on it whose calls to the store meet what the script says."""
    yard, script = Yard(ceiling), Script()
    return yard, script, yard.gate(plan=script)


def inside_with_ticket(gate: Gate, search: str = "s1") -> Stay:
    """The stay in Gate A of a search that has just been published."""
    gate.publish([wish(search)])
    return inside(gate, search)
