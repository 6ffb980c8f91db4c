"""From a stored search to the BLAST+ command that answers it."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from blastyard.domain.outfmt import OutputFormat
from blastyard.domain.search import Database, Search
from blastyard.engine.database import db_argument
from blastyard.engine.port import Limits, Task
from blastyard.results.files import SearchFiles


class Programs(Protocol):
    """Where the BLAST+ programs are."""

    def program(self, name: str) -> object:
        """The absolute path of a program."""
        ...


class Databases(Protocol):
    """Where the databases are."""

    def get_database(self, name: str) -> Database:
        """One registered database."""
        ...


class Tasks:
    """Makes the task of a search; the same one each time it is asked."""

    def __init__(
        self,
        programs: Programs,
        databases: Databases,
        files: SearchFiles,
        *,
        threads: int,
        limits: Limits,
    ) -> None:
        self._programs = programs
        self._databases = databases
        self._files = files
        self._threads = threads
        self._limits = limits

    def make(self, search: Search) -> Task:
        """The command line in BLAST+'s own words; the engine adds query, output and threads."""
        request = search.request
        database = self._databases.get_database(request.database)
        argv = (
            str(self._programs.program(request.program)),
            "-db",
            db_argument(database.path),
            "-outfmt",
            request.output_format,
            *request.options,
        )
        return replace(self.remains(search), argv=argv)

    def remains(self, search: Search) -> Task:
        """The task as it was started: enough to find it again, whatever has changed since."""
        return Task(
            search.id,
            search.attempt,
            search.command,
            self._files.query(search.id),
            self._files.directory(search.id),
            OutputFormat.parse(search.request.output_format).extension.lstrip("."),
            self._threads,
            self._limits,
        )
