"""Submit, look at, cancel, run again and delete searches: what every front calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from blastyard.admission.gate import Gate
from blastyard.admission.view import View
from blastyard.domain.errors import CallerMistake, NotFound, Unavailable
from blastyard.domain.job import State
from blastyard.domain.search import Event, Request, Search
from blastyard.results.files import SearchFiles
from blastyard.service.draft import Draft
from blastyard.service.ending import Endings
from blastyard.service.intake import Accepted, Intake
from blastyard.service.sameness import require_same
from blastyard.service.sweep import PUBLIC
from blastyard.service.view import Shape, event_shape, search_shape
from blastyard.service.window import Window, wish
from blastyard.store.port import Filter, SearchStore, Stale


@dataclass(frozen=True, slots=True)
class Submitted:
    """An accepted search. ``created`` is false when the key had brought it before."""

    search: Search
    created: bool


@dataclass(frozen=True, slots=True)
class Waits:
    """How long a search may wait for each gate; ``None`` = as long as it takes."""

    submit_slot: timedelta | None = None
    capacity: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """On whose behalf this process acts: operating-system account and user name."""

    account: int
    name: str


@dataclass(frozen=True, slots=True)
class Desk:
    """What :class:`Searches` works with."""

    store: SearchStore
    gate: Gate
    files: SearchFiles
    intake: Intake
    window: Window
    endings: Endings
    person: Person
    new_id: Callable[[], str]
    waits: Waits = field(default_factory=Waits)
    announce: Callable[[str], None] = lambda _: None
    """Tells others of a search that nobody looks after yet; never raises."""


class Searches:
    """All that can be done with searches. Raises the errors of ``domain.errors`` only."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._store = desk.store
        self._gate = desk.gate
        self._files = desk.files

    # -- asking --------------------------------------------------------------------------------

    def submit(self, draft: Draft, query: Iterable[bytes], *, runner: str) -> Submitted:
        """Check, store and queue a search. Nothing is kept of one that is refused.

        ``runner`` is the submitter that looks after it (empty: nobody yet). Raises
        ``CallerMistake`` with file, line and column for a query that BLAST+ would misread, and
        ``Conflict('key_conflict')`` when the key was used for another search.
        """
        named = draft if draft.user else replace(draft, user=self._desk.person.name)
        accepted = self._desk.intake.check(named)
        return self._take_in(accepted, query, runner, None)

    def _take_in(
        self, accepted: Accepted, query: Iterable[bytes], runner: str, rerun_of: str | None
    ) -> Submitted:
        search_id = self._desk.new_id()
        with self._files.incoming(search_id, accepted.repaired(query)):
            request = accepted.finish()
        row = replace(self._row(search_id, request, accepted, runner), rerun_of=rerun_of)
        stored = self._add(row)
        if stored.id != search_id:
            self._files.remove(search_id)
            require_same(stored, row)
            return Submitted(stored, created=False)
        with suppress(Unavailable):  # accepted all the same: its runner publishes it later
            self._desk.window.offer(stored)
        if not stored.runner:
            self._desk.announce(stored.id)
        return Submitted(stored, created=True)

    def _add(self, search: Search) -> Search:
        """Store the row. Its files are kept wherever it may be stored, or still come to be."""
        try:
            return self._store.add(search, Event(State.QUEUED, reason="accepted"))
        except CallerMistake:
            self._files.remove(search.id)
            raise
        except Unavailable as unanswered:
            try:
                return self._store.get(search.id)
            except NotFound:
                raise unanswered from None

    def _row(self, search_id: str, request: Request, accepted: Accepted, runner: str) -> Search:
        now = self._store.now()
        waits = self._desk.waits
        return Search(
            search_id,
            request,
            accepted.query,
            self._desk.person.account,
            now,
            runner=runner,
            submit_deadline_at=now + waits.submit_slot if waits.submit_slot else None,
            capacity_deadline_at=now + waits.capacity if waits.capacity else None,
        )

    def rerun(self, search_id: str, *, runner: str) -> Submitted:
        """Ask the same again, as a new search over the stored query."""
        old = self.get(search_id)
        self._need_query(old)
        draft = Draft.again(old.request, f"the query of {old.id}")
        accepted = self._desk.intake.check(draft)
        return self._take_in(accepted, self._files.read_query(old.id), runner, old.id)

    def _need_query(self, search: Search) -> None:
        if not self._files.query(search.id).is_file():
            message = f"the query of {search.id} is no longer stored"
            raise CallerMistake("result_gone", message, "submit it again from its file")

    def service(self) -> str:
        """The submitter name of a live service on this store; empty when there is none."""
        for name, seen in self._gate.siblings().items():
            if seen.submitter.kind in PUBLIC and seen.is_alive(self._gate.timings):
                return name
        return ""

    # -- looking -------------------------------------------------------------------------------

    def get(self, search_id: str) -> Search:
        """One search, by its id or the beginning of it. Raises ``NotFound('search_unknown')``."""
        try:
            return self._store.get(search_id)
        except NotFound:
            return self._store.get(self._store.resolve(search_id))

    def shape(self, search: Search) -> Shape:
        """The search as it is shown, with its place in the queue as it is now."""
        if search.state.is_terminal:
            return search_shape(search)
        return search_shape(search, self._gate.view())

    def shapes(self, searches: Sequence[Search]) -> list[Shape]:
        """Several searches as of one moment."""
        waiting = any(not search.state.is_terminal for search in searches)
        view = self._gate.view() if waiting else None
        return [search_shape(search, view) for search in searches]

    def matching(self, wanted: Filter) -> Sequence[Search]:
        """Searches, newest first: one page."""
        return self._store.list(wanted)

    def page(
        self,
        *,
        states: frozenset[State] = frozenset(),
        user: str | None = None,
        tag: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[Search]:
        """Searches, newest first; ``before`` is the ``sequence`` of the last one already seen."""
        return self.matching(Filter(states, user, tag, before=before, limit=limit))

    def events(self, search_id: str) -> list[Shape]:
        """What has happened to a search, oldest first."""
        return [event_shape(event) for event in self._store.events(self.get(search_id).id)]

    def queue(self) -> View:
        """Both gates and the queue, as they are now."""
        return self._gate.view()

    def behind(self, view: View) -> int:
        """How many searches wait in the store until the published queue has room for them."""
        return self._desk.window.behind(view)

    def result(self, search_id: str) -> Path:
        """The file with the output of a completed search.

        Raises ``CallerMistake('search_unfinished')``, ``('result_gone')``, or the search's own
        failure.
        """
        search = self.get(search_id)
        if search.error is not None:
            error = search.error
            raise CallerMistake(error.code, error.message, error.next_step)
        if search.state is not State.COMPLETED or search.result is None:
            message = f"search {search.id} is {search.state}"
            step = f"wait for it with `blastyard wait {search.id[:8]}`"
            raise CallerMistake("search_unfinished", message, step)
        path = self._files.result(search.id, search.result.extension)
        if search.result_deleted_at is not None or not path.is_file():
            message = f"the result of {search.id} was deleted"
            raise CallerMistake("result_gone", message, f"`blastyard rerun {search.id[:8]}`")
        return path

    # -- changing ------------------------------------------------------------------------------

    def cancel(self, search_id: str) -> Search:
        """End a search wherever it is; no error when it has ended already.

        One that waits ends at once; one that runs is ended by the process that runs it.
        """
        while True:
            search = self.get(search_id)
            if search.state.is_terminal or search.cancel_requested:
                return search
            try:
                return self._cancel(search)
            except Stale:
                continue

    def _cancel(self, search: Search) -> Search:
        # of one that was submitted before, something may still arrive: who looks after it ends it
        if search.state is State.QUEUED and search.remote is None:
            ended = self._desk.endings.cancel(search)
            self._gate.end(search.id)
            self._gate.wake()  # also when it had no ticket, so that no document changed
            return ended
        asked = self._store.update(
            replace(search, cancel_requested=True), Event(search.state, reason="cancel requested")
        )
        self._gate.wake()
        return asked

    def delete(self, search_id: str) -> None:
        """Forget an ended search and its files. Raises ``CallerMistake('search_unfinished')``."""
        search = self.get(search_id)
        if not search.state.is_terminal:
            message = f"search {search.id} is {search.state}"
            raise CallerMistake(
                "search_unfinished", message, f"`blastyard cancel {search.id[:8]}` it first"
            )
        self._store.delete(search.id)
        self._files.remove(search.id)

    def park(self, search_id: str, by: str) -> Search:
        """Set a waiting search aside until :meth:`unpark`; also one that is not published yet."""
        search = self.get(search_id)
        its = wish(search) if search.state is State.QUEUED else None
        if not self._gate.park(search.id, by, its, search.runner):
            raise _not_waiting(search)
        return search

    def unpark(self, search_id: str) -> Search:
        """Let a parked search take its turn again."""
        search = self.get(search_id)
        if not self._gate.unpark(search.id):
            raise _not_waiting(search)
        return search

    def each(self, wanted: Filter) -> Iterator[Search]:
        """All searches that match, page by page."""
        page = self.matching(wanted)
        while page:
            yield from page
            page = self.matching(replace(wanted, before=page[-1].sequence))


def _not_waiting(search: Search) -> CallerMistake:
    if search.state is State.QUEUED:
        message = f"search {search.id} is not in the published queue yet: it is behind others"
        step = "wait until it has a place there (`blastyard status`), or cancel it"
        return CallerMistake("search_unfinished", message, step)
    message = f"search {search.id} is {search.state} and has no place in the queue"
    return CallerMistake("search_finished", message, "only waiting searches can be set aside")
