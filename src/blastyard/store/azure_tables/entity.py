"""How searches, events and databases become rows, and come back.

The whole value is JSON text in the columns ``Body0``, ``Body1``, … (a column holds 32,768 UTF-16
units). The other columns repeat what queries and writers ask about. What does not fit into a row,
or its copies into one transaction, is refused by the name of its largest part before anything is
sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import msgspec

from blastyard.domain.errors import CallerMistake
from blastyard.domain.job import State
from blastyard.domain.search import Database, Event, Search
from blastyard.store.azure_tables import key
from blastyard.store.azure_tables.table import Row, Values

CHUNK: Final = 16_000
"""Characters in one column: each is one or two UTF-16 units."""
ROOM: Final = 480_000
"""Bytes that a search may take as they are sent: four copies in 4 MiB, each a row of 1 MiB."""
NEW_ROOM: Final = ROOM // 2
"""Bytes of a new search. What its life adds to it will find room."""
EVENT_ROOM: Final = ROOM // 4
TAGS: Final = 100
"""Tags of a search: each is a column, of which a row has 252."""
REMEMBERED: Final = 8
"""Writes of a search by which their writers can recognise them later."""

SEARCH_COLUMNS: Final = ("State", "Database", "Live", "Writes")

_encode: Final = msgspec.json.Encoder().encode
_search: Final = msgspec.json.Decoder(Search).decode
_event: Final = msgspec.json.Decoder(Event).decode
_database: Final = msgspec.json.Decoder(Database).decode


@dataclass(frozen=True, slots=True)
class Stored:
    """What a writer must know of the stored search that it writes over."""

    id: str
    sequence: int
    version: int
    state: State
    user: str
    """A digest."""
    live: str
    """Its key among the live ones; empty when it has ended."""
    writes: tuple[str, ...]
    """What made the last versions, newest last."""
    etag: str

    def was_made_by(self, write: str, version: int) -> bool:
        """Whether this write made that version."""
        back = self.version - version
        return 0 <= back < len(self.writes) and self.writes[-1 - back] == write


def search(row: Row) -> Search:
    """The search in one of its rows."""
    return _search(_body(row.values))


def stored(row: Row, found: Search) -> Stored:
    """The same row, for who writes over it."""
    return Stored(
        found.id,
        found.sequence,
        found.version,
        found.state,
        key.digest(found.request.user),
        row.values["Live"],
        tuple(row.values["Writes"].split()),
        row.etag,
    )


def of_search(search: Search, writes: Iterable[str], room: int = ROOM) -> dict[str, Any]:
    """All columns of a search. Raises ``CallerMistake`` when it takes more than ``room``."""
    text = _encode(search).decode()
    if _weight(text) > room:
        raise _too_large("search", search, room)
    if len(search.request.tags) > TAGS:
        message = f"A search may have {TAGS} tags in this store; this one has more."
        raise CallerMistake("request_invalid", message, "Give it fewer tags.")
    return {
        "State": search.state.value,
        "Database": key.digest(search.request.database),
        "Live": "" if search.state.is_terminal else key.while_live(search),
        "Writes": " ".join([*writes][-REMEMBERED:]),
        **{tag_column(tag): True for tag in search.request.tags},
        **_chunks(text),
    }


def tag_column(tag: str) -> str:
    """The column that a search with this tag has."""
    return f"Tag{key.digest(tag)}"


def event(row: Row) -> Event:
    """The event in its row."""
    return _event(_body(row.values))


def of_event(event: Event) -> dict[str, Any]:
    """All columns of an event. Raises ``CallerMistake`` when it is too large."""
    text = _encode(event).decode()
    if _weight(text) > EVENT_ROOM:
        raise _too_large("event", event, EVENT_ROOM)
    return _chunks(text)


def database(row: Row) -> Database:
    """The database in its row."""
    return _database(_body(row.values))


def of_database(database: Database) -> dict[str, Any]:
    """All columns of a database. Raises ``CallerMistake`` when it is too large."""
    text = _encode(database).decode()
    if _weight(text) > ROOM:
        raise _too_large("database", database, ROOM, "database_invalid")
    return _chunks(text)


def _chunks(text: str) -> dict[str, Any]:
    starts = range(0, len(text), CHUNK)
    return {f"Body{n}": text[start : start + CHUNK] for n, start in enumerate(starts)}


def _body(values: Values) -> str:
    parts: list[str] = []
    while (part := values.get(f"Body{len(parts)}")) is not None:
        parts.append(part)
    return "".join(parts)


def _weight(text: str) -> int:
    """Bytes as the client library sends it; a row takes no more than two for each of them."""
    return len(json.dumps(text))


def _too_large(
    what: str, value: Search | Event | Database, room: int, code: str = "request_invalid"
) -> CallerMistake:
    sizes = {name: _weight(_encode(part).decode()) for name, part in _parts(value).items()}
    name, size = max(sizes.items(), key=lambda each: each[1])
    message = f"The {what} is too large for Azure Storage Tables: its {name} takes {size:,} bytes"
    return CallerMistake(code, f"{message}, and all of it may take {room:,}.", f"Shorten {name}.")


def _parts(value: Search | Event | Database) -> Mapping[str, Any]:
    """The fields, and in place of the request and the query theirs."""
    parts = {field.name: getattr(value, field.name) for field in fields(value)}
    for inner in ("request", "query"):
        if inner in parts:
            nested = parts.pop(inner)
            parts |= {f"{inner}.{each.name}": getattr(nested, each.name) for each in fields(nested)}
    return parts
