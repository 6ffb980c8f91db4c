"""How a PostgreSQL server answers what is asked often: from indexes, never by reading it all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from blastyard.domain.job import State
from blastyard.postgres.address import Address
from blastyard.store import query
from blastyard.store.migrations import server
from blastyard.store.port import Filter
from blastyard.testing.postgres import PostgresServer

Statement = sa.Select[*tuple[Any, ...]]
Plan = Callable[..., str]


@pytest.fixture(scope="module")
def plan(postgres_server: PostgresServer) -> Iterator[Plan]:
    """Tells how a statement would be answered, had the tables grown and sorting become costly."""
    url = postgres_server.create_database()
    server.upgrade(Address.parse(url))
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET enable_bitmapscan = off")

        def explained(statement: Statement, sort: str = "off") -> str:
            connection.execute(f"SET enable_sort = {sort}")
            text = str(statement.compile(engine, compile_kwargs={"literal_binds": True}))
            return "\n".join(str(row[0]) for row in connection.execute(f"EXPLAIN {text}"))

        yield explained
    engine.dispose()
    postgres_server.drop_database(url)


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (Filter(), "searches_pkey"),
        (Filter(user="ada"), "searches_by_user"),
        (Filter(tag="x"), "search_tags_pkey"),
        (Filter(states=frozenset({State.FAILED})), "searches_by_state"),
        (Filter(database="nt"), "searches_by_database"),
        (Filter(ids=("a",)), "searches_id_key"),
    ],
)
def test_every_single_filter_uses_an_index(plan: Plan, wanted: Filter, index: str) -> None:
    told = plan(query.listed(wanted), sort="on" if wanted.ids else "off")

    assert index in told
    assert "Seq Scan" not in told


def test_counting_and_choosing_read_indexes_only(plan: Plan) -> None:
    assert "Index Only Scan using searches_by_state" in plan(query.COUNTS)
    assert "Index Only Scan using searches_live" in plan(query.RUNNERS)
    assert "Index Only Scan using searches_waiting" in plan(query.waiting("r1", 10))


def test_live_searches_come_in_order_without_sorting(plan: Plan) -> None:
    for runner in (None, "r1"):
        told = plan(query.live(runner, 10))
        assert "Index Scan using searches_live" in told
        assert "Sort" not in told
    assert "Index Only Scan using searches_id_key" in plan(query.starting_with("abcd"))
