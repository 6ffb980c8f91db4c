"""A Table service that is busy, unreachable, or gives its pages piece by piece."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from azure_stage import WRITE, Stage, said

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import PASSING, Unavailable
from blastyard.domain.search import Priority, Search
from blastyard.store.azure_tables import entity, key, open_azure_tables
from blastyard.store.azure_tables.account import find
from blastyard.store.azure_tables.searches import AzureTablesSearchStore
from blastyard.store.azure_tables.table import Table
from blastyard.store.port import Filter
from blastyard.testing import sample
from blastyard.testing.azurite import ACCOUNT, Azurite, connection_string
from blastyard.testing.proxy_fault import Rule, Said

MANY = 1050
PATH = "/data/nt"


def add(store: AzureTablesSearchStore) -> object:
    return store.add(sample.search(database=PATH), sample.QUEUED)


@pytest.mark.parametrize("busy", [said(429, "TooManyRequests", 1), said(503, "ServerBusy", 1)])
def test_a_throttled_write_waits_as_long_as_it_is_told_to(tables: Stage, busy: Said) -> None:
    store = tables.open()
    tables.proxy.log.clear()
    tables.proxy.plan.add(Rule(busy, *WRITE))

    add(store)

    first, second = tables.proxy.log.records(*WRITE)
    assert second.at - first.at >= 1.0
    assert len(tables.audit()) == 1


@pytest.mark.parametrize(
    "call", [add, lambda store: store.get("x"), lambda store: store.list(Filter())]
)
def test_who_would_have_to_wait_too_long_is_told_so_at_once(
    tables: Stage, call: Callable[[AzureTablesSearchStore], object]
) -> None:
    store = tables.open()
    tables.proxy.log.clear()
    tables.proxy.plan.add(Rule(said(503, "ServerBusy", retry_after=120), times=None))

    with pytest.raises(Unavailable, match=f"{tables.table}.*throttling") as raised:
        call(store)

    assert raised.value.retry_after == 120.0
    assert raised.value.code in PASSING
    assert len(tables.proxy.log.records()) == 1


class Waiting(SystemClock):
    """A clock on which only pauses take time."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return sum(self.pauses)


def test_a_busy_service_without_a_time_is_asked_ever_more_rarely(tables: Stage) -> None:
    tables.open()
    tables.proxy.plan.add(Rule(said(503, "ServerBusy"), times=None))
    tables.proxy.log.clear()
    found = find(connection_string(f"{tables.proxy.url}/{ACCOUNT}"), tables.table)
    clock = Waiting()
    table = Table(found, clock, timedelta(seconds=20), clock.pauses.append)

    with pytest.raises(Unavailable) as raised:
        table.get("x")

    table.close()
    assert raised.value.retry_after is None
    assert len(tables.proxy.log.records()) == len(clock.pauses) + 1
    longest = [min(2.0, 0.05 * 2**number) for number in range(len(clock.pauses))]
    assert all(most / 2 <= pause <= most for pause, most in zip(clock.pauses, longest, strict=True))
    assert 15 < sum(clock.pauses) <= 20


def test_a_cut_network_is_no_answer_and_heals(tables: Stage) -> None:
    store = tables.open(patience=timedelta(seconds=0.2))
    add(store)
    tables.proxy.cut()
    try:
        calls: list[Callable[[], object]] = [store.live, store.counts, store.list_databases]
        for call in (lambda: add(store), *calls):
            with pytest.raises(Unavailable, match="did not answer"):
                call()
    finally:
        tables.proxy.heal()

    add(store)
    assert len(tables.audit()) == 2


def test_a_service_that_was_restarted_has_everything(own_azurite: Azurite) -> None:
    store = open_azure_tables(own_azurite.connection_string, patience=timedelta(seconds=0.2))
    added = store.add(sample.search(database=PATH), sample.QUEUED)
    own_azurite.stop()
    with pytest.raises(Unavailable):
        store.get(added.id)
    own_azurite.start()

    assert store.get(added.id) == added
    assert store.update(replace(added, phase="parked")).version == 2
    store.close()


def crowd(tables: Stage) -> list[Search]:
    """More live searches than one page holds, oldest first; written past the store."""
    searches = []
    for number in range(1, MANY + 1):
        user, level = ("ada", "bob")[number % 2], list(Priority)[number % 3]
        new = sample.search(database=PATH, user=user, priority=level)
        searches.append(replace(new, sequence=number, version=1))
    rows = (entity.of_search(search, ("w",)) for search in searches)
    tables.seed((columns["Live"], columns) for columns in rows)
    return searches


def test_what_fills_more_than_one_page_is_read_to_its_end(tables: Stage) -> None:
    store = tables.open()
    searches = crowd(tables)
    tables.proxy.plan.add(Rule(said(503, "ServerBusy"), "GET", "NextRowKey"))

    assert store.live() == searches
    assert store.live("r1", limit=3) == searches[:3]
    assert sum(store.counts().values()) == MANY
    tables.proxy.log.clear()
    best = sorted(searches, key=lambda one: (-one.request.priority.level, one.sequence))
    first_of_each = [
        next(one for one in best if one.request.user == name) for name in ("ada", "bob")
    ]
    assert {one.id for one in store.waiting("r1", per_user=1)} == {one.id for one in first_of_each}
    assert store.runners() == {"r1"}
    assert len(tables.proxy.log.records()) <= 5, "those who wait behind were read too"


def test_an_empty_page_that_leads_on_is_not_the_end(tables: Stage) -> None:
    store = tables.open()
    added = [store.add(sample.search(database=PATH), sample.QUEUED) for _ in range(3)]
    lead = {"NextPartitionKey": key.PARTITION, "NextRowKey": key.by_arrival(added[1].sequence)}
    fields = [
        (f"x-ms-continuation-{name}", b64encode(value.encode()).decode())
        for name, value in lead.items()
    ]
    empty = Said(200, b'{"value":[]}', fields=tuple(fields))
    tables.proxy.plan.add(Rule(empty, "GET", r"filter="))

    assert store.list(Filter()) == [added[1], added[0]]
