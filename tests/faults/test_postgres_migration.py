"""The tables of a PostgreSQL database are made once, by whoever comes first, or refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from postgres_stage import MOMENT, documents, until_one_waits_for_a_lock

from blastyard.admission.port import LEDGER
from blastyard.domain.errors import Misconfigured, Unavailable
from blastyard.postgres.address import Address
from blastyard.sqlite import SCHEMA_VERSION
from blastyard.store import schema
from blastyard.store.migrations import server
from blastyard.store.migrations.run import _LOCK
from blastyard.store.port import Filter
from blastyard.store.sql import open_postgres_store
from blastyard.testing import sample

OPEN = """
import sys
from blastyard.store.sql import open_postgres_store
from blastyard.testing import sample
store = open_postgres_store(sys.argv[1])
store.add(sample.search(key="one", database="/data/nt"), sample.QUEUED)
store.close()
"""


@pytest.fixture
def visitor(postgres_url: str) -> Iterator[psycopg.Connection]:
    """Somebody else in the database."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def version_of(visitor: psycopg.Connection) -> object:
    """What the database says its schema is."""
    return visitor.execute("SELECT version_num FROM alembic_version").fetchall()


def test_many_replicas_that_start_at_once_make_the_tables_once(
    postgres_url: str, visitor: psycopg.Connection
) -> None:
    command = [sys.executable, "-W", "error", "-c", OPEN, postgres_url]
    children = [subprocess.Popen(command) for _ in range(4)]

    assert [child.wait(timeout=120) for child in children] == [0] * 4
    assert version_of(visitor) == [(f"{SCHEMA_VERSION:04}",)]
    with closing(open_postgres_store(postgres_url)) as store:
        assert len(store.list(Filter())) == 1


def test_the_migrations_make_the_tables_the_stores_use(postgres_url: str) -> None:
    server.upgrade(Address.parse(postgres_url))
    engine = sa.create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
        made = _indexes(connection)
        schema.metadata.drop_all(connection)
        schema.metadata.create_all(connection)
        assert _indexes(connection) == made
        connection.rollback()
    engine.dispose()


def _indexes(connection: sa.Connection) -> set[str]:
    rows = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'"
    return {str(row[0]) for row in connection.exec_driver_sql(rows) if "alembic" not in row[0]}


def test_texts_sort_letter_by_letter_whatever_the_language_of_the_database(
    postgres_url: str, visitor: psycopg.Connection
) -> None:
    server.upgrade(Address.parse(postgres_url))
    (order,) = visitor.execute("SELECT 'a' < 'B'").fetchall()
    columns = visitor.execute(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND data_type = 'character varying'"
        " AND collation_name IS DISTINCT FROM 'C' AND table_name <> 'alembic_version'"
    ).fetchall()

    assert order == (True,)  # as in a dictionary: the test is worth something
    assert columns == []


def test_an_upgrade_waits_for_the_one_that_is_going_on(
    postgres_url: str, visitor: psycopg.Connection
) -> None:
    visitor.execute(f"SELECT pg_advisory_lock({_LOCK})")
    with ThreadPoolExecutor(1) as pool:
        upgraded = pool.submit(server.upgrade, Address.parse(postgres_url))
        until_one_waits_for_a_lock(postgres_url)
        assert visitor.execute("SELECT to_regclass('searches')").fetchall() == [(None,)]

        visitor.execute(f"SELECT pg_advisory_unlock({_LOCK})")
        upgraded.result()

    assert version_of(visitor) == [(f"{SCHEMA_VERSION:04}",)]


def test_an_upgrade_that_does_not_end_is_not_waited_for_for_ever(
    postgres_url: str, visitor: psycopg.Connection
) -> None:
    visitor.execute(f"SELECT pg_advisory_lock({_LOCK})")

    with pytest.raises(Unavailable, match="waiting for a lock"):
        server.upgrade(Address.parse(postgres_url), patience=MOMENT)


def test_an_upgrade_that_is_killed_half_way_changes_nothing_and_is_run_again(
    postgres_url: str, visitor: psycopg.Connection
) -> None:
    visitor.execute("BEGIN")
    visitor.execute("CREATE TABLE search_events (x int)")  # the migration stumbles over it, late
    with ThreadPoolExecutor(1) as pool:
        upgraded = pool.submit(server.upgrade, Address.parse(postgres_url))
        until_one_waits_for_a_lock(postgres_url)
        visitor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        with pytest.raises(Unavailable, match="ended the connection"):
            upgraded.result()
    visitor.execute("ROLLBACK")
    assert visitor.execute("SELECT to_regclass('searches')").fetchall() == [(None,)]

    server.upgrade(Address.parse(postgres_url))

    assert version_of(visitor) == [(f"{SCHEMA_VERSION:04}",)]


def test_a_newer_schema_is_refused_at_the_start_and_at_the_next_write(
    postgres_url: str, visitor: psycopg.Connection
) -> None:
    newcomer = documents(postgres_url)
    with (
        closing(open_postgres_store(postgres_url)) as searches,
        closing(documents(postgres_url)) as papers,
        closing(newcomer),
    ):
        searches.add_database(sample.database())
        done = papers.swap(LEDGER, 0, b"x")
        assert done is not None
        newer = f"{SCHEMA_VERSION + 1:04}"
        visitor.execute("UPDATE alembic_version SET version_num = %s", (newer,))

        for call in (
            lambda: papers.swap(LEDGER, done.version, b"y"),
            lambda: papers.swap(LEDGER, done.version, None),
            lambda: papers.swap("another", 0, b"y"),
            lambda: searches.add(sample.search(), sample.QUEUED),
            lambda: searches.remove_database(sample.DATABASE),
            lambda: newcomer.read(LEDGER),
            lambda: open_postgres_store(postgres_url),
            lambda: server.upgrade(Address.parse(postgres_url)),
        ):
            with pytest.raises(Misconfigured, match=f"has schema {int(newer)}; this") as refused:
                call()
            assert refused.value.code == "store_newer"
            assert refused.value.next_step
        assert papers.read(LEDGER).body == b"x"
        assert len(searches.list_databases()) == 1
        assert searches.list(Filter()) == []


def test_tables_of_another_program_are_left_alone(
    postgres_url: str, visitor: psycopg.Connection
) -> None:
    visitor.execute("CREATE TABLE documents (x int)")
    with pytest.raises(Misconfigured, match="tables of another program under names") as refused:
        open_postgres_store(postgres_url)
    assert "database of its own" in refused.value.next_step
    assert visitor.execute("SELECT to_regclass('searches')").fetchall() == [(None,)]

    visitor.execute("CREATE TABLE alembic_version (version_num text)")
    visitor.execute("INSERT INTO alembic_version VALUES ('ae1027a6acf')")
    with pytest.raises(Misconfigured, match=r"another program .*ae1027a6acf"):
        open_postgres_store(postgres_url)


def test_a_database_may_hold_blastyard_in_a_schema_of_its_own(
    postgres_url: str, visitor: psycopg.Connection
) -> None:
    visitor.execute("CREATE SCHEMA ours")
    visitor.execute("CREATE TABLE documents (x int)")
    url = postgres_url + "?options=-csearch_path%3Dours"

    with closing(open_postgres_store(url)) as searches, closing(documents(url)) as papers:
        searches.add(sample.search(database="/data/nt"), sample.QUEUED)
        assert papers.swap(LEDGER, 0, b"x") is not None

    assert visitor.execute("SELECT count(*) FROM ours.documents").fetchall() == [(1,)]


def test_what_the_administrator_set_for_everybody_does_not_disturb(
    postgres_url: str, visitor: psycopg.Connection
) -> None:
    name = postgres_url.rpartition("/")[2]
    for setting in (
        "timezone = 'Pacific/Kiritimati'",
        "datestyle = 'German'",
        "bytea_output = 'escape'",
        "default_transaction_isolation = 'serializable'",
        "synchronous_commit = off",
        "statement_timeout = '1s'",
        "standard_conforming_strings = on",
    ):
        visitor.execute(f"ALTER DATABASE {name} SET {setting}")
    with (
        closing(open_postgres_store(postgres_url)) as searches,
        closing(documents(postgres_url)) as papers,
    ):
        added = searches.add(sample.search(database="/data/nt"), sample.QUEUED)
        done = papers.swap(LEDGER, 0, b"\0\xff")
        assert done is not None
        found = papers.read(LEDGER)

        assert searches.get(added.id) == added
        assert added.created_at.utcoffset() == timedelta(0)
        assert (found.body, found.stamped_at) == (b"\0\xff", done.stamped_at)
        assert found.now.utcoffset() == timedelta(0)
        assert papers._pool.ask("SHOW synchronous_commit") == [("on",)]
        assert papers._pool.ask("SHOW statement_timeout") == [("5s",)]
