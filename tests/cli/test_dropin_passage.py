"""A passage through the gates: started once or not at all, and nothing stays behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from blastyard.admission.census import NothingForeign
from blastyard.admission.gate import Gate
from blastyard.admission.ledger import HoldState, Ledger, Policy, Submitter
from blastyard.admission.memory import MemoryDocumentStore
from blastyard.admission.outcome import Reason, Waiting
from blastyard.admission.outlook import GateSettings, Surroundings
from blastyard.admission.port import LEDGER, DocumentStore
from blastyard.admission.ticket import Wish
from blastyard.admission.timing import Timings
from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable
from blastyard.service.entrance import Entrance, Patience, Stopped
from blastyard.service.passage import Passage
from blastyard.testing.faulty import Fault, FaultyDocumentStore

TIMINGS = Timings(beat=timedelta(seconds=0.2), ending=timedelta(seconds=0.5))


class Actor:
    """A command that runs until it is told to end."""

    def __init__(self, deadline: float) -> None:
        self.deadlines: list[float | None] = [deadline]
        self.is_ended = False

    def extend(self, deadline: float | None) -> None:
        self.deadlines.append(deadline)

    def end(self) -> None:
        self.is_ended = True

    def wait(self) -> None:
        assert self.is_ended


@dataclass
class Yard:
    """One machine's admission in memory, and the clock its processes measure with."""

    ceiling: int = 1
    skipped: float = 0.0
    swept: int = 0
    dead: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.store = MemoryDocumentStore(SystemClock().now)

    def monotonic(self) -> float:
        return SystemClock().monotonic() + self.skipped

    def gate(self, name: str, documents: DocumentStore | None = None, **more: object) -> Gate:
        around = Surroundings(
            self.monotonic,
            lambda submitter: submitter.name in self.dead,
            NothingForeign(),
            lambda: "uid",
            more.get("claims", tuple),  # type: ignore[arg-type]
        )
        me = Submitter(name, "command", 1000)
        settings = GateSettings(Policy(ceiling=self.ceiling), TIMINGS)
        made = Gate(documents or self.store, me, settings, around)
        made.beat()
        return made

    def entrance(self, gate: Gate, sweep: Callable[[], None] = lambda: None) -> Entrance:
        return Entrance(gate, self.store.watch(), self.monotonic, sweep)

    def passage(self, name: str, documents: DocumentStore | None = None) -> Passage:
        return Passage(self.entrance(self.gate(name, documents)), wish(name))

    def ledger(self) -> Ledger:
        return self.gate("onlooker").ledger()


def wish(name: str) -> Wish:
    return Wish(f"search-{name}", f"user-{name}", 1)


@pytest.fixture
def yard() -> Yard:
    return Yard()


def test_the_command_starts_under_the_lease_and_then_runs_without_a_deadline(yard: Yard) -> None:
    before = yard.monotonic()
    with yard.passage("a") as passage:
        actor = passage.admit(Actor)
        [hold] = yard.ledger().holds.values()

        assert hold.state is HoldState.SUBMITTED
        first, second = actor.deadlines
        assert first is not None
        assert before < first <= before + 30
        assert second is None
        actor.end()
    assert (yard.ledger().holds, yard.ledger().tickets) == ({}, {})


def test_what_still_runs_at_the_end_is_ended_before_its_slot_is_free(yard: Yard) -> None:
    with yard.passage("a") as passage:
        actor = passage.admit(Actor)

    assert actor.is_ended
    assert yard.ledger().holds == {}


def test_stopped_while_it_waits_it_leaves_the_queue(yard: Yard) -> None:
    with yard.passage("a") as first:
        first.admit(Actor)
        told: list[Waiting] = []

        def stop(waiting: Waiting, _: float) -> None:
            told.append(waiting)
            second.stop()

        second = Passage(yard.entrance(yard.gate("b")), wish("b"), told=stop)
        with second, pytest.raises(Stopped):
            second.admit(Actor)

        assert told[0].reason is Reason.CAPACITY
        assert yard.ledger().tickets == {}


def test_stopped_while_it_starts_it_is_ended(yard: Yard) -> None:
    with yard.passage("a") as passage:

        def start(deadline: float) -> Actor:
            passage.stop()
            return Actor(deadline)

        assert passage.admit(start).is_ended


def test_a_lease_lost_after_the_start_ends_the_command_and_starts_no_other(yard: Yard) -> None:
    started: list[Actor] = []

    def start_slowly(deadline: float) -> Actor:
        yard.skipped += 60
        started.append(Actor(deadline))
        return started[-1]

    with yard.passage("a") as passage, pytest.raises(Unavailable, match="stood still"):
        passage.admit(start_slowly)

    assert [actor.is_ended for actor in started] == [True]
    assert yard.ledger().holds == {}


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_ANSWER, Fault.CONFLICT])
@pytest.mark.parametrize("call", range(1, 12))
def test_a_fault_at_any_call_starts_the_command_once(yard: Yard, fault: Fault, call: int) -> None:
    calls: Counter[str] = Counter()

    def plan(operation: str, name: str) -> Fault:
        calls["all"] += 1
        return fault if call <= calls["all"] - signed_on < call + 4 else Fault.OK

    documents = FaultyDocumentStore(yard.store, plan)
    signed_on = 10_000
    passage = yard.passage("a", documents)
    signed_on = calls["all"]
    started: list[Actor] = []

    def start(deadline: float) -> Actor:
        started.append(Actor(deadline))
        return started[-1]

    with passage:
        passage.admit(start)
        assert len(yard.ledger().holds) == 1

    assert len(started) == 1
    assert yard.ledger().holds == {}


def test_a_wait_beyond_what_was_set_names_its_reason(yard: Yard) -> None:
    with yard.passage("a") as first:
        first.admit(Actor)
        patience = Patience(capacity=timedelta(seconds=0.05))
        second = Passage(yard.entrance(yard.gate("b")), wish("b"), patience)
        with second, pytest.raises(Unavailable) as raised:
            second.admit(Actor)

    assert raised.value.code == "capacity_timeout"
    assert yard.ledger().tickets == {}


def test_a_dead_process_in_the_way_is_swept_aside(yard: Yard) -> None:
    first = yard.passage("a")
    first.__enter__()
    first.admit(Actor)
    yard.dead.add("a")
    cleaner = yard.gate("cleaner")

    def sweep() -> None:
        yard.swept += 1
        cleaner.end("search-a")

    second = Passage(yard.entrance(yard.gate("b"), sweep), wish("b"))
    with second:
        second.admit(Actor)

    assert yard.swept == 1


def test_a_lost_ledger_gets_its_claim_back(yard: Yard) -> None:
    passages: list[Passage] = []
    gate = yard.gate("a", claims=lambda: [claim for each in passages for claim in each.claims()])
    passages.append(Passage(yard.entrance(gate), wish("a")))
    with passages[0]:
        passages[0].admit(Actor)
        yard.store.swap(LEDGER, yard.store.read(LEDGER).version, None)
        gate.heal()

        assert gate.ledger().holds["search-a"].state is HoldState.SUBMITTED


def test_a_place_that_was_lost_is_asked_for_again(yard: Yard) -> None:
    with yard.passage("a") as first:
        first.admit(Actor)
        remover = yard.gate("remover")

        def lose(_waiting: Waiting, _seconds: float) -> None:
            if yard.swept == 0:
                yard.swept = 1
                remover.withdraw("search-b")
                remover.end("search-a")

        second = Passage(yard.entrance(yard.gate("b")), wish("b"), told=lose)
        with second:
            second.admit(Actor)
            assert set(yard.ledger().holds) == {"search-b"}
