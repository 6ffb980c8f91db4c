"""Pytest fixtures of a real Redis. In a ``conftest.py``::

    from blastyard.testing.redis_pytest import (  # noqa: F401
        new_redis, own_redis, redis_namespace, redis_program, redis_server
    )

Where the program cannot be had the tests skip, and fail under CI.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from blastyard.domain.errors import Unavailable
from blastyard.settings import caller_environment
from blastyard.testing.redis_server import RedisServer, program

NewRedis = Callable[..., RedisServer]


@pytest.fixture(scope="session")
def redis_program() -> Path:
    """Redis' server program; without it the test skips or fails."""
    try:
        return program()
    except Unavailable as error:
        reason = f"{error.message} {error.next_step}"
        if caller_environment().get("CI") == "true":
            pytest.fail(f"CI must have Redis: {reason}")
        pytest.skip(reason)


@pytest.fixture(scope="session")
def redis_server(redis_program: Path) -> Iterator[RedisServer]:  # noqa: ARG001
    """The run's server. It is everybody's: a test that mistreats one takes ``own_redis``."""
    with (
        tempfile.TemporaryDirectory(prefix="by-redis-", dir="/tmp") as folder,
        RedisServer(Path(folder)) as server,
    ):
        yield server


@pytest.fixture
def redis_namespace() -> str:
    """A name that nobody has used in the run's server."""
    return f"test-{secrets.token_hex(6)}"


@pytest.fixture
def new_redis(redis_program: Path) -> Iterator[NewRedis]:  # noqa: ARG001
    """``new_redis(requirepass="x")``: a server of this test, with these settings."""
    with ExitStack() as stack:

        def start(**settings: str) -> RedisServer:
            folder = tempfile.TemporaryDirectory(prefix="by-redis-", dir="/tmp")
            named = {name.replace("_", "-"): value for name, value in settings.items()}
            path = Path(stack.enter_context(folder))
            return stack.enter_context(RedisServer(path, named))

        yield start


@pytest.fixture
def own_redis(new_redis: NewRedis) -> RedisServer:
    """A server of this test, to be mistreated; it keeps every write on disk."""
    return new_redis()
