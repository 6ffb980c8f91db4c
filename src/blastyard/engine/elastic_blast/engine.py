"""Searches that ElasticBLAST runs: submitted by its command, followed and ended by their label."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from blastyard.domain.errors import Failure
from blastyard.engine.attempt import Attempt
from blastyard.engine.elastic_blast.collection import Wanted, collect
from blastyard.engine.elastic_blast.configuration import Order, results_of
from blastyard.engine.elastic_blast.folder import SubmitFolder
from blastyard.engine.elastic_blast.followed import Followed
from blastyard.engine.elastic_blast.location import location
from blastyard.engine.elastic_blast.name import ClusterName, cluster_name
from blastyard.engine.elastic_blast.objects import SearchObjects
from blastyard.engine.elastic_blast.runner import Prepared, Submission, SubmitRunner
from blastyard.engine.elastic_blast.sight import is_adoptable, judge
from blastyard.engine.port import Task
from blastyard.engine.remote import Collected, Errand, Partial, Sighted

PATIENCE: Final = timedelta(seconds=20)
"""How long the API server may take to delete a search."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """See :class:`blastyard.engine.remote.Ready`."""

    runner: SubmitRunner
    prepared: Prepared

    def start(self, deadline: float | None) -> Submission:
        return self.runner.start(self.prepared, deadline)


class ElasticBlastEngine:
    """A :class:`blastyard.engine.remote.RemoteEngine`.

    ``results`` is the location below which each search has one of its own; one that cannot be used
    raises ``Misconfigured`` here.
    """

    def __init__(
        self, runner: SubmitRunner, objects: SearchObjects, followed: Followed, results: str
    ) -> None:
        location(results)
        self._runner = runner
        self._objects = objects
        self._followed = followed
        self._results = results

    def name(self, search_id: str, attempt: int) -> str:
        """See the port, as for all below."""
        return _named(search_id, attempt).id

    def prepare(self, errand: Errand) -> _Ready:
        name = _named(errand.task.search_id, errand.task.attempt)
        order = Order(
            name,
            errand.program,
            errand.database,
            errand.options,
            errand.output_format,
            errand.task.query,
            results_of(self._results, name),
        )
        prepared = self._runner.prepare(order, Attempt.of(errand.task).directory)
        return _Ready(self._runner, prepared)

    def look(self, name: str) -> Sighted:
        return judge(self._objects.look(name), was_complete=False)

    def left(self, errand: Errand) -> Sighted:
        sight = self._objects.look(errand.name)
        state = judge(sight, was_complete=False)
        ending = SubmitFolder.below(Attempt.of(errand.task).directory).ending()
        if sight.jobs and not is_adoptable(sight, ending):
            return Partial(tuple(job.metadata.name for job in sight.jobs))
        return state

    def poll(self, name: str) -> Sighted:
        return judge(self._followed.look(name), was_complete=True)

    def cancel(self, name: str) -> None:
        self._objects.cancel(name, PATIENCE)
        self._followed.forget(name)

    def collect(self, errand: Errand, seen: int) -> Collected | Failure:
        task = errand.task
        name = _named(task.search_id, task.attempt)
        wanted = Wanted(name, errand.program, errand.output_format, seen, task.limits.output_bytes)
        return collect(location(results_of(self._results, name)), wanted, Attempt.of(task))

    def discard(self, task: Task) -> None:
        for folder in task.directory.glob("attempt-*"):
            Attempt(folder, folder).remove()


def _named(search_id: str, attempt: int) -> ClusterName:
    return cluster_name(search_id, str(attempt))
