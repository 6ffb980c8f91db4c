"""Whatever a Redis refuses is said as what it is, with what to do, and without its password."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread

import pytest
from redis_stage import KEY, ME, NAMESPACE, Open, refused, until, written

from blastyard.admission.port import ABSENT, LEASE, LEDGER
from blastyard.admission.redis.address import Address
from blastyard.admission.redis.documents import RedisDocumentStore
from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable
from blastyard.testing.redis_pytest import NewRedis
from blastyard.testing.redis_server import ADDRESS, RedisServer

SECRET = "s3cr3t/p@ss"
IN_URL = "s3cr3t%2Fp%40ss"


def told(attempt: Callable[[], object], kind: type[BlastyardError]) -> BlastyardError:
    """The error of an attempt, which must be of this kind and say what to do."""
    with pytest.raises(kind) as caught:
        attempt()
    error = caught.value
    assert error.next_step
    assert error.code == ("settings_invalid" if kind is Misconfigured else "store_unavailable")
    whole = f"{error.message} {error.next_step} {error!r} {error.__cause__!r}"
    assert SECRET not in whole
    assert IN_URL not in whole
    return error


# -- who we are ------------------------------------------------------------------------------------


@pytest.mark.parametrize("account", ["", ":wrong@", "nobody:wrong@"])
def test_a_wrong_password_or_none_is_a_setting_to_correct(
    new_redis: NewRedis, open_redis: Open, account: str
) -> None:
    """Fault A12."""
    server = new_redis(requirepass="right")

    error = told(
        lambda: open_redis(f"redis://{account}{ADDRESS}:{server.port}").check(), Misconfigured
    )

    assert "does not let this account in" in error.message
    assert "BLASTYARD_REDIS_URL" in error.next_step
    assert "wrong" not in error.message.replace("WRONGPASS", "")


def test_a_password_that_was_changed_meanwhile_is_told_and_not_shown(
    new_redis: NewRedis, open_redis: Open
) -> None:
    """Fault A12."""
    server = new_redis(requirepass=SECRET)
    store = open_redis(f"redis://:{IN_URL}@{ADDRESS}:{server.port}")
    assert written(store, LEDGER)
    server.set("requirepass", "another")
    server.restart()

    for attempt in (lambda: store.read(LEDGER), lambda: store.swap(LEDGER, ABSENT, b"x")):
        told(attempt, Misconfigured)
    for text in (repr(store), str(store), repr(vars(store))):
        assert SECRET not in text
        assert IN_URL not in text


def rights(server: RedisServer, *words: str) -> str:
    """The URL of an account with these rights and no others."""
    server.command("ACL", "SETUSER", "blast", "on", f">{SECRET}", *words)
    return f"redis://blast:{IN_URL}@{ADDRESS}:{server.port}"


def test_the_rights_that_are_named_are_enough(own_redis: RedisServer, open_redis: Open) -> None:
    """Fault A12."""
    stranger = rights(own_redis, f"~{KEY}", f"&{KEY}*")
    error = told(open_redis(stranger).check, Misconfigured)
    assert "refuses this account something it needs" in error.message
    words = error.next_step.partition("NAME ")[2].replace("'", "").split()

    store = open_redis(rights(own_redis, *words))

    assert written(store, LEDGER, ME)
    version = store.read(ME).version
    assert store.swap(ME, version, None) is not None
    watch = store.watch()
    own_redis.command("PUBLISH", f"{KEY}:changes", "")
    assert watch.wait(10.0)
    assert store.trouble is None
    store.notify()
    store.inaugurate()


@pytest.mark.parametrize("words", ["allcommands", "allcommands allkeys", "allcommands allchannels"])
def test_a_right_to_the_names_is_asked_for_at_the_start(
    own_redis: RedisServer, open_redis: Open, words: str
) -> None:
    """Fault A12: without the channel nobody would ever be woken."""
    own_redis.command("ACL", "SETUSER", "blast", "resetchannels")

    told(open_redis(rights(own_redis, *words.split())).check, Misconfigured)


# -- what it is ------------------------------------------------------------------------------------


def test_a_replica_is_refused_also_for_reading(
    own_redis: RedisServer, new_redis: NewRedis, open_redis: Open
) -> None:
    """Fault B6: what it shows may be old."""
    primary = open_redis(own_redis)
    written(primary, LEDGER)
    replica = new_redis(replicaof=f"{ADDRESS} {own_redis.port}")
    until(lambda: replica.command("EXISTS", KEY))

    for attempt in (
        open_redis(replica).check,
        lambda: open_redis(replica).read(LEDGER),
        lambda: open_redis(replica).swap(LEDGER, ABSENT, b"x"),
    ):
        assert "is a replica" in told(attempt, Misconfigured).message
    assert primary.read(LEDGER).body == LEDGER.encode()


def test_a_primary_that_becomes_a_replica_is_a_failover_which_passes(
    own_redis: RedisServer, new_redis: NewRedis, open_redis: Open
) -> None:
    """Fault A13."""
    store = open_redis(own_redis)
    version = written(store, LEDGER)[LEDGER]
    heir = new_redis(replicaof=f"{ADDRESS} {own_redis.port}")
    until(lambda: heir.command("EXISTS", KEY))
    heir.command("REPLICAOF", "NO", "ONE")
    own_redis.command("REPLICAOF", ADDRESS, heir.port)

    error = told(lambda: store.swap(LEDGER, version, b"late"), Unavailable)

    assert "is a replica" in error.message
    assert "failover" in error.next_step
    promoted = open_redis(heir)
    assert promoted.read(LEDGER).body is None, "its last writes may be missing"
    assert promoted.swap(LEDGER, version, b"late") is None
    until(lambda: not own_redis.command("HEXISTS", KEY, "=" + LEDGER))
    told(lambda: store.read(LEDGER), Unavailable)


def test_a_node_of_a_cluster_is_refused_by_name(new_redis: NewRedis, open_redis: Open) -> None:
    """Fault A13."""
    ours, theirs = (new_redis(cluster_enabled="yes") for _ in range(2))
    theirs.command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    told(open_redis(ours).check, Unavailable)  # it does not know who has the slots
    ours.command("CLUSTER", "MEET", ADDRESS, theirs.port)
    for node in (ours, theirs):
        until(partial(is_whole, node))

    error = told(open_redis(ours).check, Misconfigured)

    assert "Redis Cluster" in error.message
    assert written(open_redis(theirs), LEDGER)


def is_whole(node: RedisServer) -> bool:
    return b"cluster_state:ok" in node.command("CLUSTER", "INFO")


def test_what_is_no_redis_is_said_to_be_none(open_redis: Open) -> None:
    """Fault A13."""
    with stranger(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
        assert (
            "does not answer as a Redis does" in told(open_redis(url).check, Misconfigured).message
        )


def test_a_key_of_another_program_is_left_alone(own_redis: RedisServer, open_redis: Open) -> None:
    own_redis.command("SET", KEY, "mine")

    error = told(open_redis(own_redis).check, Misconfigured)

    assert "another program" in error.message
    assert own_redis.command("GET", KEY) == b"mine"


# -- what it cannot do now -------------------------------------------------------------------------


def test_nothing_that_listens_is_not_reached(own_redis: RedisServer, open_redis: Open) -> None:
    """Fault A13."""
    store = open_redis(f"redis://:{IN_URL}@{ADDRESS}:{own_redis.port}")
    own_redis.kill()

    for attempt in (
        store.check,
        lambda: store.read(LEDGER),
        lambda: store.scan(""),
        lambda: store.swap(LEASE, ABSENT, b"x"),
    ):
        error = told(attempt, Unavailable)
        assert "cannot be reached" in error.message
        assert "may have been done" not in error.message
        assert f"{ADDRESS}:{own_redis.port}, database 0" in error.message
    store.notify()
    watch = store.watch()
    assert not watch.wait(0)


def test_a_full_server_refuses_to_write_and_goes_on_reading(
    own_redis: RedisServer, open_redis: Open
) -> None:
    """Fault A13."""
    store = open_redis(own_redis)
    version = written(store, LEDGER)[LEDGER]
    own_redis.command("CONFIG", "SET", "maxmemory", "1")

    for attempt in (
        lambda: store.swap(LEDGER, version, b"more"),
        lambda: store.swap(LEDGER, version, None),
        lambda: store.swap(ME, ABSENT, b"more"),
        store.inaugurate,
    ):
        assert "is full" in told(attempt, Unavailable).message
    assert store.read(LEDGER).body == LEDGER.encode()
    assert store.read(LEDGER).version == version
    newcomer = open_redis(own_redis)
    assert newcomer.read(LEDGER).version == version
    own_redis.command("CONFIG", "SET", "maxmemory", "0")
    assert store.swap(LEDGER, version, b"more") is not None


def test_an_empty_server_that_is_full_of_others_begins_nothing(
    own_redis: RedisServer, open_redis: Open
) -> None:
    """Fault A13."""
    own_redis.command("CONFIG", "SET", "maxmemory", "1")

    assert "is full" in told(open_redis(own_redis).check, Unavailable).message

    assert not own_redis.command("EXISTS", KEY)


def test_a_server_that_cannot_save_refuses_to_write(new_redis: NewRedis, open_redis: Open) -> None:
    """Fault A13."""
    server = new_redis(appendonly="no", save="3600 1000000", dbfilename="in-the-way")
    store = open_redis(server)
    version = written(store, LEDGER)[LEDGER]
    watch = store.watch()
    (server.folder / "in-the-way").mkdir()
    server.command("BGSAVE")
    until(lambda: saved(server) == "err")

    error = told(lambda: store.swap(LEDGER, version, b"more"), Unavailable)

    assert "cannot save its data" in error.message
    assert store.read(LEDGER).version == version
    store.notify()
    assert watch.wait(10.0)
    assert store.trouble is None
    (server.folder / "in-the-way").rmdir()
    server.command("BGSAVE")
    until(lambda: saved(server) == "ok")
    assert store.swap(LEDGER, version, b"more") is not None


def saved(server: RedisServer) -> str:
    """How the last attempt to save ended."""
    told: bytes = server.command("INFO", "persistence")
    return told.partition(b"rdb_last_bgsave_status:")[2].split()[0].decode()


def test_a_server_that_is_still_loading_is_waited_for(
    new_redis: NewRedis, open_redis: Open
) -> None:
    """Fault A13."""
    server = new_redis(appendonly="no", loading_process_events_interval_bytes="1024")
    store = open_redis(server)
    written(store, ME)
    for number in range(100):
        server.command("SET", f"other:{number}", b"x" * 2000)
    server.command("SAVE")
    server.set("key-load-delay", "20000")  # microseconds for each key
    server.restart(wait=False)
    error = until(lambda: loading(store))

    assert "still reading its data" in error.message
    assert "It goes on by itself" in error.next_step
    server.wait()
    assert store.read(ME).body == ME.encode()


def loading(store: RedisDocumentStore) -> Unavailable | None:
    error = refused(lambda: store.read(LEDGER))
    return error if "reading its data" in error.message else None


def test_a_server_without_room_for_another_connection_says_so(
    new_redis: NewRedis, open_redis: Open
) -> None:
    """Fault A13."""
    server = new_redis(maxclients="1")
    first = open_redis(server)
    first.check()

    assert "no connection left" in told(open_redis(server).check, Unavailable).message
    assert written(first, LEDGER)


def test_a_namespace_that_would_break_the_name_is_refused(own_redis: RedisServer) -> None:
    for name in ("", "a{b", "}"):
        with pytest.raises(Misconfigured, match="namespace"):
            RedisDocumentStore(Address.parse(own_redis.url), name)
    assert "{" + NAMESPACE + "}" in KEY


# -- a server of the test --------------------------------------------------------------------------


@contextmanager
def stranger(answer: bytes) -> Iterator[str]:
    """The URL of something that answers everybody the same."""
    listener = socket.create_server((ADDRESS, 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client:
                    client.recv(1 << 16)
                    client.sendall(answer)

    thread = Thread(target=serve)
    thread.start()
    yield f"redis://:{IN_URL}@{ADDRESS}:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()
