"""Row keys: where in the one partition a row stands, and which rows stand together.

A key may hold neither ``/ \\ # ?`` nor control characters, and 512 characters at most. So what
people have written (users, idempotency keys, names of databases) is in keys as a digest, and ids,
which are searched by their beginning, with everything unusual spelled as numbers. The characters
used sort as one byte each, and all of them before :data:`BEYOND`.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from blastyard.domain.job import State
from blastyard.domain.search import Search

PARTITION: Final = "blastyard"
FORMAT: Final = "f"
"""The row that says what wrote the table."""

BEYOND: Final = "~"
LONGEST_ID: Final = 500
"""Characters of an id as it is spelled in keys."""

_PLAIN: Final = frozenset(string.ascii_letters + string.digits + "-_")
_LAST: Final = 10**16 - 1
"""The largest sequence: microseconds since 1970 have 16 digits until the year 2286."""
_HIGHEST_LEVEL: Final = 9


@dataclass(frozen=True, slots=True)
class Range:
    """Keys from ``low`` up to, but not with, ``high``."""

    low: str
    high: str

    @classmethod
    def of(cls, beginning: str) -> Range:
        """All keys that begin so."""
        return cls(beginning, beginning + BEYOND)


IDS: Final = Range.of("i.")
ARRIVALS: Final = Range.of("n.")
LIVE: Final = Range.of("l.")
DATABASES: Final = Range.of("d.")
TALLIES: Final = Range.of("c.")
LEFTOVERS: Final = Range.of("g.")


def spelled(text: str) -> str:
    """The text in characters a key may have; what it begins with stays what it begins with."""
    return "".join(each if each in _PLAIN else f"!{ord(each):06x}" for each in text)


def digest(*texts: str) -> str:
    """32 characters that stand for these texts."""
    whole = blake2b(digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()


def is_possible_id(text: str) -> bool:
    """Whether a search may have this id."""
    return 0 < len(spelled(text)) <= LONGEST_ID


def by_id(search_id: str) -> str:
    """The search itself."""
    return f"i.{spelled(search_id)}"


def by_arrival(sequence: int) -> str:
    """The search among all, newest first."""
    return f"n.{_falling(sequence)}"


def by_user(user: str, sequence: int) -> str:
    """The search among those of its user (a :func:`digest`), newest first."""
    return f"u.{user}.{_falling(sequence)}"


def while_live(search: Search) -> str:
    """The live search among those of its runner; queued ones by user, priority and arrival."""
    request = search.request
    kind = "q" if search.state is State.QUEUED else "r"
    level = _HIGHEST_LEVEL - request.priority.level
    owner = f"l.{digest(search.runner)}.{kind}.{digest(request.user)}"
    return f"{owner}.{level}.{search.sequence:016}"


def of_runner(live: str) -> str:
    """The beginning that a live search's key has in common with all of its runner."""
    return ".".join(live.split(".")[:2]) + "."


def of_queued_user(live: str) -> str:
    """The beginning that a queued search's key has in common with all of its runner and user."""
    return ".".join(live.split(".")[:4]) + "."


def runner(name: str) -> Range:
    """The live searches of a runner."""
    return Range.of(f"l.{digest(name)}.")


def queued(name: str) -> Range:
    """The queued searches of a runner."""
    return Range.of(f"l.{digest(name)}.q.")


def arrivals_before(before: int | None, user: str | None) -> Range:
    """All searches, or those of one user (a digest), with a sequence smaller than ``before``."""
    beginning = "n." if user is None else f"u.{user}."
    everything = Range.of(beginning)
    if before is None:
        return everything
    return Range(beginning + _falling(before - 1), everything.high)


def event(sequence: int, version: int) -> str:
    """The event that came with this version of the search."""
    return f"e.{sequence:016}.{version:08}"


def events(sequence: int) -> Range:
    """All events of a search."""
    return Range.of(f"e.{sequence:016}.")


def claim(user: str, name: str) -> str:
    """The claim of a user's idempotency key."""
    return f"k.{digest(user, name)}"


def database(name: str) -> str:
    """A registered database."""
    return f"d.{digest(name)}"


def tally(owner: str) -> str:
    """One writer's count of ended searches."""
    return f"c.{owner}"


def leftover(sequence: int) -> str:
    """The note that events of a deleted search are still to be removed."""
    return f"g.{sequence:016}"


def sequence_of(leftover_key: str) -> int:
    """Whose events the note is about."""
    return int(leftover_key.removeprefix("g."))


def _falling(sequence: int) -> str:
    """Sixteen digits that sort the larger sequence first."""
    return f"{min(max(_LAST - sequence, 0), _LAST):016}"
