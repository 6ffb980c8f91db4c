"""The PostgreSQL server is killed, stopped, frozen or replaced under its clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from threading import Event as Flag

import pytest
from postgres_stage import documents, impatient, until

from blastyard.admission.port import LEDGER, DocumentStore
from blastyard.domain.errors import Unavailable
from blastyard.domain.search import Event
from blastyard.store.port import Filter, SearchStore, Stale
from blastyard.store.sql import open_postgres_store
from blastyard.testing import sample
from blastyard.testing.postgres import PostgresServer

KILLS = 4
WRITERS = 3


@dataclass(slots=True)
class Account:
    """What writers were told, and how often they could not tell."""

    over: Flag = field(default_factory=Flag)
    answered: Counter[str] = field(default_factory=Counter)
    doubtful: Counter[str] = field(default_factory=Counter)

    def total(self) -> int:
        return sum(self.answered.values())


def adding(store: SearchStore, writer: str, account: Account) -> None:
    """Add one search after the other, each until it is accepted."""
    number = 0
    while not account.over.is_set():
        new = sample.search(key=f"{writer}/{number}", database="/data/nt")
        try:
            store.add(new, sample.QUEUED)
        except Unavailable:
            account.doubtful[writer] += 1
            continue
        number += 1
        account.answered[writer] = number


def counting_attempts(store: SearchStore, search_id: str, writer: str, account: Account) -> None:
    """Raise the attempt of one search, together with others."""
    while not account.over.is_set():
        try:
            found = store.get(search_id)
        except Unavailable:
            continue
        try:
            store.update(replace(found, attempt=found.attempt + 1), Event(found.state))
        except Stale:
            continue
        except Unavailable:
            account.doubtful[writer] += 1
            continue
        account.answered[writer] += 1


def counting_swaps(store: DocumentStore, writer: str, account: Account) -> None:
    """Add one to the number in the ledger, together with others."""
    while not account.over.is_set():
        try:
            found = store.read(LEDGER)
        except Unavailable:
            continue
        try:
            done = store.swap(LEDGER, found.version, b"%d" % (int(found.body or 0) + 1))
        except Unavailable:
            account.doubtful[writer] += 1
            continue
        if done is not None:
            account.answered[writer] += 1


@pytest.fixture
def kill_under(own_postgres: PostgresServer) -> Callable[..., Account]:
    """Kills the server under threads that do ``work(writer, account)``, and starts it again."""

    def run(work: Callable[[str, Account], None]) -> Account:
        account = Account()
        with ThreadPoolExecutor(WRITERS) as pool:
            jobs = [pool.submit(work, f"w{number}", account) for number in range(WRITERS)]
            for _ in range(KILLS):
                before = account.total()
                until(lambda before=before: account.total() > before + 20)  # type: ignore[misc]
                own_postgres.kill()
                own_postgres.start()
            settled = account.total()
            until(lambda: account.total() > settled)
            account.over.set()
            for job in jobs:
                job.result()
        assert account.doubtful.total()
        return account

    return run


def test_no_accepted_search_is_lost_and_none_is_twice_when_the_server_is_killed(
    own_postgres: PostgresServer, kill_under: Callable[..., Account]
) -> None:
    with closing(open_postgres_store(own_postgres.create_database())) as store:
        account = kill_under(lambda writer, account: adding(store, writer, account))

        stored = store.list(Filter(limit=100_000))
        keys = Counter(search.request.key for search in stored)
        assert set(keys.values()) == {1}
        for writer, number in account.answered.items():
            assert {f"{writer}/{each}" for each in range(number)} <= set(keys)
        assert account.total() <= len(stored) <= account.total() + WRITERS
        assert all(len(store.events(search.id)) == 1 for search in stored[:50])


def test_no_step_is_lost_and_none_is_taken_twice_when_the_server_is_killed(
    own_postgres: PostgresServer, kill_under: Callable[..., Account]
) -> None:
    with closing(open_postgres_store(own_postgres.create_database())) as store:
        added = store.add(sample.search(database="/data/nt"), sample.QUEUED)

        account = kill_under(
            lambda writer, account: counting_attempts(store, added.id, writer, account)
        )

        found = store.get(added.id)
        doubtful = account.doubtful.total()
        assert account.total() <= found.attempt <= account.total() + doubtful
        assert len(store.events(added.id)) == 1 + found.attempt


def test_no_swap_is_lost_and_none_is_done_twice_when_the_server_is_killed(
    own_postgres: PostgresServer, kill_under: Callable[..., Account]
) -> None:
    with closing(documents(own_postgres.create_database())) as store:
        account = kill_under(lambda writer, account: counting_swaps(store, writer, account))

        body = store.read(LEDGER).body
        assert body is not None
        assert account.total() <= int(body) <= account.total() + account.doubtful.total()


@pytest.fixture
def stores(own_postgres: PostgresServer) -> Iterator[tuple[SearchStore, DocumentStore]]:
    """Both, with connections that were used."""
    url = own_postgres.create_database()
    with closing(open_postgres_store(url)) as searches, closing(documents(url)) as papers:
        searches.add_database(sample.database())
        assert papers.swap(LEDGER, 0, b"first") is not None
        yield searches, papers


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_clients_of_a_server_that_was_restarted_notice_nothing(
    own_postgres: PostgresServer, stores: tuple[SearchStore, DocumentStore], how: str
) -> None:
    searches, papers = stores
    for first in ("read", "write"):
        version = papers.read(LEDGER).version
        if how == "restart":
            own_postgres.restart()
        else:
            own_postgres.kill()
            own_postgres.start()

        if first == "read":
            assert [one.name for one in searches.list_databases()] == [sample.DATABASE]
            assert papers.read(LEDGER).version == version
        searches.add(sample.search(), sample.QUEUED)
        assert papers.swap(LEDGER, version, b"next") is not None


def test_whoever_is_thrown_out_by_the_administrator_comes_in_again(
    own_postgres: PostgresServer, stores: tuple[SearchStore, DocumentStore]
) -> None:
    searches, papers = stores

    own_postgres.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'blastyard'"
    )

    searches.add(sample.search(), sample.QUEUED)
    assert papers.swap(LEDGER, papers.read(LEDGER).version, b"next") is not None


def test_a_server_that_is_down_is_said_to_be_down_until_it_is_up(
    own_postgres: PostgresServer, stores: tuple[SearchStore, DocumentStore]
) -> None:
    searches, papers = stores
    calls: list[Callable[[], object]] = [
        searches.counts,
        lambda: searches.add(sample.search(), sample.QUEUED),
        lambda: papers.read(LEDGER),
        lambda: papers.swap(LEDGER, 0, b"x"),
        lambda: papers.scan(""),
    ]
    own_postgres.stop()
    for call in calls:
        with pytest.raises(Unavailable, match="cannot be reached") as refused:
            call()
        assert refused.value.code == "store_unavailable"
        assert f"127.0.0.1:{own_postgres.port}" in refused.value.message
        assert "BLASTYARD_STORE_URL" in refused.value.next_step
    papers.notify()  # wakes whom it can

    own_postgres.start()
    for call in calls:
        call()


def test_a_server_that_stands_still_is_given_up_and_used_again_when_it_goes_on(
    own_postgres: PostgresServer,
) -> None:
    url = own_postgres.create_database() + "?connect_timeout=2"
    searches, papers = impatient(url)
    with closing(searches), closing(papers):
        assert papers.swap(LEDGER, 0, b"x") is not None
        searches.counts()
        own_postgres.freeze()
        try:
            for call in (lambda: papers.read(LEDGER), searches.counts):
                for _ in range(2):  # over a connection it had, and over a new one
                    with pytest.raises(Unavailable):
                        call()
        finally:
            own_postgres.thaw()

        assert papers.read(LEDGER).body == b"x"
        assert searches.counts()


def test_a_standby_that_is_promoted_is_found_by_the_names_of_both(
    own_postgres: PostgresServer,
) -> None:
    url = own_postgres.create_database()
    with PostgresServer.make(own_postgres) as standby:
        hosts = f"127.0.0.1:{own_postgres.port},127.0.0.1:{standby.port}"
        both = url.replace(f"127.0.0.1:{own_postgres.port}", hosts)
        with closing(open_postgres_store(both)) as searches, closing(documents(both)) as papers:
            added = searches.add(sample.search(database="/data/nt"), sample.QUEUED)
            done = papers.swap(LEDGER, 0, b"x")
            assert done is not None
            written = own_postgres.execute("SELECT pg_current_wal_lsn()::text")[0][0]
            behind = f"SELECT pg_last_wal_replay_lsn() < '{written}'"
            until(lambda: standby.execute(behind) == [(False,)])

            own_postgres.kill()
            for call in (searches.counts, lambda: papers.read(LEDGER)):
                with pytest.raises(Unavailable):
                    call()
            standby.promote()

            assert searches.get(added.id) == added
            assert papers.swap(LEDGER, done.version, b"y") is not None
            searches.add(sample.search(database="/data/nt"), sample.QUEUED)


def test_a_standby_lets_read_and_says_that_it_cannot_be_written(
    own_postgres: PostgresServer,
) -> None:
    url = own_postgres.create_database()
    with closing(open_postgres_store(url)) as searches:
        searches.add_database(sample.database())
    with PostgresServer.make(own_postgres) as standby:
        copy = standby.url(url.rpartition("/")[2])
        with closing(open_postgres_store(copy)) as searches, closing(documents(copy)) as papers:
            assert papers.read(LEDGER).body is None
            assert len(searches.list_databases()) == 1
            for call in (
                lambda: papers.swap(LEDGER, 0, b"x"),
                lambda: searches.add(sample.search(), sample.QUEUED),
            ):
                with pytest.raises(Unavailable, match="can only be read") as refused:
                    call()
                assert "primary" in refused.value.next_step
