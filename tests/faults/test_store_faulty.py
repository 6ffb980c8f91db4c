"""The stores that go wrong on purpose go wrong as they say."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from blastyard.admission.memory import MemoryDocumentStore
from blastyard.admission.port import LEASE
from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable
from blastyard.domain.search import Event
from blastyard.store.memory import MemorySearchStore
from blastyard.store.port import Filter, Stale
from blastyard.testing import sample
from blastyard.testing.faulty import Fault, FaultyDocumentStore, FaultySearchStore

NOTHING_HAPPENED = (Fault.LOST_REQUEST, Fault.UNAVAILABLE)


def documents(fault: Fault, on: str) -> tuple[MemoryDocumentStore, FaultyDocumentStore]:
    """A store, and a way to it on which one operation goes wrong."""
    inner = MemoryDocumentStore(SystemClock().now)
    return inner, FaultyDocumentStore(inner, lambda op, _: fault if op == on else Fault.OK)


@pytest.mark.parametrize("fault", NOTHING_HAPPENED)
def test_a_lost_request_changes_nothing(fault: Fault) -> None:
    inner, faulty = documents(fault, "swap")

    with pytest.raises(Unavailable):
        faulty.swap(LEASE, 0, b"mine")

    assert inner.read(LEASE).version == 0


def test_after_a_lost_answer_reading_again_finds_the_claim() -> None:
    _, faulty = documents(Fault.LOST_ANSWER, "swap")

    with pytest.raises(Unavailable):
        faulty.swap(LEASE, 0, b"mine")

    assert faulty.read(LEASE).body == b"mine"


def test_a_made_up_conflict_changes_nothing() -> None:
    inner, faulty = documents(Fault.CONFLICT, "swap")

    assert faulty.swap(LEASE, 0, b"mine") is None
    assert inner.read(LEASE).version == 0


@pytest.mark.parametrize("operation", ["read", "scan"])
def test_a_read_that_fails_is_no_answer(operation: str) -> None:
    _, faulty = documents(Fault.LOST_ANSWER, operation)
    call: Callable[[str], object] = {"read": faulty.read, "scan": faulty.scan}[operation]

    with pytest.raises(Unavailable):
        call(LEASE)


def test_a_lost_notice_is_silent() -> None:
    inner, faulty = documents(Fault.LOST_REQUEST, "notify")
    watch = inner.watch()

    faulty.notify()

    assert not watch.wait(0)


def test_a_checkpoint_stands_before_and_after_every_call_also_when_it_fails() -> None:
    passed: list[str] = []
    inner = MemoryDocumentStore(SystemClock().now)
    faulty = FaultyDocumentStore(
        inner,
        lambda op, name: Fault.LOST_REQUEST if (op, name) == ("swap", LEASE) else Fault.OK,
        passed.append,
    )
    faulty.read(LEASE)
    with suppress(Unavailable):
        faulty.swap(LEASE, 0, b"x")

    assert passed == ["before:read:lease", "after:read:lease",
                      "before:swap:lease", "after:swap:lease"]  # fmt: skip


def test_a_rival_let_in_at_a_checkpoint_wins_the_swap() -> None:
    inner = MemoryDocumentStore(SystemClock().now)

    def rival(at: str) -> None:
        if at == "before:swap:lease":
            inner.swap(LEASE, 0, b"rival")

    faulty = FaultyDocumentStore(inner, checkpoint=rival)

    assert faulty.swap(LEASE, 0, b"mine") is None
    assert faulty.read(LEASE).body == b"rival"


def searches(fault: Fault, on: str) -> tuple[MemorySearchStore, FaultySearchStore]:
    """A search store, and a way to it on which one operation goes wrong."""
    inner = MemorySearchStore(SystemClock().now)
    inner.add_database(sample.database())
    return inner, FaultySearchStore(inner, lambda op, _: fault if op == on else Fault.OK)


def test_a_search_whose_answer_was_lost_is_added_once() -> None:
    inner, faulty = searches(Fault.LOST_ANSWER, "add")
    new = sample.search()
    for _ in range(2):
        with pytest.raises(Unavailable):
            faulty.add(new, sample.QUEUED)

    assert [search.id for search in inner.list(Filter())] == [new.id]


@pytest.mark.parametrize("fault", [*NOTHING_HAPPENED, Fault.CONFLICT])
def test_an_update_that_did_not_happen_leaves_row_and_events(fault: Fault) -> None:
    inner, faulty = searches(fault, "update")
    added = inner.add(sample.search(), sample.QUEUED)

    with pytest.raises(Stale if fault is Fault.CONFLICT else Unavailable):
        faulty.update(replace(added, phase="parked"), Event(added.state))

    assert inner.get(added.id) == added
    assert len(inner.events(added.id)) == 1


def test_an_update_whose_answer_was_lost_is_stale_when_tried_again() -> None:
    inner, faulty = searches(Fault.LOST_ANSWER, "update")
    added = inner.add(sample.search(), sample.QUEUED)
    with pytest.raises(Unavailable):
        faulty.update(replace(added, phase="parked"))

    assert faulty.get(added.id).phase == "parked"
    with pytest.raises(Stale):
        inner.update(replace(added, phase="parked"))
