"""How searches, events and databases become rows, and come back.

The only place that knows the mapping. The body is the whole value as JSON; columns repeat what SQL
is asked about, and ``sequence`` and ``version`` are true in their columns only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from blastyard.domain.search import Database, Event, Search
from blastyard.store.schema import databases, events, searches

_encode: Final = msgspec.json.Encoder().encode
_search: Final = msgspec.json.Decoder(Search).decode
_event: Final = msgspec.json.Decoder(Event).decode
_database: Final = msgspec.json.Decoder(Database).decode

SEARCH: Final = (searches.c.sequence, searches.c.version, searches.c.body)
"""The columns :func:`search` needs."""
EVENT: Final = (events.c.at, events.c.body)
DATABASE: Final = (databases.c.body,)


def search(row: sa.Row[int, int, str]) -> Search:
    """A search from the columns :data:`SEARCH`."""
    sequence, version, body = row
    return replace(_search(body), sequence=sequence, version=version)


def new(search: Search) -> dict[str, Any]:
    """All columns of a search that is added, the sequence apart."""
    request = search.request
    return {
        "id": search.id,
        "user": request.user,
        "key": request.key,
        "database": request.database,
        **changed(search),
    }


def changed(search: Search) -> dict[str, Any]:
    """The columns an update may change: a request is what it was, its priority apart."""
    return {
        "version": search.version,
        "state": search.state.value,
        "live": not search.state.is_terminal,
        "runner": search.runner,
        "level": search.request.priority.level,
        "body": _encode(search).decode(),
    }


def event(row: sa.Row[datetime, str]) -> Event:
    """An event from the columns :data:`EVENT`."""
    at, body = row
    return replace(_event(body), at=at)


def new_event(sequence: int, event: Event) -> dict[str, Any]:
    """All columns of an event of the search with this sequence, but the time."""
    return {"sequence": sequence, "body": _encode(event).decode()}


def database(row: sa.Row[str]) -> Database:
    """A database from the columns :data:`DATABASE`."""
    return _database(row[0])


def new_database(database: Database) -> dict[str, Any]:
    """All columns of a database."""
    return {"name": database.name, "body": _encode(database).decode()}


def tag_rows(sequence: int, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """One row per different tag."""
    return [{"sequence": sequence, "tag": tag} for tag in dict.fromkeys(wanted)]
