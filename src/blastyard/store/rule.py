"""What every search store owes its callers in the same words: refusals and their reasons."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

from blastyard.domain.errors import Conflict, NotFound
from blastyard.domain.search import Search
from blastyard.store.port import Filter

_SHORTEST_PREFIX: Final = 4


def unknown_search(search_id: str) -> NotFound:
    """No search has this id."""
    return NotFound(
        "search_unknown",
        f"There is no search {search_id}.",
        "`blastyard list` shows the searches there are.",
    )


def unknown_database(name: str, known: Iterable[str]) -> NotFound:
    """No database is registered under this name; names the nearest ones."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3) or names[:3]
    step = "Register it with `blastyard db add`."
    if near:
        step = f"Did you mean {' or '.join(near)}? `blastyard db list` shows all."
    return NotFound("database_unknown", f"There is no database named {name}.", step)


def database_exists(name: str) -> Conflict:
    """The name of a database to be registered is taken."""
    step = "Choose another name, or `blastyard db remove` the old one first."
    return Conflict("database_exists", f"A database named {name} is registered already.", step)


def database_in_use(name: str, searches: Sequence[str]) -> Conflict:
    """Searches that have not ended name the database; ``searches`` are some of their ids."""
    return Conflict(
        "database_in_use",
        f"Searches use the database {name}: {', '.join(searches)}.",
        "Wait for them, or cancel them.",
    )


def is_registered_name(database: str) -> bool:
    """Whether a search's database is a name to be looked up, not a path used as it stands."""
    return "/" not in database


def matches(search: Search, wanted: Filter) -> bool:
    """Whether a filter wants this search, whatever its limit."""
    request = search.request
    return (
        (not wanted.states or search.state in wanted.states)
        and wanted.user in (None, request.user)
        and wanted.database in (None, request.database)
        and (wanted.tag is None or wanted.tag in request.tags)
        and (not wanted.ids or search.id in wanted.ids)
        and (wanted.before is None or search.sequence < wanted.before)
    )


def refuse_live(search: Search) -> None:
    """Raise ``Conflict('search_unfinished')`` for a search that has not ended."""
    if not search.state.is_terminal:
        raise Conflict(
            "search_unfinished",
            f"Search {search.id} is {search.state}; only one that has ended can be deleted.",
            f"`blastyard cancel {search.id}` ends it.",
        )


def the_one(prefix: str, found: Sequence[str]) -> str:
    """The only id of ``found``, which start with ``prefix``; ``NotFound`` otherwise."""
    if len(prefix) < _SHORTEST_PREFIX:
        step = f"Give at least {_SHORTEST_PREFIX} characters of the id."
        raise NotFound("search_unknown", f"'{prefix}' is too short to name a search.", step)
    if len(found) > 1:
        message = f"Several searches start with {prefix}: {', '.join(found[:2])}."
        raise NotFound("search_unknown", message, "Give more characters of the id.")
    if not found:
        raise unknown_search(prefix)
    return found[0]
