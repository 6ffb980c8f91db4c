"""Two clients of one table at the same moment, in every order that matters."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import pytest
from azure_stage import WRITE, Stage

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Conflict, NotFound
from blastyard.domain.job import State
from blastyard.domain.search import Event
from blastyard.store.port import Stale
from blastyard.testing import sample
from blastyard.testing.proxy_fault import Delay, Rule

T = TypeVar("T")
PATH = "/data/nt"


def overtaken(tables: Stage, act: Callable[[], T], between: Callable[[], object]) -> Future[T]:
    """``act`` has decided, and its transaction is on the way; ``between`` happens first."""
    held = tables.proxy.plan.add(Rule(Delay(), *WRITE))
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(act)
        held.wait()
        between()
        held.release()
    return outcome


def test_of_two_who_use_one_key_at_once_both_get_the_search_of_the_first(tables: Stage) -> None:
    slow, quick = tables.open(), tables.open(direct=True)
    mine, theirs = sample.search(key="k", database=PATH), sample.search(key="k", database=PATH)

    outcome = overtaken(
        tables,
        lambda: slow.add(mine, sample.QUEUED),
        lambda: quick.add(theirs, sample.QUEUED),
    )

    assert outcome.result().id == theirs.id
    assert [search.id for search in tables.audit()] == [theirs.id]


def test_a_key_whose_search_is_deleted_meanwhile_is_free_again(tables: Stage) -> None:
    slow, quick = tables.open(), tables.open(direct=True)
    old = quick.add(sample.search(key="k", database=PATH), sample.QUEUED)
    ended = quick.update(replace(old, state=State.CANCELLED))
    new = sample.search(key="k", database=PATH)
    # the key is taken when it is tried, and its search is gone when it is looked for
    looks = tables.proxy.plan.add(Rule(Delay(), "GET", r"RowKey='k\."))
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(slow.add, new, sample.QUEUED)
        looks.wait()
        quick.delete(ended.id)
        looks.release()

    assert outcome.result().id == new.id
    assert [search.id for search in tables.audit()] == [new.id]


class Stopped(SystemClock):
    """A machine on which no time passes: the account's stamps alone tell its clients the time."""

    def monotonic(self) -> float:
        return 0.0


def test_two_searches_of_the_same_microsecond_have_two_sequences(tables: Stage) -> None:
    one, other = tables.open(clock=Stopped()), tables.open(clock=Stopped())
    one.list_databases()
    one.add_database(sample.database())
    other.list_databases()
    assert one.now() == other.now()

    added = [store.add(sample.search(database=PATH), sample.QUEUED) for store in (one, other)]

    assert added[1].sequence == added[0].sequence + 1
    assert len(tables.audit()) == 2


def test_a_search_is_added_to_no_database_that_is_removed_meanwhile(tables: Stage) -> None:
    slow, quick = tables.open(), tables.open(direct=True)
    quick.add_database(sample.database())

    outcome = overtaken(
        tables,
        lambda: slow.add(sample.search(), sample.QUEUED),
        lambda: quick.remove_database(sample.DATABASE),
    )

    with pytest.raises(NotFound, match=sample.DATABASE) as refused:
        outcome.result()
    assert refused.value.code == "database_unknown"
    assert tables.audit() == []


def test_no_database_is_removed_to_which_a_search_is_added_meanwhile(tables: Stage) -> None:
    slow, quick = tables.open(), tables.open(direct=True)
    quick.add_database(sample.database())

    outcome = overtaken(
        tables,
        lambda: slow.remove_database(sample.DATABASE),
        lambda: quick.add(sample.search(), sample.QUEUED),
    )

    with pytest.raises(Conflict) as refused:
        outcome.result()
    assert refused.value.code == "database_in_use"
    assert quick.get_database(sample.DATABASE).name == sample.DATABASE


def test_no_update_of_a_database_is_lost_to_a_search_that_is_added(tables: Stage) -> None:
    slow, quick = tables.open(), tables.open(direct=True)
    quick.add_database(sample.database())

    overtaken(
        tables,
        lambda: slow.update_database(replace(sample.database(), title="newer")),
        lambda: quick.add(sample.search(), sample.QUEUED),
    ).result()

    assert quick.get_database(sample.DATABASE).title == "newer"


def test_of_two_updates_of_one_version_the_later_is_stale(tables: Stage) -> None:
    slow, quick = tables.open(), tables.open(direct=True)
    added = slow.add(sample.search(database=PATH), sample.QUEUED)

    outcome = overtaken(
        tables,
        lambda: slow.update(replace(added, runner="slow"), Event(State.QUEUED)),
        lambda: quick.update(replace(added, runner="quick"), Event(State.QUEUED)),
    )

    with pytest.raises(Stale):
        outcome.result()
    assert quick.get(added.id).runner == "quick"
    assert len(quick.events(added.id)) == 2
    tables.audit()


def test_a_search_that_is_deleted_meanwhile_does_not_come_back(tables: Stage) -> None:
    slow, quick = tables.open(), tables.open(direct=True)
    added = quick.add(sample.search(database=PATH), sample.QUEUED)
    ended = quick.update(replace(added, state=State.FAILED))
    slow.get(ended.id)

    outcome = overtaken(
        tables,
        lambda: slow.update(replace(ended, phase="late"), Event(State.FAILED)),
        lambda: quick.delete(ended.id),
    )

    with pytest.raises(NotFound):
        outcome.result()
    assert tables.audit() == []


def test_a_search_that_is_changed_meanwhile_is_deleted_with_the_change(tables: Stage) -> None:
    slow, quick = tables.open(), tables.open(direct=True)
    added = quick.add(sample.search(database=PATH), sample.QUEUED)
    ended = quick.update(replace(added, state=State.FAILED))

    overtaken(
        tables,
        lambda: slow.delete(ended.id),
        lambda: quick.update(replace(ended, phase="late"), Event(State.FAILED)),
    ).result()

    assert tables.audit() == []


def test_what_a_client_has_seen_comes_before_what_it_adds(tables: Stage) -> None:
    one, other = tables.open(direct=True), tables.open()
    for _ in range(5):
        seen = one.add(sample.search(database=PATH), sample.QUEUED)
        other.get(seen.id)
        later = other.add(sample.search(database=PATH), sample.QUEUED)
        one, other = other, one
        assert later.sequence > seen.sequence
        assert later.created_at > seen.created_at
