"""From a stored search to what is handed over."""

from __future__ import annotations

from dataclasses import replace

from blastyard.domain.search import RemoteRun, Search
from blastyard.engine.port import Task
from blastyard.engine.remote import Errand
from blastyard.service.task import Tasks


class Errands:
    """Makes errands; the same one for the same attempt."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def of(self, search: Search, run: RemoteRun) -> Errand:
        """What this attempt at the search is, or was."""
        request = search.request
        return Errand(
            replace(self._tasks.remains(search), attempt=run.attempt),
            run.id,
            request.program,
            request.database,
            request.options,
            request.output_format,
        )

    def again(self, search: Search) -> Errand:
        """The one that the row names."""
        if search.remote is None:
            raise AssertionError("a search is handed over under an id")
        return self.of(search, search.remote)

    def remains(self, search: Search) -> Task:
        """Where the search's attempts have left their files."""
        return self._tasks.remains(search)
