"""Searches: each that was accepted ends, and none is submitted twice."""

from __future__ import annotations

from blastyard.testing.recorded.deed import ADDED, Change
from blastyard.testing.recorded.rule import Before, Court
from blastyard.testing.recorded.scene import JobSight


class SearchRule:
    """Lost, doubled."""

    def __init__(self, court: Court) -> None:
        self._court = court
        self._finalizers: dict[str, list[tuple[JobSight, int]]] = {}
        """Search to the finalizers it has had, and the turn in Gate A that each was made in."""
        self._completed: set[str] = set()
        """Searches whose finalizer has succeeded."""

    def saw(self, change: Change, before: Before) -> None:
        """See the rule."""
        if change.kind != "Job":
            return
        uid = change.document["metadata"]["uid"]
        job = self._court.scene.jobs.get(uid)
        if job is None or job.marker or job.app != "finalizer" or not job.id:
            return
        search = self._court.search_of(job)
        if before.job is None and change.what == ADDED:
            self._made(job, search, change.at)
        if job.succeeded:
            self._completed.add(search)

    def _made(self, job: JobSight, search: str, at: float) -> None:
        court = self._court
        turn = court.scene.lease.since_version
        before = [
            court.scene.jobs.get(one.uid)
            for one, its_turn in self._finalizers.get(search, [])
            if its_turn != turn or one.id == job.id  # a command may submit several searches
        ]
        alive = [other.name for other in before if other is not None and other.live]
        if alive:
            court.accuse("doubled", f"{search}: {job.name} beside {', '.join(alive)}", at)
        elif search in self._completed:
            court.accuse("doubled", f"{search}: {job.name} after it had completed", at)
        self._finalizers.setdefault(search, []).append((job, turn))
        court.counts["submissions"] += 1

    def closed(self) -> None:
        """See the rule."""
        cast = self._court.cast
        ended = {deed.search: deed.at for deed in reversed(cast.those("ended"))}
        accepted = {deed.search: deed.at for deed in cast.those("accepted")}
        self._court.counts["accepted"] = len(accepted)
        self._court.counts["ended"] = len(ended)
        for search, at in accepted.items():
            if search not in ended:
                self._court.accuse("lost", f"{search} was accepted and never ended", at)
        for deed in cast.those("submitting"):
            if deed.at > ended.get(deed.search, float("inf")):
                detail = f"{deed.search} was submitted after it had ended"
                self._court.accuse("submitted after its end", detail, deed.at)
