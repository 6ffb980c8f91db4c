"""A Redis that forgets is not believed: restarted, flushed, set back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

import pytest
from redis_stage import (
    KEY,
    LONG,
    LOSSES,
    ME,
    OTHER,
    Loss,
    Open,
    until,
    written,
)

from blastyard.admission.port import ABSENT, LEASE, LEDGER, SUBMITTER
from blastyard.testing.redis_pytest import NewRedis
from blastyard.testing.redis_server import RedisServer

NAMES = (LEASE, LEDGER, ME)


# -- what was known fits no more -------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_no_version_from_before_a_loss_fits_afterwards(
    own_redis: RedisServer, open_redis: Open, loss: Loss
) -> None:
    """Faults A17 and B14."""
    client, other = open_redis(own_redis), open_redis(own_redis)
    before = written(client, *NAMES)
    assert len(before) == 3

    loss(own_redis)
    for name, version in before.items():
        assert client.swap(name, version, b"late") is None
    after = written(other, *NAMES)

    for name, version in before.items():
        assert client.swap(name, version, b"late") is None
        assert version not in after.values()
    assert client.read(LEDGER).body == LEDGER.encode()


@pytest.mark.parametrize("loss", LOSSES)
def test_after_a_loss_there_is_neither_lease_nor_ledger(
    own_redis: RedisServer, open_redis: Open, loss: Loss
) -> None:
    """Fault B14."""
    client = open_redis(own_redis)
    written(client, *NAMES)

    loss(own_redis)

    newcomer = open_redis(own_redis)
    for store in (client, newcomer):
        for name in (LEASE, LEDGER):
            found = store.read(name)
            assert (found.body, found.version, found.stamped_at) == (None, ABSENT, None)


def test_a_server_that_lost_its_last_writes_is_not_believed_about_the_rest(
    new_redis: NewRedis, open_redis: Open
) -> None:
    """Fault B14: the hold that was granted last is missing on its disk."""
    server = new_redis(appendonly="no")
    client = open_redis(server)
    old = written(client, *NAMES)
    server.command("SAVE")
    assert client.swap(LEDGER, old[LEDGER], b"with the hold") is not None

    server.restart()

    assert server.command("HGET", KEY, "=" + LEDGER).endswith(LEDGER.encode()), "it came back"
    newcomer = open_redis(server)
    assert newcomer.read(LEDGER).body is None
    assert newcomer.read(ME).body == ME.encode()
    for name, version in old.items():
        assert newcomer.swap(name, version, b"late") is None


def test_data_set_back_under_a_running_server_is_noticed_by_who_has_seen_more(
    own_redis: RedisServer, open_redis: Open
) -> None:
    """Fault B14: a managed Redis may fail over without telling."""
    client = open_redis(own_redis)
    old = written(client, LEDGER)
    dump = own_redis.command("DUMP", KEY)
    assert client.swap(LEDGER, old[LEDGER], b"with the hold") is not None

    own_redis.command("RESTORE", KEY, 0, dump, "REPLACE")

    assert client.swap(LEDGER, old[LEDGER], b"late") is None
    assert client.read(LEDGER).body is None
    assert open_redis(own_redis).read(LEDGER).body is None


def test_two_clients_that_find_it_empty_begin_one_data_set(
    own_redis: RedisServer, open_redis: Open
) -> None:
    one, other = open_redis(own_redis), open_redis(own_redis)
    first = written(one, LEDGER)[LEDGER]

    assert other.read(LEDGER).version == first
    own_redis.command("FLUSHALL")
    assert other.read(LEDGER).body is None
    again = written(other, LEDGER)[LEDGER]
    assert one.read(LEDGER).version == again != first


# -- who comes back --------------------------------------------------------------------------------


def test_submitters_outlive_a_restart_with_their_stamps(
    own_redis: RedisServer, open_redis: Open
) -> None:
    """Fault B14."""
    written(open_redis(own_redis), ME, OTHER)
    before = open_redis(own_redis).scan(SUBMITTER)

    own_redis.restart()

    after = open_redis(own_redis).scan(SUBMITTER)
    assert list(after) == [ME, OTHER]
    for name, found in after.items():
        assert (found.body, found.stamped_at) == (before[name].body, before[name].stamped_at)
        assert found.version != before[name].version


def test_who_remembers_a_submitter_brings_it_back(own_redis: RedisServer, open_redis: Open) -> None:
    """Fault B22: it may be cut off, and still have something running."""
    silent, witness = open_redis(own_redis, LONG), open_redis(own_redis, LONG)
    written(silent, ME)
    written(witness, OTHER)
    assert set(witness.scan(SUBMITTER)) == {ME, OTHER}

    own_redis.restart(empty=True)
    newcomer = open_redis(own_redis, LONG)
    assert newcomer.scan(SUBMITTER) == {}
    witness.read(LEDGER)

    found = newcomer.scan(SUBMITTER)
    assert {name: each.body for name, each in found.items()} == {
        ME: ME.encode(),
        OTHER: OTHER.encode(),
    }


def test_who_signed_off_is_not_brought_back(own_redis: RedisServer, open_redis: Open) -> None:
    leaver, witness = open_redis(own_redis, LONG), open_redis(own_redis, LONG)
    version = written(leaver, ME)[ME]
    assert set(witness.scan(SUBMITTER)) == {ME}
    leaver.swap(ME, version, None)
    assert witness.scan(SUBMITTER) == {}

    own_redis.restart(empty=True)

    assert witness.scan(SUBMITTER) == {}


def test_what_a_client_remembers_from_long_ago_is_not_brought_back(
    own_redis: RedisServer, open_redis: Open
) -> None:
    """The data set is older than its grace, so everybody else has gone on long since."""
    witness = open_redis(own_redis)
    written(witness, ME)
    witness.scan(SUBMITTER)

    own_redis.restart(empty=True)

    assert open_redis(own_redis).scan(SUBMITTER) == {}
    assert witness.scan(SUBMITTER) == {}


# -- when it really dies ---------------------------------------------------------------------------

COUNT = """
import sys
from datetime import timedelta
from blastyard.admission.redis.address import Address
from blastyard.admission.redis.documents import Pace, RedisDocumentStore
from blastyard.domain.errors import Unavailable
pace = Pace(timeout=timedelta(seconds=2), grace=timedelta(0))
store = RedisDocumentStore(Address.parse(sys.argv[1]), "lab", pace)
while True:
    try:
        found = store.read("ledger")
        done = store.swap("ledger", found.version, sys.argv[2].encode())
    except Unavailable:
        continue
    if done is not None:
        print(done.version, flush=True)
"""


@contextmanager
def counting(server: RedisServer, number: int) -> Iterator[list[subprocess.Popen[str]]]:
    """So many processes, each of which prints the versions of what it wrote until it is killed."""
    command = [sys.executable, "-c", COUNT, server.url]
    with ExitStack() as stack:
        children = []
        for which in range(number):
            child = subprocess.Popen([*command, str(which)], stdout=subprocess.PIPE, text=True)
            children.append(stack.enter_context(child))
            stack.callback(child.kill)
        yield children


def test_no_version_is_given_twice_while_the_server_is_killed_again_and_again(
    own_redis: RedisServer,
) -> None:
    """Fault A17."""
    versions: list[str] = []
    with counting(own_redis, 3) as children:
        for number in range(6):
            for child in children:
                assert child.stdout is not None
                versions += [child.stdout.readline() for _ in range(50)]
            own_redis.restart(empty=number % 2 == 0)
        for child in children:
            child.kill()
            rest, _ = child.communicate()
            versions += rest.splitlines(keepends=True)[:-1]

    assert len(set(versions)) == len(versions) >= 900
    assert len({version.partition("-")[0] for version in versions}) >= 6


def test_a_document_is_stamped_and_read_by_the_clock_of_the_server(
    own_redis: RedisServer, open_redis: Open
) -> None:
    store = open_redis(own_redis)
    seconds, micros = (int(word) for word in own_redis.command("TIME"))
    done = store.swap(LEDGER, ABSENT, b"x")

    assert done is not None
    assert done.stamped_at is not None
    told = timedelta(seconds=seconds, microseconds=micros)
    since_1970 = timedelta(seconds=done.stamped_at.timestamp())
    assert timedelta(0) <= since_1970 - told < timedelta(seconds=5)
    assert until(lambda: store.read(LEDGER).now > done.now)
