"""The Redis of the tests: ends with its owner, comes back with its data or without."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError as Refused
from redis_stage import SOON

from blastyard.testing.redis_pytest import NewRedis
from blastyard.testing.redis_server import RedisServer

START = """
import sys
from pathlib import Path
from blastyard.testing.redis_server import RedisServer
server = RedisServer(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
sys.stdin.read()
"""


def test_it_is_killed_when_its_owner_is(redis_program: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", START, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        server = os.pidfd_open(int(owner.stdout.readline()))
        assert select.select([server], [], [], 0)[0] == []

        owner.send_signal(signal.SIGKILL)

        assert select.select([server], [], [], SOON)[0] == [server]
        os.close(server)


def test_it_restarts_on_its_port_with_all_that_was_written(own_redis: RedisServer) -> None:
    own_redis.command("SET", "name", "value")
    url, pid = own_redis.url, own_redis.pid

    own_redis.restart()

    assert own_redis.command("GET", "name") == b"value"
    assert own_redis.url == url
    assert own_redis.pid != pid


def test_it_restarts_empty(own_redis: RedisServer) -> None:
    own_redis.command("SET", "name", "value")

    own_redis.restart(empty=True)

    assert own_redis.command("GET", "name") is None
    own_redis.command("SET", "name", "again")
    own_redis.restart()
    assert own_redis.command("GET", "name") == b"again"


def test_killed_it_refuses_connections(own_redis: RedisServer) -> None:
    own_redis.kill()
    own_redis.kill()

    with pytest.raises(Refused):
        own_redis.command("PING")


def test_it_is_told_its_settings(new_redis: NewRedis) -> None:
    server = new_redis(requirepass="p@ss/word", maxmemory_policy="allkeys-lru", save="60 1")

    told = server.command("CONFIG", "GET", "maxmemory-policy")

    assert told == [b"maxmemory-policy", b"allkeys-lru"]
    assert server.command("CONFIG", "GET", "save") == [b"save", b"60 1"]
    assert "p%40ss%2Fword" in server.url
    assert server.url.startswith("redis://")
    assert server.socket_url.startswith("unix://")


def test_servers_of_one_test_are_strangers(new_redis: NewRedis) -> None:
    one, other = new_redis(), new_redis()
    one.command("SET", "name", "value")

    assert other.command("GET", "name") is None
    assert one.port != other.port


def test_one_that_cannot_start_says_why(new_redis: NewRedis) -> None:
    with pytest.raises(AssertionError, match="no Redis"):
        new_redis(maxmemory_policy="nonsense")
