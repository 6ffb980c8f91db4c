"""How long free run slots wait for the next grant."""

from __future__ import annotations

import msgspec
import pytest
from admission_stage import (
    ME,
    Yard,
    new_ledger,
    queued,
    reserved,
    wish,
)
from metrics_stage import reserve, values, watched

from blastyard.admission import observer as told
from blastyard.admission.census import Census
from blastyard.admission.idle import Idle, unused
from blastyard.admission.ledger import Ledger
from blastyard.admission.observer import Looked
from blastyard.bootstrap.observing import Meter, new_registry


def looked(ledger: Ledger, at: float, running: frozenset[str] = frozenset()) -> Looked:
    return Looked(ledger, Census(running), frozenset({ME}), at)


def granted(fence: int, at: float, waited: float | None = 1.0) -> told.Granted:
    return told.Granted("s1", fence, waited, at)


def test_a_slot_is_idle_from_the_first_look_that_found_it_free() -> None:
    idle, free = Idle(), queued(new_ledger(ceiling=1), "s1", "s2")
    idle.look(looked(free, at=10.0))
    idle.look(looked(free, at=11.0))

    assert idle.grant(granted(101, at=11.5)) == 1.5


def test_two_free_slots_are_measured_one_by_one() -> None:
    idle, free = Idle(), queued(new_ledger(ceiling=2), "s1", "s2")
    idle.look(looked(free, at=10.0))

    assert idle.grant(granted(101, at=10.5)) == 0.5
    assert idle.grant(granted(102, at=13.0)) == 3.0
    assert idle.grant(granted(103, at=14.0)) is None


def test_what_another_process_was_granted_is_not_measured_here() -> None:
    idle, free = Idle(), queued(new_ledger(ceiling=1), "s1", "s2")
    idle.look(looked(free, at=10.0))
    later = msgspec.structs.replace(free, fence=101)  # granted and ended between two looks
    idle.look(looked(later, at=20.0))

    assert idle.grant(granted(102, at=20.25)) == 0.25


def test_a_resumption_uses_no_free_slot() -> None:
    idle = Idle()
    idle.look(looked(queued(new_ledger(ceiling=1), "s1"), at=10.0))

    assert idle.grant(granted(101, at=11.0, waited=None)) is None


def test_a_slot_that_nobody_waits_for_any_more_is_not_idle() -> None:
    idle, empty = Idle(), new_ledger(ceiling=1)
    idle.look(looked(queued(empty, "s1"), at=10.0))
    idle.look(looked(empty, at=11.0))
    idle.look(looked(queued(empty, "s2"), at=60.0))

    assert idle.grant(granted(101, at=60.5)) == 0.5


def test_an_old_glance_changes_nothing() -> None:
    idle, free = Idle(), queued(new_ledger(ceiling=1), "s1", "s2")
    idle.look(looked(free, at=10.0))
    idle.grant(granted(101, at=10.5))
    idle.look(looked(free, at=10.6))

    assert idle.grant(granted(102, at=30.0)) is None


def test_another_ledger_begins_anew() -> None:
    idle, free = Idle(), queued(new_ledger(ceiling=1), "s1")
    idle.look(looked(free, at=10.0))
    idle.look(looked(msgspec.structs.replace(free, uid="uid-2", fence=3), at=50.0))

    assert idle.grant(granted(4, at=51.0)) == 1.0


def test_only_slots_that_somebody_can_use_are_unused() -> None:
    alive = frozenset({ME})
    empty = new_ledger(ceiling=2)
    ledger = queued(empty, "s1", "s2", "s3")
    parked = msgspec.structs.replace(ledger.tickets["s1"], parked_by="ada")
    one = msgspec.structs.replace(ledger, tickets={"s1": parked, "s2": ledger.tickets["s2"]})
    capped = reserved(queued(new_ledger(ceiling=2, cap=1), "s1", "s2"), "s1")

    assert unused(ledger, Census(), alive) == 2
    assert unused(ledger, Census(frozenset({"x"})), alive) == 1
    assert unused(ledger, Census(), frozenset()) == 0
    assert unused(one, Census(), alive) == 1
    assert unused(capped, Census(), alive) == 0
    assert unused(msgspec.structs.replace(ledger, restored=()), Census(), alive) == 0


def test_a_gate_measures_the_idle_slot_of_its_own_grant() -> None:
    yard, meter = Yard(), Meter(new_registry())
    gate = watched(yard, meter)
    gate.publish([wish("s1")])
    gate.due()
    yard.clock.leap(0.05)
    reserve(gate, "s1")

    counted = values(meter.registry.exposition())
    assert counted["blastyard_slot_idle_seconds_sum"] == pytest.approx(0.05)
    assert counted["blastyard_slot_idle_seconds_count"] == 1
