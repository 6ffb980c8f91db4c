"""Registered databases in a command line become the paths BLAST+ finds them by."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

from blastyard.cli.dropin.line import Line
from blastyard.domain.errors import NotFound
from blastyard.domain.search import Database, DatabaseState
from blastyard.store.catalogue import SqliteCatalogue

_ENDINGS: Final = (".nin", ".nal", ".pin", ".pal")


def located(line: Line, catalogue: SqliteCatalogue, pause: Callable[[str], None]) -> Line:
    """The line with each registered database by its path, anything else as it stands.

    ``pause(reason)`` is called again and again while a database is still being copied. Raises
    ``NotFound('database_broken')`` for one that is registered and cannot be searched.
    """

    def path_of(name: str) -> str | None:
        if "/" in name or not name.isprintable():  # no name that could be registered
            return None
        database = catalogue.find(name)
        while database is not None and database.state is DatabaseState.COPYING:
            pause(f"the database {name} is being copied")
            database = catalogue.find(name)
        return None if database is None else _path(database)

    return line.with_databases(path_of)


def _path(database: Database) -> str:
    name = database.name
    if database.state is DatabaseState.BROKEN:
        raise NotFound(
            "database_broken",
            f"The database {name} is damaged.",
            f"`blastyard db check {name}` says what is wrong.",
        )
    if any(os.path.exists(name + ending) for ending in _ENDINGS):  # noqa: PTH110
        text = f"-db {name} is the registered database; write ./{name} for the one in this folder."
        print(f"blastyard: warning: {text}", file=sys.stderr, flush=True)
    return database.path
