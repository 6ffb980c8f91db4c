"""Where a PostgreSQL server is, read from a URL: shown without secrets, refused with an example."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from blastyard.domain.errors import Misconfigured, Unavailable
from blastyard.postgres.address import Address
from blastyard.postgres.failure import unavailable

HERE = Address.parse("postgresql://ada:s%40same@db.example.org/searches")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://ada:pw@db.example.org:5433/searches",
         "database searches at db.example.org:5433"),
        ("postgres://db.example.org/searches", "database searches at db.example.org:5432"),
        ("postgresql://ada:s?s#:me@db/searches", "database searches at db:5432"),
        ("postgresql+psycopg://ada@[::1]/searches", "database searches at ::1:5432"),
        ("postgresql:///searches", "database searches on this machine"),
        ("postgresql:///searches?host=/run/postgresql", "database searches at /run/postgresql"),
        ("postgresql://one:1,two/searches", "database searches at one:1 or two:5432"),
        ("postgresql://one,two:6432/searches", "database searches at one:5432 or two:6432"),
        ("postgresql://?service=lab", "service lab on this machine"),
    ],
)  # fmt: skip
def test_a_url_is_told_as_a_place(url: str, place: str) -> None:
    assert Address.parse(url).place == place


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sqlite:///x.db",
        "mysql://ada:sesame@db/searches",
        "postgresql://ada:sesame@db.example.org",
        "postgresql://ada:sesame@db.example.org/",
        "postgresql://ada:ses/ame@db.example.org/searches",
        "postgresql://ada:123/456@db.example.org/searches",
        "postgresql://ada:ses@ame@db.example.org/searches",
        "postgresql://ada:ses%zzame@db/searches",
        "postgresql://db/searches?passwrd=sesame",
        "postgresql://db:port/searches?password=sesame",
        "postgresql+asyncpg://ada:sesame@db/searches",
        "host=db dbname=searches password=sesame",
    ],
)
def test_a_url_that_is_none_is_refused_with_an_example_and_not_quoted(url: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        Address.parse(url)

    error = refused.value
    assert error.code == "settings_invalid"
    assert "BLASTYARD_STORE_URL=postgresql://" in error.next_step
    shown = f"{error!r}{error.message}{error.next_step}{error.__cause__}"
    for piece in ("ses", "ame@", "123", "456"):
        assert piece not in shown


def test_printing_an_address_shows_no_secret() -> None:
    for text in (str(HERE), repr(HERE), f"{HERE}"):
        assert "s@same" not in text
        assert "s%40same" not in text
        assert "searches" in text


def test_words_of_a_library_are_told_without_the_secrets() -> None:
    error = psycopg.OperationalError("cannot use s@same, that is s%40same, here")

    assert unavailable(error, HERE).message.count("***") == 2


def test_what_the_url_says_wins_over_what_blastyard_would_choose() -> None:
    plain = conninfo_to_dict(HERE.conninfo)
    assert (plain["connect_timeout"], plain["application_name"]) == ("5", "blastyard")
    assert "target_session_attrs" not in plain

    chosen = "connect_timeout=60&application_name=mine&target_session_attrs=any"
    told = conninfo_to_dict(Address.parse(f"postgresql://one,two/searches?{chosen}").conninfo)
    assert (told["connect_timeout"], told["application_name"]) == ("60", "mine")
    assert told["target_session_attrs"] == "any"


def test_of_several_hosts_the_one_that_may_be_written_is_wanted() -> None:
    told = conninfo_to_dict(Address.parse("postgresql://one,two/searches").conninfo)

    assert told["target_session_attrs"] == "read-write"


@pytest.mark.parametrize(
    ("words", "kind", "reason"),
    [
        ("FATAL:  password authentication failed for user", Misconfigured, "let this account"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1"', Misconfigured, "let this account"),
        ('FATAL:  role "ada" does not exist', Misconfigured, "let this account"),
        ('FATAL:  database "searches" does not exist', Misconfigured, "does not exist"),
        ("FATAL:  sorry, too many clients already", Unavailable, "no connection left"),
        ("FATAL:  remaining connection slots are reserved", Unavailable, "no connection left"),
        ("FATAL:  the database system is starting up", Unavailable, "is starting"),
        ("FATAL:  the database system is in recovery mode", Unavailable, "is starting"),
        ("connection failed: Connection refused", Unavailable, "cannot be reached"),
        ("connection timeout expired", Unavailable, "cannot be reached"),
        ("could not translate host name", Unavailable, "cannot be reached"),
        ("session is read-only", Unavailable, "can only be read"),
        ("server closed the connection unexpectedly", Unavailable, "ended the connection"),
        ("SSL error: certificate verify failed", Misconfigured, "TLS"),
        ("FATAL:  Passwort-Authentifizierung fehlgeschlagen", Unavailable, "did not answer"),
        ("", Unavailable, "did not answer"),
    ],
)  # fmt: skip
def test_words_of_a_refused_connection_are_understood(
    words: str, kind: type[Exception], reason: str
) -> None:
    error = unavailable(psycopg.OperationalError(words), HERE)

    assert isinstance(error, kind)
    assert reason in error.message
    assert str(HERE) in error.message
    assert error.next_step
