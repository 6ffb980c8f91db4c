"""Lost answers, silence, broken connections: calls end in time, and nothing is asked twice."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis_stage import AT_ONCE, KEY, ME, SOON, Open, Wire, refused, until, written

from blastyard.admission.port import ABSENT, LEASE, LEDGER, DocumentStore, Version
from blastyard.admission.redis.address import Address
from blastyard.admission.redis.documents import Pace
from blastyard.admission.redis.line import Line
from blastyard.admission.timing import Timings
from blastyard.domain.clock import SystemClock
from blastyard.testing.redis_server import RedisServer


def seconds_of(attempt: Callable[[], object]) -> float:
    """How long it takes until it cannot be told."""
    clock = SystemClock()
    begun = clock.monotonic()
    refused(attempt)
    return clock.monotonic() - begun


def swaps(server: RedisServer) -> int:
    """How many writes there were in the data set."""
    return int(server.command("HGET", KEY, ".count"))


def clients(server: RedisServer) -> str:
    """Who is connected, each on a line; whoever asks is one of them."""
    told: bytes = server.command("CLIENT", "LIST")
    return told.decode()


def test_the_time_outs_of_one_call_stay_below_what_the_lease_allows() -> None:
    """Connecting, signing in and asking: no more of them can be waited for in vain."""
    timings, pace = Timings(), Pace()

    assert 3 * pace.timeout < timings.request_timeout < timings.margin
    assert pace.grace >= timings.lapse > timings.takeover
    assert pace.grace > 3 * timings.beat + timings.request_timeout


@pytest.mark.parametrize("name", [LEASE, LEDGER, ME])
def test_a_swap_whose_answer_is_lost_was_done_once_and_is_found(
    own_redis: RedisServer, redis_wire: Wire, open_redis: Open, name: str
) -> None:
    """Faults A1 and A2."""
    store = open_redis(redis_wire.url)
    version = written(store, name)[name]
    before = swaps(own_redis)

    redis_wire.lose_answers()
    error = refused(lambda: store.swap(name, version, b"mine"))

    assert "may have been done" in error.message
    assert swaps(own_redis) == before + 1
    found = store.read(name)
    assert found.body == b"mine"
    assert store.swap(name, version, b"mine") is None
    assert store.swap(name, found.version, b"next") is not None


def test_a_swap_that_never_arrived_is_not_sent_later(
    own_redis: RedisServer, redis_wire: Wire, open_redis: Open
) -> None:
    """Fault A2."""
    store = open_redis(redis_wire.url)
    version = written(store, LEDGER)[LEDGER]
    before, asked = swaps(own_redis), redis_wire.asked
    redis_wire.cut()

    for _ in range(3):
        refused(lambda: store.swap(LEDGER, version, b"late"))

    redis_wire.heal()
    assert store.read(LEDGER).version == version
    assert swaps(own_redis) == before
    assert redis_wire.asked <= asked + 2


def test_a_lost_answer_to_whoever_begins_a_data_set_begins_no_second_one(
    own_redis: RedisServer, redis_wire: Wire, open_redis: Open
) -> None:
    """Fault A1."""
    store = open_redis(redis_wire.url)
    store.check()
    own_redis.command("FLUSHALL")
    redis_wire.lose_answers(3)
    for _ in range(3):
        refused(lambda: store.read(LEDGER))
    epoch = own_redis.command("HGET", KEY, ".epoch")

    assert written(store, LEDGER)
    assert own_redis.command("HGET", KEY, ".epoch") == epoch or epoch is None


def test_scripts_that_the_server_forgot_are_told_to_it_again(
    own_redis: RedisServer, open_redis: Open
) -> None:
    store = open_redis(own_redis)
    version: Version = ABSENT
    for number in range(3):
        own_redis.command("SCRIPT", "FLUSH")
        before = swaps(own_redis) if number else 0
        done = store.swap(LEDGER, version, b"%d" % number)
        assert done is not None
        assert swaps(own_redis) == before + 1
        version = done.version
        own_redis.command("SCRIPT", "FLUSH")
        assert store.read(LEDGER).version == version
        own_redis.command("SCRIPT", "FLUSH")
        assert list(store.scan("")) == [LEDGER]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_stopped_server_is_given_up_in_time(
    own_redis: RedisServer, open_redis: Open, is_known: bool
) -> None:
    """Fault A13."""
    store = open_redis(own_redis)
    if is_known:
        store.check()
    own_redis.pause()

    for attempt in (
        lambda: store.read(LEDGER),
        lambda: store.swap(LEASE, ABSENT, b"mine"),
        lambda: store.scan(""),
    ):
        assert 0.5 < seconds_of(attempt) < 2.5 * AT_ONCE.timeout.total_seconds()
    own_redis.resume()
    assert written(store, ME)


def test_a_swap_that_a_stopped_server_got_may_be_done_when_it_goes_on(
    own_redis: RedisServer, open_redis: Open
) -> None:
    """Fault A1."""
    store = open_redis(own_redis)
    version = written(store, LEDGER)[LEDGER]
    own_redis.pause()

    error = refused(lambda: store.swap(LEDGER, version, b"mine"))

    assert "may have been done" in error.message
    own_redis.resume()
    assert store.read(LEDGER).body == b"mine"


def test_dead_connections_cost_one_call_together_and_not_one_each(
    own_redis: RedisServer, redis_wire: Wire, open_redis: Open
) -> None:
    """Faults A13 and Q10: a router has forgotten them, and tells nobody."""
    store = open_redis(redis_wire.url)
    store.check()
    asked = redis_wire.asked
    own_redis.pause()
    with ThreadPoolExecutor(4) as pool:
        reading = [pool.submit(store.read, LEDGER) for _ in range(4)]
        until(lambda: redis_wire.asked >= asked + 4)
        own_redis.resume()
        assert [each.result().body for each in reading] == [None] * 4
    redis_wire.abandon()

    assert seconds_of(lambda: store.read(LEDGER)) >= 0.9

    for _ in range(10):
        assert store.read(LEDGER).body is None


def test_who_is_interrupted_leaves_the_answer_to_nobody(own_redis: RedisServer) -> None:
    """A time limit of a worker comes as a signal, between any two steps."""
    line = Line(Address.parse(own_redis.url), AT_ONCE.timeout)
    assert line.ask("ECHO", "before") == b"before"
    own_redis.pause()

    def interrupted() -> None:
        with line._connected() as connection:
            connection.send_command("ECHO", "interrupted")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    own_redis.resume()

    assert line.ask("ECHO", "mine") == b"mine"
    line.close()


def test_connections_that_a_restart_ended_cost_nobody_a_call(
    own_redis: RedisServer, open_redis: Open
) -> None:
    """Fault A13."""
    store = open_redis(own_redis)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: store.read(LEDGER), range(64)))

    own_redis.restart()

    for _ in range(10):
        assert store.read(LEDGER).body is None


def test_connections_are_shared_by_threads_and_no_more_are_kept_than_were_used(
    own_redis: RedisServer, open_redis: Open
) -> None:
    store = open_redis(own_redis)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: store.read(LEDGER), range(400)))

    assert 1 <= clients(own_redis).count("cmd=evalsha") <= 4


def test_a_closed_store_is_closed(own_redis: RedisServer, open_redis: Open) -> None:
    store = open_redis(own_redis)
    watch = store.watch()
    written(store, LEDGER)

    store.close()
    store.close()

    assert "was closed" in refused(lambda: store.read(LEDGER)).message
    assert "was closed" in refused(store.watch).message
    assert watch.wait(SOON)
    store.notify()
    until(lambda: len(clients(own_redis).splitlines()) == 1)


def test_a_forked_child_has_connections_and_a_sender_of_its_own(
    own_redis: RedisServer, open_redis: Open
) -> None:
    store = open_redis(own_redis)
    version = written(store, LEDGER)[LEDGER]
    watch = store.watch()

    child = os.fork()
    if child == 0:  # it must not return into pytest
        os._exit(0 if _swaps(store, version) else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert watch.wait(SOON)
    assert store.read(LEDGER).body == b"child"


def _swaps(store: DocumentStore, version: Version) -> bool:
    swapped = store.swap(LEDGER, version, b"child") is not None
    store.close()
    return swapped
