"""Where a server is, as somebody configured it. The secrets in it are never shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
from psycopg import conninfo

from blastyard.domain.errors import Misconfigured

EXAMPLE: Final = "postgresql://blastyard:PASSWORD@db.example.org:5432/blastyard"
VARIABLE: Final = "BLASTYARD_STORE_URL"

_SCHEME: Final = re.compile(r"^(postgresql|postgres)(\+psycopg)?://")
_SECRETS: Final = ("password", "sslpassword", "oauth_client_secret")
_HIDDEN: Final = "***"

_DEFAULTS: Final = {
    "application_name": "blastyard",
    "client_encoding": "UTF8",
    "connect_timeout": "5",
    # a server whose machine or network died is noticed within half a minute
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}


@dataclass(frozen=True, slots=True)
class Address:
    """One database of one server, or of the several hosts it may be on. Printing it is safe."""

    place: str
    """For a person: ``database blastyard at db.example.org:5432``."""
    conninfo: str = field(repr=False)
    """What libpq connects by; holds the password."""
    secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> Address:
        """From a URL as libpq takes it; ``postgresql+psycopg://`` is understood, too.

        What the URL leaves out libpq takes from the usual places: ``PGPASSFILE``, ``PGSSLMODE``.
        Raises ``Misconfigured('settings_invalid')``, which never quotes the URL.
        """
        if not _SCHEME.match(url):
            raise _invalid("does not begin with postgresql://")
        url = _SCHEME.sub("postgresql://", url)
        try:
            words = conninfo.conninfo_to_dict(url)
        except (psycopg.Error, UnicodeError):
            # libpq's own words quote what they stumbled over, which may be half a password
            raise _invalid("is not a URL that PostgreSQL's library understands") from None
        if _is_torn(words):
            raise _invalid("has a password, it seems, that is not written as a URL must have it")
        if not words.get("dbname") and not words.get("service"):
            raise _invalid("names no database")
        if "," in str(words.get("host", "")):  # several: the one that may be written to
            words.setdefault("target_session_attrs", "read-write")
        secrets = [str(words[name]) for name in _SECRETS if words.get(name)]
        secrets += [part for part in (_password(url),) if part]
        return cls(_place(words), conninfo.make_conninfo("", **{**_DEFAULTS, **words}),
                   tuple(secrets))  # fmt: skip

    def __str__(self) -> str:
        return f"The PostgreSQL {self.place}"

    def redacted(self, text: str) -> str:
        """``text`` without the secrets of this address."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text


def _invalid(problem: str) -> Misconfigured:
    return Misconfigured(
        "settings_invalid",
        f"The PostgreSQL URL {problem}.",
        f"Write it like {VARIABLE}={EXAMPLE}; in a user name or password, @ is %40, / is %2F, "
        ": is %3A, # is %23 and % is %25.",
    )


def _is_torn(words: dict[str, Any]) -> bool:
    """Whether a part of a password was read as a host, a port or a database: @ or / is in it."""
    ports = str(words.get("port") or "5432").split(",")
    names = f"{words.get('host', '')}{words.get('dbname', '')}"
    return "@" in names or not all(port.isdecimal() or not port for port in ports)


def _place(words: dict[str, Any]) -> str:
    name = words.get("dbname")
    what = f"database {name}" if name else f"service {words['service']}"
    hosts = str(words.get("host") or words.get("hostaddr") or "")
    if not hosts:
        return f"{what} on this machine"
    ports = str(words.get("port") or "").split(",")
    places = []
    for number, host in enumerate(hosts.split(",")):
        port = ports[number] if number < len(ports) else ports[0]
        is_socket = host.startswith("/")
        places.append(host if is_socket and not port else f"{host}:{port or 5432}")
    return f"{what} at {' or '.join(places)}"


def _password(url: str) -> str:
    """As it stands in the URL, percent signs and all."""
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""
