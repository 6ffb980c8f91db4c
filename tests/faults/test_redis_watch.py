"""Who waits hears what is changed through a Redis, and after it was cut off wakes once more."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

from redis_stage import AT_ONCE, KEY, ME, SOON, Open, Wire, until, written

from blastyard.admission.port import LEASE, LEDGER
from blastyard.domain.errors import Unavailable
from blastyard.testing.redis_pytest import NewRedis
from blastyard.testing.redis_server import RedisServer

RESTLESS = replace(AT_ONCE, quiet=timedelta(seconds=0.1))

ANSWER = """
import sys
from datetime import timedelta
from blastyard.admission.redis.address import Address
from blastyard.admission.redis.documents import Pace, RedisDocumentStore
pace = Pace(grace=timedelta(0))
store = RedisDocumentStore(Address.parse(sys.argv[1]), "lab", pace)
watch = store.watch()
print("up", flush=True)
assert watch.wait(20)
assert store.swap("lease", 0, b"answer")
store.close()
"""


def subscribers(server: RedisServer) -> int:
    """How many connections listen."""
    return int(server.command("PUBSUB", "NUMSUB", f"{KEY}:changes")[1])


def test_processes_wake_each_other(own_redis: RedisServer, open_redis: Open) -> None:
    store = open_redis(own_redis)
    watch = store.watch()
    command = [sys.executable, "-c", ANSWER, own_redis.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "up\n"

            written(store, LEDGER)

            until(lambda: watch.wait(SOON) and store.read(LEASE).body == b"answer")
            assert child.wait(SOON) == 0
        finally:
            child.kill()


def test_watches_of_a_process_share_one_connection(
    own_redis: RedisServer, open_redis: Open
) -> None:
    """Fault Q9."""
    store = open_redis(own_redis)
    watches = [store.watch() for _ in range(20)]

    assert subscribers(own_redis) == 1
    open_redis(own_redis).notify()
    assert all([watch.wait(SOON) for watch in watches])  # noqa: C419  (all of them wait)


def test_a_sign_of_life_wakes_nobody(own_redis: RedisServer, open_redis: Open) -> None:
    """Fault Q9."""
    store, other = open_redis(own_redis), open_redis(own_redis)
    watch = store.watch()
    for writer in (store, other):
        version = written(writer, ME)[ME]
        writer.swap(ME, version, None)

    assert not watch.wait(0.2)
    written(other, LEDGER)
    assert watch.wait(SOON)


def test_after_a_restart_of_the_server_the_watches_wake_and_hear_again(
    own_redis: RedisServer, open_redis: Open
) -> None:
    """Fault Q10."""
    store, other = open_redis(own_redis), open_redis(own_redis)
    watch = store.watch()

    own_redis.restart(empty=True)

    assert watch.wait(SOON), "what happened meanwhile was not heard"
    until(lambda: subscribers(own_redis) == 1)
    watch.wait(0)
    written(other, LEDGER)
    assert watch.wait(SOON)
    assert store.trouble is None


def test_while_the_server_is_away_it_is_tried_less_and_less_and_told_why(
    own_redis: RedisServer, open_redis: Open
) -> None:
    """Fault Q10."""
    store = open_redis(own_redis)
    watch = store.watch()
    own_redis.kill()

    trouble = until(lambda: store.trouble)

    assert isinstance(trouble, Unavailable)
    until(lambda: "cannot be reached" in str(store.trouble))
    assert not watch.wait(0)
    store.notify()
    assert watch.wait(SOON), "its own process is heard all the same"


def test_a_watch_that_begins_while_the_server_is_away_wakes_when_it_comes(
    own_redis: RedisServer, open_redis: Open
) -> None:
    """Fault Q10."""
    own_redis.kill()
    watch = open_redis(own_redis).watch()
    assert not watch.wait(0)

    own_redis.start()

    assert watch.wait(SOON)


def test_a_dead_line_is_noticed_without_being_told(redis_wire: Wire, open_redis: Open) -> None:
    """Fault Q10."""
    store = open_redis(redis_wire.url, RESTLESS)
    watch = store.watch()

    redis_wire.go_dead()
    until(lambda: store.trouble)
    redis_wire.heal()

    assert watch.wait(SOON)
    until(lambda: store.trouble is None)


def test_a_quiet_line_is_tried_and_wakes_nobody(own_redis: RedisServer, open_redis: Open) -> None:
    """Fault Q9."""
    store = open_redis(own_redis, RESTLESS)
    watch = store.watch()

    assert not watch.wait(0.5)

    assert store.trouble is None
    open_redis(own_redis).notify()
    assert watch.wait(SOON)


def test_a_thread_wakes_another_while_the_server_is_stopped(
    own_redis: RedisServer, open_redis: Open
) -> None:
    store = open_redis(own_redis)
    watch = store.watch()
    own_redis.pause()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(watch.wait, 10 * SOON)
        watch.wake()
        assert waiting.result(SOON)
    own_redis.resume()


def test_a_server_that_wants_a_password_is_told_by_the_watch(
    new_redis: NewRedis, open_redis: Open
) -> None:
    """Fault A12."""
    server = new_redis(requirepass="right")
    store = open_redis(server.url.replace("right", "wrong"))
    watch = store.watch()

    assert not watch.wait(0)
    assert "does not let this account in" in str(until(lambda: store.trouble))


def test_a_forked_child_listens_by_itself_and_leaves_the_parent_alone(
    own_redis: RedisServer, open_redis: Open
) -> None:
    store = open_redis(own_redis)
    watch = store.watch()

    child = os.fork()
    if child == 0:  # it must not return into pytest
        try:
            assert watch.wait(0), "what happened since the fork was not heard"
            until(lambda: watch.wait(SOON) and store.read(LEDGER).body)
            store.close()
        except BaseException:
            os._exit(1)
        os._exit(0)
    until(lambda: subscribers(own_redis) == 2)
    written(open_redis(own_redis), LEDGER)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert watch.wait(SOON)
    until(lambda: subscribers(own_redis) == 1)
    open_redis(own_redis).notify()
    assert watch.wait(SOON)


def test_a_dropped_watch_is_forgotten(own_redis: RedisServer, open_redis: Open) -> None:
    store = open_redis(own_redis)
    for _ in range(100):
        store.watch()

    kept = store.watch()

    assert len(store._listener._watches) == 1
    kept.close()
