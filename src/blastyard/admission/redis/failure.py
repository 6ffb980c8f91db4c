"""What an error of a Redis server means, and what to do.

The server names its errors by a first word. One that a script met comes in the script's error, in
older servers somewhere inside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from redis import exceptions as theirs

from blastyard.admission.redis.address import VARIABLE, Address
from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable

RIGHTS: Final = (
    "+eval +evalsha +info +time +hget +hmget +hset +hdel +hkeys +hexists +publish +subscribe"
)
"""The commands that an account of the server must be allowed."""

_AGAIN: Final = "Try again; if it stays, look at the server's log."


@dataclass(frozen=True, slots=True)
class Meaning:
    """What is wrong with a server, as the end of a sentence about it, and what to do."""

    reason: str
    step: str = _AGAIN
    lasts: bool = False
    """It does not go away by itself."""


_STRANGER: Final = Meaning(
    "does not let this account in",
    f"Check the user and the password in {VARIABLE} (redis://USER:PASSWORD@host).",
    lasts=True,
)
_RIGHTLESS: Final = Meaning(
    "refuses this account something it needs",
    "As the server's administrator: ACL SETUSER NAME '~blastyard:*' '&blastyard:*' " + RIGHTS,
    lasts=True,
)
REPLICA: Final = Meaning(
    "is a replica, which others write to",
    f"Name the primary in {VARIABLE}. After a failover it goes on by itself, once the name leads "
    "to the new primary.",
)
_CLUSTER: Final = Meaning(
    "is a node of a Redis Cluster, and what blastyard keeps belongs to another node",
    f"Name a Redis that is no cluster in {VARIABLE}; a small one is enough.",
    lasts=True,
)
_MEANINGS: Final = {
    "ASK": Meaning("is moving its data to another node"),
    "BUSY": Meaning("is busy with somebody's script", "End it: redis-cli SCRIPT KILL."),
    "CLUSTERDOWN": Meaning("belongs to a cluster that is down"),
    "CROSSSLOT": _CLUSTER,
    "DENIED": Meaning(
        "has no password, and therefore answers its own machine only (protected mode)",
        "Give it a password, and blastyard the same one.",
        lasts=True,
    ),
    "LOADING": Meaning("is still reading its data from disk", "It goes on by itself."),
    "MASTERDOWN": REPLICA,
    "MISCONF": Meaning(
        "cannot save its data, and refuses to write",
        "Look at its log, and at the space on its disk.",
    ),
    "MOVED": _CLUSTER,
    "NOAUTH": _STRANGER,
    "NOPERM": _RIGHTLESS,
    "NOREPLICAS": Meaning(
        "has fewer replicas than it must have to write", "Start its replicas, or see why not."
    ),
    "OOM": Meaning(
        "is full, and refuses to write",
        "Raise its maxmemory, or remove what others keep in it.",
    ),
    "READONLY": REPLICA,
    "TRYAGAIN": Meaning("is moving its data to another node"),
    "WRONGPASS": _STRANGER,
    "WRONGTYPE": Meaning(
        "holds something of another program under a name that blastyard uses",
        "Give blastyard a database of its own, or another BLASTYARD_NAMESPACE.",
        lasts=True,
    ),
}
_SILENT: Final = Meaning(
    "cannot be reached", f"Check that it runs, and that {VARIABLE} names its host and port."
)
_SLOW: Final = Meaning("did not answer in time", "Check that it runs, and what keeps it busy.")
_LOST: Final = Meaning("ended the connection")
_CROWDED: Final = Meaning(
    "has no connection left for us", "End some of its clients, or raise maxclients."
)
_UNABLE: Final = Meaning(
    "does not know a command that blastyard needs",
    "Use Redis 5 or newer, or Valkey, with these commands: " + RIGHTS,
    lasts=True,
)
_OTHER: Final = Meaning(
    "does not answer as a Redis does", f"Check the host and the port in {VARIABLE}.", lasts=True
)
_ODD: Final = Meaning("did not answer as it must")

_CODES: Final = re.compile(r"\b(" + "|".join(_MEANINGS) + r")\b")


def failure(
    error: theirs.RedisError, address: Address, *, asked: bool = True, may_be_done: bool = False
) -> BlastyardError:
    """What an error of this server means: ``Unavailable``, or ``Misconfigured`` if it lasts.

    ``asked`` is whether the question had been sent, and ``may_be_done`` whether to say that what it
    asked for may have been done.
    """
    text = str(error)
    named = _CODES.search(error.status_code or text)
    meaning = _MEANINGS[named[0]] if named else _unnamed(error, text, asked=asked)
    said = address.redacted(text).rstrip(".")
    doubt = may_be_done and asked and named is None and is_broken(error)
    told = "; what was asked for may have been done all the same" if doubt else ""
    return told_as(meaning, address, f" ({said}){told}")


def told_as(meaning: Meaning, address: Address, more: str = "") -> BlastyardError:
    """A meaning as an error."""
    kind, code = (
        (Misconfigured, "settings_invalid") if meaning.lasts else (Unavailable, "store_unavailable")
    )
    return kind(code, f"{address} {meaning.reason}{more}.", meaning.step)


def is_broken(error: theirs.RedisError) -> bool:
    """Whether the connection is, or the server behind it."""
    return isinstance(error, theirs.ConnectionError | theirs.TimeoutError)


def _unnamed(error: theirs.RedisError, text: str, *, asked: bool) -> Meaning:
    for kind, words, meaning in (
        (theirs.AuthenticationError, "", _STRANGER),
        (theirs.RedisError, "user executing the script can't", _RIGHTLESS),
        (theirs.RedisError, "acl failure in script", _RIGHTLESS),
        (theirs.RedisError, "max number of clients", _CROWDED),
        (theirs.TimeoutError, "", _SLOW),
        (theirs.ConnectionError, "", _LOST if asked else _SILENT),
        (theirs.InvalidResponse, "", _OTHER),
        (theirs.RedisError, "unknown command", _UNABLE),
    ):
        if isinstance(error, kind) and words in text.lower():
            return meaning
    return _ODD
