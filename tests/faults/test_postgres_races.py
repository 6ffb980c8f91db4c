"""Two at once on a PostgreSQL server, in the order that hurts: forced, not hoped for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest
from postgres_stage import documents, until_one_waits_for_a_lock

from blastyard.admission.port import LEDGER
from blastyard.domain.errors import Conflict, NotFound
from blastyard.domain.job import State
from blastyard.domain.search import Event, Search
from blastyard.store import query, registry, row
from blastyard.store.port import Filter, Stale
from blastyard.store.sql import SqlSearchStore, open_postgres_store
from blastyard.testing import sample
from blastyard.testing.postgres import PostgresServer


@pytest.fixture
def store(postgres_url: str) -> Iterator[SqlSearchStore]:
    """A store in which :data:`sample.DATABASE` is registered."""
    with closing(open_postgres_store(postgres_url)) as store:
        store.add_database(sample.database())
        yield store


@pytest.mark.parametrize("same", ["id", "key"])
def test_of_two_adds_at_once_the_second_waits_and_gets_the_first_ones_search(
    store: SqlSearchStore, postgres_url: str, same: str
) -> None:
    first = replace(sample.search(key="k"), version=1)
    second = sample.search(key="k") if same == "key" else replace(sample.search(), id=first.id)
    with ThreadPoolExecutor(1) as pool:
        with store._engine.writing() as connection:
            sequence = connection.execute(query.NEW, row.new(first)).scalar_one()
            added = pool.submit(store.add, second, sample.QUEUED)
            until_one_waits_for_a_lock(postgres_url)

        assert added.result() == replace(first, sequence=sequence)
    assert len(store.list(Filter())) == 1


def test_an_add_whose_rival_gives_up_goes_on(store: SqlSearchStore, postgres_url: str) -> None:
    rival, new = replace(sample.search(key="k"), version=1), sample.search(key="k")
    with ThreadPoolExecutor(1) as pool:
        with store._engine.writing() as connection:
            connection.execute(query.NEW, row.new(rival))
            added = pool.submit(store.add, new, sample.QUEUED)
            until_one_waits_for_a_lock(postgres_url)
            connection.rollback()

        assert added.result().id == new.id
    assert [one.id for one in store.list(Filter())] == [new.id]


def test_a_database_cannot_be_removed_while_a_search_is_being_added(
    store: SqlSearchStore, postgres_url: str
) -> None:
    new = replace(sample.search(), version=1)
    with ThreadPoolExecutor(1) as pool:
        with store._engine.writing() as connection:
            registry.require(connection, sample.DATABASE)
            connection.execute(query.NEW, row.new(new))
            removed = pool.submit(store.remove_database, sample.DATABASE)
            until_one_waits_for_a_lock(postgres_url)

        with pytest.raises(Conflict, match=new.id):
            removed.result()


def test_a_search_cannot_be_added_while_its_database_is_removed(
    store: SqlSearchStore, postgres_url: str
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with store._engine.writing() as connection:
            registry.remove(connection, sample.DATABASE)
            added = pool.submit(store.add, sample.search(), sample.QUEUED)
            until_one_waits_for_a_lock(postgres_url)

        with pytest.raises(NotFound, match=sample.DATABASE):
            added.result()
    assert store.list(Filter()) == []


def test_searches_are_added_to_a_database_beside_each_other_and_its_changes(
    store: SqlSearchStore,
) -> None:
    with store._engine.writing() as connection:
        registry.require(connection, sample.DATABASE)

        store.add(sample.search(), sample.QUEUED)
        store.update_database(sample.database())


def test_a_database_registered_twice_at_once_is_registered_once(
    store: SqlSearchStore, postgres_url: str
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with store._engine.writing() as connection:
            registry.add(connection, sample.database("nt"))
            added = pool.submit(store.add_database, replace(sample.database("nt"), title="late"))
            until_one_waits_for_a_lock(postgres_url)

        with pytest.raises(Conflict) as refused:
            added.result()
    assert refused.value.code == "database_exists"
    assert store.get_database("nt").title == sample.database().title


def test_of_two_updates_at_once_the_second_is_stale_and_leaves_no_event(
    store: SqlSearchStore, postgres_url: str
) -> None:
    added = store.add(sample.search(), sample.QUEUED)
    with ThreadPoolExecutor(1) as pool:
        with store._engine.writing() as connection:
            won = replace(added, phase="won", version=2)
            same = {"same_id": added.id, "same_version": added.version}
            connection.execute(query.OVER, {**row.changed(won), **same})
            late = pool.submit(store.update, replace(added, phase="late"), Event(State.QUEUED))
            until_one_waits_for_a_lock(postgres_url)

        with pytest.raises(Stale):
            late.result()
    assert store.get(added.id) == won
    assert len(store.events(added.id)) == 1


def test_a_search_that_is_changed_while_it_is_deleted_is_looked_at_again(
    store: SqlSearchStore, postgres_url: str
) -> None:
    added = store.add(sample.search(), sample.QUEUED)
    ended = store.update(replace(added, state=State.CANCELLED))
    with ThreadPoolExecutor(1) as pool:
        with store._engine.writing() as connection:
            same = {"same_id": ended.id, "same_version": ended.version}
            alive = replace(ended, state=State.QUEUED, version=ended.version + 1)
            connection.execute(query.OVER, {**row.changed(alive), **same})
            deleted = pool.submit(store.delete, ended.id)
            until_one_waits_for_a_lock(postgres_url)

        with pytest.raises(Conflict, match=ended.id):
            deleted.result()


def test_of_two_swaps_at_once_the_second_waits_and_conflicts(
    store: SqlSearchStore, postgres_url: str
) -> None:
    with closing(documents(postgres_url)) as papers, psycopg.connect(postgres_url) as rival:
        done = papers.swap(LEDGER, 0, b"first")
        assert done is not None
        for version, change in (
            (done.version, "UPDATE documents SET version = DEFAULT, body = 'rival'"),
            (0, "INSERT INTO documents VALUES (DEFAULT, 'lease', 'rival', now())"),
        ):
            name = LEDGER if version else "lease"
            with ThreadPoolExecutor(1) as pool:
                rival.execute(change)
                swapped = pool.submit(papers.swap, name, version, b"late")
                until_one_waits_for_a_lock(postgres_url)
                rival.commit()

                assert swapped.result() is None
            assert papers.read(name).body == b"rival"


@pytest.mark.parametrize(
    "odd", ["\0", "a\0b", "x" * 1024, "\U0001f9ec" * 1024, "\x01sha256:" + "0" * 64]
)
def test_odd_keys_users_and_names_are_kept_apart_and_found(store: SqlSearchStore, odd: str) -> None:
    added = store.add(
        sample.search(key=odd, user=odd, tags=(odd,), database="/" + odd), sample.QUEUED
    )
    store.add(sample.search(key=odd + "'", user=odd, database="/" + odd + "'"), sample.QUEUED)

    assert store.by_key(odd, odd) == added == store.get(added.id)
    assert added.request.key == odd
    assert store.list(Filter(tag=odd)) == [added]
    assert store.list(Filter(database="/" + odd)) == [added]
    assert len(store.list(Filter(user=odd))) == 2
    assert store.add(sample.search(key=odd, user=odd), sample.QUEUED) == added
    for call in (store.get, store.resolve, store.get_database):
        with pytest.raises(NotFound):
            call(odd)


PROCESS = """
import sys
from dataclasses import replace
from blastyard.domain.search import Event
from blastyard.store.migrations import server
from blastyard.store.port import Stale
from blastyard.admission.postgres.documents import PostgresDocumentStore
from blastyard.store.sql import open_postgres_store
from blastyard.testing import sample
store = open_postgres_store(sys.argv[1])
papers = PostgresDocumentStore(sys.argv[1], upgrade=server.upgrade)
for number in range(40):
    store.add(sample.search(key=f"k{number}", database="/data/nt"), sample.QUEUED)
    while True:
        found = store.by_key("ada", "k0")
        try:
            store.update(replace(found, attempt=found.attempt + 1), Event(found.state))
        except Stale:
            continue
        break
    while True:
        found = papers.read("ledger")
        if papers.swap("ledger", found.version, b"%d" % (int(found.body or 0) + 1)):
            break
papers.close()
store.close()
"""


def test_processes_that_do_everything_at_once_lose_and_double_nothing(
    store: SqlSearchStore, postgres_url: str
) -> None:
    command = [sys.executable, "-W", "error", "-c", PROCESS, postgres_url]
    children = [subprocess.Popen(command) for _ in range(3)]
    assert [child.wait(timeout=120) for child in children] == [0, 0, 0]

    stored = store.list(Filter())
    counted = store.by_key("ada", "k0")
    assert counted is not None
    assert sorted(str(search.request.key) for search in stored) == sorted(
        f"k{number}" for number in range(40)
    )
    assert (counted.attempt, len(store.events(counted.id))) == (120, 121)
    with closing(documents(postgres_url)) as papers:
        assert papers.read(LEDGER).body == b"120"


def test_a_forked_child_goes_on_with_connections_of_its_own(
    store: SqlSearchStore, postgres_url: str, postgres_server: PostgresServer
) -> None:
    added = store.add(sample.search(), sample.QUEUED)
    name = postgres_url.rpartition("/")[2]
    mine = f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}' AND usename = 'blastyard'"
    before = postgres_server.execute(mine)

    child = os.fork()
    if child == 0:  # it must not return into pytest
        os._exit(_parks(store, added))
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert store.get(added.id).phase == "parked"
    store.update(store.get(added.id))
    assert set(before) <= set(postgres_server.execute(mine))


def _parks(store: SqlSearchStore, search: Search) -> int:
    try:
        for _ in range(20):
            search = store.update(replace(search, phase="parked"))
        store.close()
    except BaseException:
        return 1
    return 0
