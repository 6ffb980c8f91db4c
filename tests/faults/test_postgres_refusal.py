"""A PostgreSQL server that cannot be used is said to be so, with the reason, and no secrets."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import psycopg
import pytest
from postgres_stage import documents, impatient

from blastyard.admission.port import LEDGER
from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable
from blastyard.store.port import Filter
from blastyard.store.sql import open_postgres_store
from blastyard.testing import sample
from blastyard.testing.postgres import OWNER, PostgresServer

Refused = type[BlastyardError]


def read_documents(url: str) -> None:
    """Open a document store and read one."""
    with closing(documents(url)) as store:
        store.read(LEDGER)


def open_searches(url: str) -> None:
    """Open a search store."""
    open_postgres_store(url).close()


both = pytest.mark.parametrize("use", [read_documents, open_searches])


def refusal(call: Callable[[], object], kind: Refused, words: str) -> BlastyardError:
    """The error a call raises; it says what to do."""
    with pytest.raises(kind, match=words) as refused:
        call()
    assert refused.value.next_step
    return refused.value


@both
def test_a_wrong_password_is_refused_and_never_shown(
    postgres_server: PostgresServer, use: Callable[[str], None]
) -> None:
    for raw, quoted in (("sesame", "sesame"), ("s@same/#1", "s%40same%2F%231")):
        url = postgres_server.url("postgres", password=quoted)

        error = refusal(lambda url=url: use(url), Misconfigured, "does not let this account in")  # type: ignore[misc]

        shown = "".join(traceback.format_exception(error)) + repr(error) + error.next_step
        assert raw not in shown
        assert quoted not in shown
        assert "pg_hba.conf" in error.next_step


@both
def test_an_unknown_account_and_an_unknown_database_are_named(
    postgres_server: PostgresServer, use: Callable[[str], None]
) -> None:
    unknown = postgres_server.url("postgres", user="nobody_here")
    error = refusal(lambda: use(unknown), Misconfigured, "does not let this account in")
    assert "nobody_here" in error.message

    error = refusal(
        lambda: use(postgres_server.url("nowhere")), Misconfigured, "nowhere at .* does not exist"
    )
    assert "createdb" in error.next_step


@both
def test_a_server_that_is_not_there_is_unavailable(use: Callable[[str], None]) -> None:
    for place in ("127.0.0.1:1", "no-such-host.invalid:5432", "/nowhere"):
        host, _, port = place.partition(":")
        url = f"postgresql://ada:sesame@/blastyard?host={host}&port={port or 5432}"
        error = refusal(lambda url=url: use(url), Unavailable, "cannot be reached")  # type: ignore[misc]
        assert host in error.message
        assert "sesame" not in "".join(traceback.format_exception(error))


@both
def test_a_server_without_tls_is_refused_where_tls_is_asked_for(
    postgres_url: str, use: Callable[[str], None]
) -> None:
    error = refusal(lambda: use(postgres_url + "?sslmode=require"), Misconfigured, "TLS")
    assert "sslmode" in error.next_step


@both
def test_a_database_that_cannot_hold_every_text_is_refused(
    postgres_server: PostgresServer, use: Callable[[str], None]
) -> None:
    options = "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    if postgres_server.version >= 15:
        options += " LOCALE_PROVIDER libc"
    url = postgres_server.create_database(options=options)

    error = refusal(lambda: use(url), Misconfigured, "LATIN1")

    assert "UTF8" in error.next_step
    postgres_server.drop_database(url)


@both
def test_an_account_that_may_make_no_tables_is_told_which_right_it_lacks(
    postgres_server: PostgresServer, use: Callable[[str], None]
) -> None:
    name = postgres_server.create_database().rpartition("/")[2]
    postgres_server.execute(f"ALTER DATABASE {name} OWNER TO postgres")
    postgres_server.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC", name)

    error = refusal(
        lambda: use(postgres_server.url(name)), Misconfigured, "permission denied for schema public"
    )

    assert "GRANT ALL ON SCHEMA public" in error.next_step
    postgres_server.execute(f"GRANT ALL ON SCHEMA public TO {OWNER}", name)
    use(postgres_server.url(name))
    postgres_server.drop_database(postgres_server.url(name))


@pytest.fixture
def crowd(postgres_url: str, postgres_server: PostgresServer) -> Iterator[ExitStack]:
    """Somebody has all connections to the database, until the stack is closed."""
    open_searches(postgres_url)
    name = postgres_url.rpartition("/")[2]
    postgres_server.execute(f"ALTER DATABASE {name} CONNECTION LIMIT 1")
    with ExitStack() as stack:
        stack.enter_context(closing(psycopg.connect(postgres_url)))
        yield stack


@both
def test_a_server_without_a_free_connection_is_unavailable_until_there_is_one(
    postgres_url: str, crowd: ExitStack, use: Callable[[str], None]
) -> None:
    error = refusal(lambda: use(postgres_url), Unavailable, "no connection left")
    assert "max_connections" in error.next_step

    crowd.close()
    use(postgres_url)


def test_all_connections_of_this_process_in_use_is_unavailable(postgres_url: str) -> None:
    searches, papers = impatient(postgres_url)
    with closing(searches), closing(papers):
        papers.read(LEDGER)
        with searches._engine.reading():
            assert "in use" in refusal(searches.counts, Unavailable, "All connections").message
        with papers._pool.session():
            refusal(lambda: papers.read(LEDGER), Unavailable, "All connections")
        assert searches.counts()
        assert papers.read(LEDGER).body is None


def test_a_lock_held_too_long_is_unavailable_and_reads_go_on(postgres_url: str) -> None:
    searches, papers = impatient(postgres_url)
    with closing(searches), closing(papers):
        done = papers.swap(LEDGER, 0, b"x")
        assert done is not None
        with psycopg.connect(postgres_url) as other:
            other.execute("LOCK TABLE documents, databases IN SHARE MODE")
            for call in (
                lambda: papers.swap(LEDGER, done.version, b"y"),
                lambda: searches.add_database(sample.database()),
            ):
                refusal(call, Unavailable, "waiting for a lock|took too long")
            assert papers.read(LEDGER).body == b"x"
            assert searches.list(Filter()) == []
            other.rollback()

        assert papers.swap(LEDGER, done.version, b"y") is not None
        searches.add_database(sample.database())


def test_a_statement_that_takes_too_long_is_ended(postgres_url: str) -> None:
    searches, papers = impatient(postgres_url)
    with closing(searches), closing(papers):
        papers.read(LEDGER)

        refusal(lambda: papers._pool.ask("SELECT pg_sleep(60)"), Unavailable, "took too long")

        assert papers.read(LEDGER).body is None


def test_a_server_that_was_set_read_only_is_unavailable_for_writes_until_it_is_not(
    own_postgres: PostgresServer,
) -> None:
    url = own_postgres.create_database()
    name = url.rpartition("/")[2]
    with closing(open_postgres_store(url)) as searches, closing(documents(url)) as papers:
        searches.add_database(sample.database())
        own_postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        own_postgres.restart()
        for call in (
            lambda: papers.swap(LEDGER, 0, b"x"),
            lambda: searches.add(sample.search(), sample.QUEUED),
        ):
            refusal(call, Unavailable, "can only be read")
        assert papers.read(LEDGER).body is None
        assert len(searches.list_databases()) == 1
        papers.notify()

        own_postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
        refused = 0
        for call in (
            lambda: papers.swap(LEDGER, 0, b"x"),
            lambda: searches.add(sample.search(), sample.QUEUED),
        ):
            try:
                call()
            except Unavailable:  # by the connection that was open before: it is not used again
                refused += 1
                call()
        assert refused <= 2


def test_tables_that_vanished_are_reported_and_not_read_as_empty(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    tables = "documents, search_tags, search_events, searches"
    with (
        closing(open_postgres_store(postgres_url)) as searches,
        closing(documents(postgres_url)) as papers,
    ):
        papers.read(LEDGER)
        postgres_server.execute(f"DROP TABLE {tables}", postgres_url.rpartition("/")[2])

        refusal(lambda: papers.read(LEDGER), Unavailable, "where they were")
        refusal(lambda: searches.list(Filter()), Unavailable, "where they were")


def test_a_closed_store_says_that_it_was_closed(postgres_url: str) -> None:
    searches, papers = open_postgres_store(postgres_url), documents(postgres_url)
    papers.read(LEDGER)
    for store in (searches, papers):
        store.close()
        store.close()

    for call in (searches.counts, lambda: papers.read(LEDGER)):
        with pytest.raises(Unavailable, match="was closed"):
            call()
