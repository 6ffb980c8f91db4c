"""Processes killed in the middle of writing leave a store the others go on with (kill -9)."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from blastyard import sqlite
from blastyard.admission.port import LEDGER
from blastyard.admission.sql import SqliteDocumentStore
from blastyard.admission.wakeup import Wakeup
from blastyard.domain.errors import Unavailable
from blastyard.domain.search import Event
from blastyard.store.migrations import upgrade
from blastyard.store.sql import SqlSearchStore
from blastyard.testing import sample

SWAP = """
import sys
from pathlib import Path
from blastyard.admission.sql import SqliteDocumentStore
from blastyard.admission.wakeup import Wakeup
from blastyard.store.migrations import upgrade
home = Path(sys.argv[1])
store = SqliteDocumentStore(home / "blastyard.db", wakeup=Wakeup(home / "run"), upgrade=upgrade)
watch, version = store.watch(), store.read("ledger").version
while True:
    version = store.swap("ledger", version, b"x" * 5000).version
    print(version, flush=True)
"""
UPDATE = """
import sys
from dataclasses import replace
from pathlib import Path
from blastyard.domain.errors import Unavailable
from blastyard.domain.search import Event
from blastyard.store.sql import SqlSearchStore
store = SqlSearchStore(Path(sys.argv[1]) / "blastyard.db")
search = store.live()[0]
while True:
    search = store.update(replace(search, attempt=search.attempt + 1), Event(search.state))
    print(search.attempt, flush=True)
"""


def last_word_before_kill(home: Path, program: str, lines: int) -> int:
    """The last number printed by a process that is killed after so many lines."""
    command = [sys.executable, "-c", program, str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(lines):
            child.stdout.readline()
        child.kill()
        rest = child.stdout.read().splitlines()
    return int(rest[-2] if len(rest) > 1 else 0)


@pytest.mark.parametrize("lines", [1, 20, 100])
def test_every_swap_that_was_answered_survives_the_death_of_its_process(
    tmp_path: Path, lines: int
) -> None:
    store = SqliteDocumentStore(
        tmp_path / "blastyard.db", wakeup=Wakeup(tmp_path / "run"), upgrade=upgrade
    )
    answered = last_word_before_kill(tmp_path, SWAP, lines)

    found = store.read(LEDGER)

    assert found.version >= max(answered, lines)
    assert found.body == b"x" * 5000
    assert store.swap(LEDGER, found.version, b"next") is not None
    store.close()


@pytest.mark.parametrize("lines", [1, 20, 100])
def test_an_update_and_its_event_live_or_die_together(tmp_path: Path, lines: int) -> None:
    with closing(SqlSearchStore(tmp_path / "blastyard.db")) as store:
        store.add_database(sample.database())
        added = store.add(sample.search(), sample.QUEUED)

        answered = last_word_before_kill(tmp_path, UPDATE, lines)

        found = store.get(added.id)
        assert found.attempt >= max(answered, lines)
        assert len(store.events(added.id)) == 1 + found.attempt
        store.update(found, Event(found.state))


DIE_IN_MIGRATION = """
import os, sys
from pathlib import Path
from blastyard import sqlite
path = Path(sys.argv[1])
with sqlite.upgrading(path):
    connection = sqlite.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE searches (x)")
    connection.execute(f"PRAGMA user_version={sqlite.SCHEMA_VERSION}")
    os.kill(os.getpid(), 9)  # before COMMIT
"""


def test_a_migration_that_was_killed_half_way_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "blastyard.db"
    died = subprocess.run([sys.executable, "-c", DIE_IN_MIGRATION, str(path)], check=False)
    assert died.returncode == -9
    assert sqlite.stored_version(path) == 0

    upgrade(path)

    assert sqlite.stored_version(path) == sqlite.SCHEMA_VERSION
    with closing(SqlSearchStore(path)) as store:
        assert store.list_databases() == []


def test_a_migration_that_fails_changes_nothing_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "blastyard.db"
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute("CREATE TABLE documents (x)")

        with pytest.raises(Unavailable, match="documents already exists") as refused:
            upgrade(path)

        assert str(path) in refused.value.message
        tables = foreign.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        assert tables == [("documents",)]


def test_an_upgrade_waits_for_the_one_that_is_going_on(tmp_path: Path) -> None:
    path = tmp_path / "blastyard.db"
    command = [sys.executable, "-c", "import sys; from pathlib import Path; "
               "from blastyard.store.migrations import upgrade; "
               "upgrade(Path(sys.argv[1])); print('done')", str(path)]  # fmt: skip
    with sqlite.upgrading(path):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        # it can end only after this block: what it makes is not there yet
        assert sqlite.stored_version(path) == 0
    printed, _ = child.communicate(timeout=60)

    assert printed == "done\n"
