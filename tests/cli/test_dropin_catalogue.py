"""The quick look-up of databases and the search store read the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from blastyard import sqlite
from blastyard.domain.errors import Misconfigured
from blastyard.domain.search import DatabaseState
from blastyard.store.catalogue import SqliteCatalogue
from blastyard.store.sql import SqlSearchStore
from blastyard.testing import sample


@pytest.fixture
def path(home: Path) -> Path:
    return home / "blastyard.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqlSearchStore]:
    with closing(SqlSearchStore(path)) as made:
        yield made


def test_a_database_is_found_as_the_store_has_it(path: Path, store: SqlSearchStore) -> None:
    store.add_database(sample.database("swissprot"))
    store.add_database(sample.database("nt"))

    assert SqliteCatalogue(path).find("nt") == store.get_database("nt")


def test_a_change_is_seen_at_once(path: Path, store: SqlSearchStore) -> None:
    store.add_database(sample.database())
    catalogue = SqliteCatalogue(path)
    ready = replace(sample.database(), state=DatabaseState.READY, path="/else/where")
    store.update_database(ready)

    assert catalogue.find(sample.DATABASE) == ready
    store.remove_database(sample.DATABASE)
    assert catalogue.find(sample.DATABASE) is None


def test_names_are_exact(path: Path, store: SqlSearchStore) -> None:
    store.add_database(sample.database("nt"))

    assert SqliteCatalogue(path).find("NT") is None
    assert SqliteCatalogue(path).find("n%") is None


def test_an_installation_that_was_never_used_has_no_databases(path: Path) -> None:
    assert SqliteCatalogue(path).find("nt") is None
    assert not path.exists()


def test_a_file_without_tables_has_no_databases(path: Path) -> None:
    sqlite.create(path)

    assert SqliteCatalogue(path).find("nt") is None


def test_a_newer_schema_is_refused(path: Path, store: SqlSearchStore) -> None:
    store.add_database(sample.database("nt"))
    with closing(sqlite.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {sqlite.SCHEMA_VERSION + 1}")

    with pytest.raises(Misconfigured, match="schema"):
        SqliteCatalogue(path).find("nt")
