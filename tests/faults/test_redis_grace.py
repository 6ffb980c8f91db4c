"""A Redis that may have forgotten takes no claims for a while, and one that may evict none."""

from __future__ import annotations

import pytest
from redis_stage import (
    KEY,
    LONG,
    LOSSES,
    ME,
    SHORT,
    SOON,
    Loss,
    Open,
    possible,
    refused,
    written,
)

from blastyard.admission.port import ABSENT, LEASE, LEDGER
from blastyard.domain.errors import Misconfigured
from blastyard.testing.redis_pytest import NewRedis
from blastyard.testing.redis_server import RedisServer

NAMES = (LEASE, LEDGER, ME)


# -- the grace -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [LEASE, LEDGER])
def test_a_new_data_set_takes_no_claim_until_everybody_could_sign_on(
    own_redis: RedisServer, open_redis: Open, name: str
) -> None:
    """Fault B14."""
    store = open_redis(own_redis, LONG)
    other = open_redis(own_redis, LONG)

    assert written(store, ME), "a sign of life is taken"
    error = refused(lambda: store.swap(name, ABSENT, b"mine"))

    assert error.code == "store_unavailable"
    assert error.retry_after is not None
    assert 3500 < error.retry_after <= 3600
    assert "was emptied or was started again" in error.message
    assert "Nothing was written" in error.message
    assert other.read(name).version == ABSENT
    assert store.swap(name, ABSENT, None) is not None, "there is nothing to delete"


@pytest.mark.parametrize("loss", LOSSES)
def test_the_grace_begins_anew_with_every_loss(
    own_redis: RedisServer, open_redis: Open, loss: Loss
) -> None:
    """Faults A8 and B14."""
    store = open_redis(own_redis, LONG)
    store.inaugurate()
    versions = written(store, LEASE, LEDGER)
    assert len(versions) == 2

    loss(own_redis)

    for name, version in versions.items():
        assert store.swap(name, version, b"late") is None
        refused(lambda name=name: store.swap(name, ABSENT, b"mine"))  # type: ignore[misc]


def test_after_the_grace_all_is_as_ever(own_redis: RedisServer, open_redis: Open) -> None:
    store = open_redis(own_redis, SHORT)
    error = refused(lambda: store.swap(LEDGER, ABSENT, b"mine"))
    assert error.retry_after is not None
    assert error.retry_after <= 0.5

    done = possible(lambda: store.swap(LEDGER, ABSENT, b"mine"))

    assert done is not None
    assert done.stamped_at is not None
    assert store.swap(LEDGER, done.version, b"again") is not None


def test_a_server_clock_that_was_put_back_costs_one_more_grace_and_no_eternity(
    own_redis: RedisServer, open_redis: Open
) -> None:
    store = open_redis(own_redis, SHORT)
    written(store, ME)
    own_redis.command("HSET", KEY, ".since", 4_000_000_000_000_000)  # the year 2096

    error = refused(lambda: store.swap(LEDGER, ABSENT, b"mine"))

    assert error.retry_after == pytest.approx(0.5, abs=0.01)
    assert possible(lambda: store.swap(LEDGER, ABSENT, b"mine")) is not None


def test_who_answers_for_it_that_nobody_holds_anything_needs_no_grace(
    own_redis: RedisServer, open_redis: Open
) -> None:
    store, other = open_redis(own_redis, LONG), open_redis(own_redis, LONG)
    refused(lambda: store.swap(LEDGER, ABSENT, b"mine"))
    watch = store.watch()

    other.inaugurate()

    assert watch.wait(SOON)
    assert store.swap(LEDGER, ABSENT, b"mine") is not None


def test_a_new_data_set_wakes_who_waits(own_redis: RedisServer, open_redis: Open) -> None:
    """So that whoever lives signs on, and brings its claims, as early as it can."""
    store = open_redis(own_redis)
    written(store, LEDGER)
    watch = store.watch()
    own_redis.command("FLUSHALL")

    open_redis(own_redis).read(LEDGER)

    assert watch.wait(SOON)


# -- eviction --------------------------------------------------------------------------------------


def fill(server: RedisServer) -> None:
    """Write until the server throws away what admission keeps."""
    for number in range(2000):
        server.command("SET", f"other:{number}", b"x" * 10_000)
        if not server.command("EXISTS", KEY):
            return
    raise AssertionError("nothing was evicted")


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_server_that_may_evict_anything_is_refused(
    new_redis: NewRedis, open_redis: Open, policy: str
) -> None:
    """Fault B14."""
    server = new_redis(maxmemory="8mb", maxmemory_policy=policy)

    with pytest.raises(Misconfigured) as caught:
        open_redis(server).check()

    assert f"maxmemory-policy {policy}" in caught.value.message
    assert "noeviction" in caught.value.next_step


@pytest.mark.parametrize("policy", ["noeviction", "volatile-lru", "volatile-ttl"])
def test_a_server_that_keeps_what_has_no_end_is_accepted(
    new_redis: NewRedis, open_redis: Open, policy: str
) -> None:
    store = open_redis(new_redis(maxmemory="8mb", maxmemory_policy=policy))

    store.check()

    assert written(store, LEDGER)


def test_an_eviction_loses_all_or_nothing_and_is_noticed(
    own_redis: RedisServer, open_redis: Open
) -> None:
    """Fault B14: somebody sets another policy while everybody is at work."""
    store, other = open_redis(own_redis, LONG), open_redis(own_redis, LONG)
    store.inaugurate()
    versions = written(store, *NAMES)
    own_redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
    own_redis.command("CONFIG", "SET", "maxmemory", "4mb")

    fill(own_redis)

    for client in (store, other):
        with pytest.raises(Misconfigured, match="evicted so far"):
            client.swap(LEDGER, versions[LEDGER], b"late")
    own_redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    own_redis.command("CONFIG", "SET", "maxmemory", "0")
    assert store.swap(LEDGER, versions[LEDGER], b"late") is None
    refused(lambda: other.swap(LEDGER, ABSENT, b"mine"))
