"""Pytest fixtures of a real PostgreSQL server. In a ``conftest.py``::

    from blastyard.testing.postgres_pytest import (  # noqa: F401
        module_postgres, own_postgres, postgres_programs, postgres_server, postgres_url,
    )

One server serves all tests of a pytest process; each test has a database of its own in it. Where
the server cannot be had the tests skip, and fail under CI.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from blastyard.domain.errors import Unavailable
from blastyard.settings import caller_environment
from blastyard.testing.postgres import PostgresServer
from blastyard.testing.postgres_program import find_programs


@pytest.fixture(scope="session")
def postgres_programs() -> None:
    """There, or the test that asks for it skips or fails."""
    try:
        find_programs()
    except Unavailable as error:
        reason = f"{error.message} {error.next_step}"
        if caller_environment().get("CI") == "true":
            pytest.fail(f"CI must have PostgreSQL: {reason}")
        pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres_server(postgres_programs: None) -> Iterator[PostgresServer]:  # noqa: ARG001
    """The run's server. It is everybody's: a test that stops it takes :func:`own_postgres`."""
    with PostgresServer.make() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database; it is dropped afterwards, whoever is still connected."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(scope="module")
def module_postgres(postgres_programs: None) -> Iterator[PostgresServer]:  # noqa: ARG001
    """What :func:`own_postgres` gives."""
    with PostgresServer.make() as server:
        yield server


@pytest.fixture
def own_postgres(module_postgres: PostgresServer) -> PostgresServer:
    """A running server of one test module, to be mistreated."""
    module_postgres.start()
    return module_postgres
