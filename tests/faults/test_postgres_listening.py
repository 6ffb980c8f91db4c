"""Waking up by LISTEN and NOTIFY: lost connections, restarts, forks; late at worst, never deaf."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from postgres_stage import SOON, documents, until

from blastyard.admission.port import LEASE, LEDGER, SUBMITTER, DocumentStore, Watch
from blastyard.admission.postgres.documents import PostgresDocumentStore
from blastyard.admission.postgres.pool import Row
from blastyard.testing.postgres import PostgresServer

SESSION = "SELECT pg_backend_pid()"

Pair = tuple[PostgresDocumentStore, PostgresDocumentStore]


@pytest.fixture
def url(own_postgres: PostgresServer) -> str:
    """An empty database."""
    return own_postgres.create_database()


@pytest.fixture
def pair(url: str) -> Iterator[Pair]:
    """Two processes, as it were; the first one watches in the tests."""
    with closing(documents(url)) as one, closing(documents(url)) as other:
        other.swap(LEDGER, 0, b"0")
        yield one, other


@pytest.fixture
def sessions(own_postgres: PostgresServer, url: str) -> Callable[..., set[int]]:
    """The server's processes for our connections, or for those that listen."""

    def found(listening: bool = False) -> set[int]:
        name = url.rpartition("/")[2]
        rows = own_postgres.execute(
            "SELECT pid FROM pg_stat_activity WHERE usename = 'blastyard'"
            f" AND datname = '{name}' AND query LIKE '{'LISTEN' if listening else ''}%'"
        )
        return {row[0] for row in rows}

    return found


def change(store: DocumentStore) -> None:
    """Write the ledger."""
    assert store.swap(LEDGER, store.read(LEDGER).version, b"changed") is not None


def is_quiet(watch: Watch) -> bool:
    """Whether nothing is heard for longer than a notice takes."""
    return not watch.wait(0.3)


def test_all_watches_of_a_store_share_one_connection(
    pair: Pair, sessions: Callable[..., set[int]]
) -> None:
    one, _ = pair
    watches = [one.watch() for _ in range(5)]

    assert len(sessions(listening=True)) == 1
    for watch in watches:
        watch.close()


def test_a_sign_of_life_wakes_nobody(pair: Pair) -> None:
    watch = pair[0].watch()
    for store in pair:
        name = f"{SUBMITTER}{id(store)}"
        first = store.swap(name, 0, b"alive")
        assert first is not None
        second = store.swap(name, first.version, b"alive")
        assert second is not None
        store.swap(name, second.version, None)

    assert is_quiet(watch)


def test_a_swap_that_conflicts_wakes_nobody(pair: Pair) -> None:
    one, other = pair
    watch = one.watch()

    assert other.swap(LEDGER, 0, b"x") is None
    assert other.swap(LEASE, 7, b"x") is None

    assert is_quiet(watch)


def test_a_lost_connection_is_made_anew_which_wakes_and_then_changes_are_heard(
    own_postgres: PostgresServer, pair: Pair, sessions: Callable[..., set[int]]
) -> None:
    one, other = pair
    watch = one.watch()
    for _ in range(3):
        (listening,) = sessions(listening=True)
        own_postgres.execute(f"SELECT pg_terminate_backend({listening}, 5000)")

        assert watch.wait(SOON)  # what happened meanwhile was not heard

        change(other)
        assert watch.wait(SOON)


def test_a_restarted_server_wakes_and_then_changes_are_heard(
    own_postgres: PostgresServer, pair: Pair
) -> None:
    one, other = pair
    watch = one.watch()
    for end in (own_postgres.stop, own_postgres.kill):
        end()
        own_postgres.start()

        assert watch.wait(SOON)

        change(other)
        assert watch.wait(SOON)


def test_a_watch_made_while_the_server_is_down_hears_once_it_is_up(
    own_postgres: PostgresServer, pair: Pair
) -> None:
    one, other = pair
    own_postgres.stop()
    watch = one.watch()
    assert not watch.wait(0)
    watch.wake()
    assert watch.wait(0)

    own_postgres.start()

    assert watch.wait(SOON)
    change(other)
    assert watch.wait(SOON)


def test_a_change_of_this_process_wakes_it_without_the_server(pair: Pair) -> None:
    one, _ = pair
    watch = one.watch()
    change(one)

    assert watch.wait(0)
    assert is_quiet(watch)


def test_closing_ends_every_wait_and_the_thread(pair: Pair) -> None:
    one, _ = pair
    watch = one.watch()
    ended = threading.Event()

    def wait() -> None:
        watch.wait(10 * SOON)
        ended.set()

    waiting = threading.Thread(target=wait)
    waiting.start()

    one.close()

    assert ended.wait(SOON)
    waiting.join()
    assert not watch.wait(SOON)
    assert "blastyard-listen" not in [thread.name for thread in threading.enumerate()]


def test_a_watch_that_nobody_holds_is_forgotten(pair: Pair) -> None:
    one, _ = pair
    watches = [one.watch() for _ in range(10)]
    assert len(one._listener._watches) == 10

    watches.clear()

    until(lambda: not one._listener._watches)


def test_a_forked_child_shares_neither_connection_nor_wake_up_with_its_parent(
    pair: Pair, sessions: Callable[..., set[int]]
) -> None:
    one, other = pair
    watch = one.watch()
    version = one.read(LEDGER).version
    mine = one._pool.ask(SESSION)
    before = sessions()

    child = os.fork()
    if child == 0:  # it must not return into pytest
        os._exit(_swaps_and_hears(one, version, watch, mine))
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert watch.wait(SOON)
    assert one.read(LEDGER).body == b"child"
    change(other)
    assert watch.wait(SOON)
    assert one.swap(LEDGER, one.read(LEDGER).version, b"parent") is not None
    until(lambda: sessions() == before)


def _swaps_and_hears(
    store: PostgresDocumentStore, version: int | str, watch: Watch, parents: list[Row]
) -> int:
    try:
        if store._pool.ask(SESSION) == parents:
            return 6
        if store.swap(LEDGER, version, b"child") is None:
            return 1
        if not watch.wait(0):  # what happened since the fork was not heard
            return 2
        if watch.wait(0):
            return 3
        store.notify()
        return 0 if watch.wait(SOON) else 4
    except BaseException:
        return 5
