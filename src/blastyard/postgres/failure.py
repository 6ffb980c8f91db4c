"""What an error of a PostgreSQL server means, and what to do.

The server names the errors of a statement by number (SQLSTATE), those of a connection attempt only
in words, which libpq passes on. Words in another language than English are told as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import psycopg

from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable
from blastyard.postgres.address import VARIABLE, Address

_AGAIN: Final = "Try again; if it stays, look at the server's log."


@dataclass(frozen=True, slots=True)
class _Meaning:
    reason: str
    step: str = _AGAIN
    lasts: bool = False
    """It does not go away by itself."""


_STARTING: Final = _Meaning("is starting, or ending", "Try again in a moment.")
_READ_ONLY: Final = _Meaning(
    "can only be read: it is a standby, or was set read-only",
    f"Point {VARIABLE} to the primary, or name all its hosts in it "
    "(postgresql://one,two/name); then try again.",
)
_CROWDED: Final = _Meaning(
    "has no connection left for us",
    "End some of its clients, or raise max_connections on the server.",
)
_SILENT: Final = _Meaning(
    "cannot be reached",
    f"Check that the server runs and that {VARIABLE} names its host and port.",
)
_STRANGER: Final = _Meaning(
    "does not let this account in",
    f"Check the user and the password in {VARIABLE}, and pg_hba.conf on the server.",
    lasts=True,
)
_NOWHERE: Final = _Meaning(
    "does not exist", "Make it: createdb -O USER NAME, as the server's administrator.", lasts=True
)
_ENCRYPTED: Final = _Meaning(
    "cannot be spoken to over TLS as asked for",
    f"Check sslmode and sslrootcert in {VARIABLE}, and the server's certificate.",
    lasts=True,
)
_RIGHTS: Final = _Meaning(
    "refuses this account a right it needs",
    "As the server's administrator: GRANT ALL ON DATABASE NAME TO USER; and inside that database "
    "GRANT ALL ON SCHEMA public TO USER; or make USER the owner of the database.",
    lasts=True,
)
_CHANGED: Final = _Meaning(
    "does not have the tables of blastyard where they were",
    "Stop every blastyard that uses it, then start again.",
)
_TAKEN: Final = _Meaning(
    "holds tables of another program under names that blastyard uses",
    "Give blastyard a database of its own.",
    lasts=True,
)
_BUSY: Final = _Meaning("kept a statement waiting for a lock")
_SLOW: Final = _Meaning("took too long")
_LOST: Final = _Meaning("ended the connection")
_ODD: Final = _Meaning("did not answer as it must")

# in this order: what passes by itself comes first where several hosts gave different reasons
_WORDS: Final = (
    ("starting up|shutting down|in recovery mode|not yet accepting", _STARTING),
    ("too many clients|connection slots|too many connections", _CROWDED),
    ("session is (not )?read-only|in hot standby mode|not in hot standby", _READ_ONLY),
    ("refused|no such file|timeout|translate host|not known|no route|unreachable", _SILENT),
    ("certificate|ssl|tls", _ENCRYPTED),
    ("database .* does not exist", _NOWHERE),
    ("password|authentication|pg_hba|role .*|not permitted to log in", _STRANGER),
    ("permission denied", _RIGHTS),
    ("closed the connection|administrator command|connection reset|broken pipe|eof", _LOST),
)  # fmt: skip

_CODES: Final = {
    "25006": _READ_ONLY,
    "25P03": _SLOW,
    "3F000": _RIGHTS,
    "42501": _RIGHTS,
    "42703": _CHANGED,
    "42P01": _CHANGED,
    "42P07": _TAKEN,
    "53100": _Meaning("cannot grow: its disk is full", "Free some space on the server."),
    "53300": _CROWDED,
    "55P03": _BUSY,
    "57014": _SLOW,
    "57P03": _STARTING,
}
_CLASSES: Final = {
    "08": _LOST,
    "40": _BUSY,
    "53": _Meaning("is short of memory or room", "Look at the server's log."),
    "57": _LOST,
    "58": _Meaning("reports an error of its operating system", "Look at the server's log."),
    "XX": _Meaning(
        "is damaged", "Stop every blastyard, and have the server's administrator look at its log."
    ),
}


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Turn the errors of psycopg inside into ours."""
    try:
        yield
    except psycopg.Error as error:
        raise unavailable(error, address) from error


def unavailable(error: psycopg.Error, address: Address) -> BlastyardError:
    """What an error of this server means: ``Unavailable``, or ``Misconfigured`` if it lasts."""
    meaning = _by_number(error.sqlstate) if error.sqlstate else _by_words(str(error))
    kind, code = (
        (Misconfigured, "settings_invalid") if meaning.lasts else (Unavailable, "store_unavailable")
    )
    words = address.redacted(_told(error))
    return kind(code, f"{address} {meaning.reason} ({words}).", meaning.step)


def is_read_only(error: psycopg.Error) -> bool:
    """Whether another server has become the one to write to."""
    return error.sqlstate == "25006"


def _by_number(state: str) -> _Meaning:
    return _CODES.get(state) or _CLASSES.get(state[:2]) or _ODD


def _by_words(text: str) -> _Meaning:
    found = (meaning for words, meaning in _WORDS if re.search(words, text, re.IGNORECASE))
    return next(found, _ODD)


def _told(error: psycopg.Error) -> str:
    """The server's words in one line."""
    primary = error.diag.message_primary
    lines = (primary or str(error)).splitlines()
    told = re.sub(r"^.*?(FATAL|ERROR|PANIC):\s+", "", lines[0]) if lines else "no reason given"
    return told.strip().rstrip(".")
