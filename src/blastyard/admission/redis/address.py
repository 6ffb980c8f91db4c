"""Where a Redis server is, as somebody configured it. The secrets in it are never shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection

from blastyard.domain.errors import Misconfigured

VARIABLE: Final = "BLASTYARD_REDIS_URL"
EXAMPLE: Final = "redis://:PASSWORD@redis.example.org:6379/0"
PORT: Final = 6379

_KINDS: Final[Mapping[str, Callable[..., Any]]] = {
    "redis": Connection,
    "rediss": SSLConnection,
    "unix": UnixDomainSocketConnection,
}
_TLS_OPTIONS: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs")
_HIDDEN: Final = "***"


@dataclass(frozen=True, slots=True)
class Address:
    """One database of one server. Printing it is safe."""

    place: str
    """For a person: ``redis.example.org:6379, database 0``."""
    kind: Callable[..., Any] = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    """What the connection is made with; holds the password."""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, url: str) -> Address:
        """From ``redis://``, ``rediss://`` (TLS) or ``unix://``, with user and password in it.

        What else redis-py takes from a URL is refused: how long to wait, and how often to ask, is
        not the user's to say here. Raises ``Misconfigured('settings_invalid')``, which never
        quotes the URL.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            # its own words quote what it stumbled over, which may be half a password
            raise _invalid("is not a URL") from None
        if parts.scheme not in _KINDS:
            raise _invalid("does not begin with redis://, rediss:// or unix://")
        if parts.fragment:
            raise _invalid("has a # in it")
        where = _socket(parts) if parts.scheme == "unix" else _host(parts, port)
        options = {**where, **_words(parts), **_account(parts)}
        secrets = {parts.password or "", options.get("password", "")} - {""}
        name = options.get("path") or f"{_bracketed(options['host'])}:{options['port']}"
        place = f"{name}, database {options['db']}"
        return cls(place, _KINDS[parts.scheme], options, tuple(secrets))

    def __str__(self) -> str:
        return f"The Redis at {self.place}"

    def redacted(self, text: str) -> str:
        """``text`` without the secrets of this address."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text


def _invalid(problem: str) -> Misconfigured:
    return Misconfigured(
        "settings_invalid",
        f"The Redis URL {problem}.",
        f"Write it like {VARIABLE}={EXAMPLE}; in a user name or password, @ is %40, / is %2F, "
        ": is %3A, # is %23, ? is %3F and % is %25.",
    )


def _host(parts: SplitResult, port: int | None) -> dict[str, Any]:
    host = unquote(parts.hostname or "")
    try:
        named = bool(host) and bool(host.encode("idna"))
    except UnicodeError:
        named = False
    if not named:
        raise _invalid("names no host")
    database = parts.path.strip("/")
    if database and not database.isdecimal():
        raise _invalid("names a database that is not a number")
    return {"host": host, "port": PORT if port is None else port, "db": int(database or 0)}


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _socket(parts: SplitResult) -> dict[str, Any]:
    path = unquote(parts.path)
    if not path or parts.hostname:
        raise _invalid("names no socket: it has three slashes, as in unix:///run/redis/redis.sock")
    return {"path": path, "db": 0}


def _words(parts: SplitResult) -> dict[str, Any]:
    """What stands behind the question mark."""
    found: dict[str, Any] = {}
    for name, values in parse_qs(parts.query, keep_blank_values=True).items():
        if name == "db" and values[-1].isdecimal():
            found["db"] = int(values[-1])
        elif name in _TLS_OPTIONS and parts.scheme == "rediss":
            found[name] = values[-1]
        else:
            allowed = ", ".join(("db", *_TLS_OPTIONS))
            raise _invalid(f"has something behind its question mark that is none of: {allowed}")
    return found


def _account(parts: SplitResult) -> dict[str, str]:
    named = {"username": parts.username, "password": parts.password}
    return {name: unquote(text) for name, text in named.items() if text}
