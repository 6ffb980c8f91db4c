"""The server that the tests use: it is real, and nothing of it outlives who started it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from postgres_stage import until

from blastyard.testing.postgres import PostgresServer
from blastyard.testing.postgres_program import descendants, is_running

START = """
import sys
from blastyard.testing.postgres import PostgresServer
with PostgresServer.make() as server:
    print(server.folder, server._child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def owner(postgres_programs: None) -> Iterator[subprocess.Popen[str]]:
    """Another process with a server of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        yield child
        child.kill()


@pytest.mark.parametrize("ending", ["kill", "terminate", "close"])
def test_a_server_ends_with_its_owner_however_that_ends(
    owner: subprocess.Popen[str], ending: str
) -> None:
    assert owner.stdout is not None
    assert owner.stdin is not None
    folder, _, number = owner.stdout.readline().strip().partition(" ")
    processes = [int(number), *descendants(int(number))]
    assert len(processes) > 3

    owner.stdin.close() if ending == "close" else getattr(owner, ending)()
    owner.wait()

    for process in processes:
        until(lambda process=process: not is_running(process))  # type: ignore[misc]
    with PostgresServer.make():  # clears away what a killed owner left
        assert not Path(folder).exists()


def test_a_server_comes_back_at_its_place_with_what_was_committed(
    own_postgres: PostgresServer,
) -> None:
    url = own_postgres.create_database()
    for end in (own_postgres.stop, own_postgres.kill):
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS kept (x int)")
            connection.execute("INSERT INTO kept VALUES (1)")
        end()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        own_postgres.start()

    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (2,)
