"""The search stores keep the contract; the one on SQLite also across processes."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy.dialects import postgresql

from blastyard import sqlite
from blastyard.domain.clock import SystemClock
from blastyard.domain.job import State
from blastyard.domain.search import Search
from blastyard.store import query, schema
from blastyard.store.azure_tables import open_azure_tables
from blastyard.store.memory import MemorySearchStore
from blastyard.store.migrations import upgrade
from blastyard.store.migrations.run import head
from blastyard.store.port import Filter, SearchStore
from blastyard.store.sql import SqlSearchStore, open_postgres_store
from blastyard.testing import sample
from blastyard.testing.azurite import Azurite
from blastyard.testing.contract_registry import RegistryContract
from blastyard.testing.contract_searches import OpenStore, SearchStoreContract
from blastyard.testing.faulty import FaultySearchStore

POSTGRESQL: sa.Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]


class TestMemory(SearchStoreContract, RegistryContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        store = MemorySearchStore(SystemClock().now)
        return lambda: store


class TestFaultyWithoutFaults(SearchStoreContract, RegistryContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        store = MemorySearchStore(SystemClock().now)
        return lambda: FaultySearchStore(store)


class TestSqlite(SearchStoreContract, RegistryContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[OpenStore]:
        opened: list[SearchStore] = []

        def open_one() -> SearchStore:
            opened.append(SqlSearchStore(tmp_path / "blastyard.db"))
            return opened[-1]

        yield open_one
        for store in opened:
            store.close()


class TestAzureTables(SearchStoreContract, RegistryContract):
    @pytest.fixture
    def open_store(self, azurite: Azurite) -> Iterator[OpenStore]:
        opened: list[SearchStore] = []
        table = f"t{secrets.token_hex(8)}"

        def open_one() -> SearchStore:
            opened.append(open_azure_tables(azurite.connection_string, table=table))
            return opened[-1]

        yield open_one
        for store in opened:
            store.close()


class TestPostgres(SearchStoreContract, RegistryContract):
    @pytest.fixture
    def open_store(self, postgres_url: str) -> Iterator[OpenStore]:
        opened: list[SearchStore] = []

        def open_one() -> SearchStore:
            opened.append(open_postgres_store(postgres_url))
            return opened[-1]

        yield open_one
        for store in opened:
            store.close()


PROCESS = """
import sys
from dataclasses import replace
from pathlib import Path
from blastyard.domain.search import Event
from blastyard.store.port import Filter, Stale
from blastyard.store.sql import SqlSearchStore
store = SqlSearchStore(Path(sys.argv[1]) / "blastyard.db")
"""
CLAIM = """
for _ in range(50):
    while True:
        found = store.live()[0]
        try:
            store.update(replace(found, attempt=found.attempt + 1), Event(found.state))
        except Stale:
            continue
        break
store.close()
"""


def run_together(home: Path, program: str, count: int) -> None:
    """So many processes, each with ``store`` open on the same file; all end well."""
    command = [sys.executable, "-W", "error", "-c", PROCESS + program, str(home)]
    children = [subprocess.Popen(command) for _ in range(count)]
    assert [child.wait(timeout=60) for child in children] == [0] * count


def test_processes_that_count_attempts_together_lose_none(tmp_path: Path) -> None:
    with closing(SqlSearchStore(tmp_path / "blastyard.db")) as store:
        store.add_database(sample.database())
        added = store.add(sample.search(), sample.QUEUED)

        run_together(tmp_path, CLAIM, 3)

        assert store.get(added.id).attempt == 150
        assert len(store.events(added.id)) == 151


ADD = """
from blastyard.testing import sample
from blastyard.testing.azurite import Azurite
for number in range(50):
    store.add(sample.search(key=f"k{number}", database="/data/nt"), sample.QUEUED)
store.close()
"""


def test_keys_used_by_processes_at_once_name_one_search_each(tmp_path: Path) -> None:
    run_together(tmp_path, ADD, 3)

    with closing(SqlSearchStore(tmp_path / "blastyard.db")) as store:
        assert len(store.list(Filter())) == 50
        assert [search.sequence for search in store.list(Filter(limit=3))] == [50, 49, 48]


def test_a_deleted_search_leaves_no_row_behind(tmp_path: Path) -> None:
    path = tmp_path / "blastyard.db"
    with closing(SqlSearchStore(path)) as store, closing(sqlite.connect(path)) as connection:
        new = sample.search(database="/data/nt", tags=("a", "b"))
        added = store.add(new, sample.QUEUED)
        store.update(replace(added, state=State.CANCELLED))
        store.delete(added.id)

        for table in ("searches", "search_tags", "search_events"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_many_processes_may_make_the_schema_at_once(tmp_path: Path) -> None:
    run_together(tmp_path / "new", "assert not store.list(Filter()); store.close()", 4)

    assert sqlite.stored_version(tmp_path / "new" / "blastyard.db") == sqlite.SCHEMA_VERSION


def test_the_migrations_make_the_tables_the_store_uses(tmp_path: Path) -> None:
    path = tmp_path / "blastyard.db"
    upgrade(path)
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
        made = _indexes(connection)
    engine.dispose()
    assert head() == sqlite.SCHEMA_VERSION

    fresh = sa.create_engine("sqlite://", poolclass=sa.pool.StaticPool)
    schema.metadata.create_all(fresh)
    with fresh.connect() as connection:
        assert _indexes(connection) == made
    fresh.dispose()


def _indexes(connection: sa.Connection) -> set[tuple[str, str]]:
    rows = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    return {(row[0], row[1].lower()) for row in connection.exec_driver_sql(rows)}


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (Filter(user="ada"), "searches_by_user"),
        (Filter(tag="x"), "sqlite_autoindex_search_tags_1"),
        (Filter(states=frozenset({State.FAILED})), "searches_by_state"),
        (Filter(database="nt"), "searches_by_database"),
        (Filter(ids=("a",)), "sqlite_autoindex_searches_1"),
    ],
)
def test_every_single_filter_uses_an_index(tmp_path: Path, wanted: Filter, index: str) -> None:
    assert index in plan(tmp_path, query.listed(wanted))


def test_counting_and_choosing_read_indexes_only(tmp_path: Path) -> None:
    assert "COVERING INDEX searches_by_state" in plan(tmp_path, query.COUNTS)
    assert "COVERING INDEX searches_live" in plan(tmp_path, query.RUNNERS)
    assert "searches_live" in plan(tmp_path, query.live("r1", None))
    assert "COVERING INDEX searches_waiting" in plan(tmp_path, query.waiting("r1", 10))
    assert "SEARCH searches USING INDEX" in plan(tmp_path, query.using("nt"))


def plan(home: Path, statement: sa.Select[*tuple[Any, ...]]) -> str:
    """How SQLite would answer."""
    path = home / "blastyard.db"
    upgrade(path)
    engine = sa.create_engine(f"sqlite:///{path}")
    compiled = statement.compile(engine, compile_kwargs={"literal_binds": True})
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}").all()
    engine.dispose()
    return "\n".join(row[-1] for row in rows)


@pytest.mark.parametrize(
    "statement",
    [
        sa.select(schema.StoreNow()),
        query.SAME,
        query.listed(Filter(tag="x", ids=("a",), states=frozenset({State.FAILED}))),
        query.waiting("r1", 10),
        query.COUNTS,
        query.RUNNERS,
    ],
)
def test_the_statements_are_also_postgresql(statement: sa.Select[*tuple[Any, ...]]) -> None:
    text = str(statement.compile(dialect=POSTGRESQL))

    assert "strftime" not in text
    assert text.startswith("SELECT")


def test_a_forked_child_goes_on_with_connections_of_its_own(tmp_path: Path) -> None:
    with closing(SqlSearchStore(tmp_path / "blastyard.db")) as store:
        store.add_database(sample.database())
        added = store.add(sample.search(), sample.QUEUED)

        child = os.fork()
        if child == 0:  # it must not return into pytest
            os._exit(_parks(store, added))
        _, status = os.waitpid(child, 0)

        assert os.waitstatus_to_exitcode(status) == 0
        assert store.get(added.id).phase == "parked"
        store.update(store.get(added.id))


def open_files(name: str) -> list[Path]:
    """Descriptors of this process for files of that name."""
    links = [Path(entry.path) for entry in os.scandir("/proc/self/fd")]
    return [link for link in links if link.is_symlink() and link.readlink().name == name]


def _parks(store: SqlSearchStore, search: Search) -> int:
    inherited = open_files("blastyard.db")
    try:
        store.update(replace(search, phase="parked"))
    except BaseException:
        return 1
    return 0 if len(open_files("blastyard.db")) > len(inherited) else 2
