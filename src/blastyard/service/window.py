"""Which of the stored searches stand in the published queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from blastyard.admission.gate import Gate
from blastyard.admission.ticket import PUBLISHED_PER_SUBMITTER, Wish, window
from blastyard.admission.view import View
from blastyard.domain.job import State
from blastyard.domain.search import Search
from blastyard.store.port import Filter, SearchStore

REFILL_AT: Final = PUBLISHED_PER_SUBMITTER * 3 // 4
REFILL_SECONDS: Final = 5.0


def wish(search: Search) -> Wish:
    """What the queue needs to know of a search."""
    request = search.request
    return Wish(search.id, request.user, request.priority.level)


class Window:
    """Publishes searches as places in the ledger fall free; the rest wait in the store."""

    def __init__(self, store: SearchStore, gate: Gate, monotonic: Callable[[], float]) -> None:
        self._store = store
        self._gate = gate
        self._monotonic = monotonic
        self._behind = True
        self._looked_at = float("-inf")

    def offer(self, search: Search) -> None:
        """Publish one search that has just been stored, if the window has a place for it."""
        ledger = self._gate.publish([wish(search)], search.runner)
        if search.id not in ledger.tickets:
            self._behind = True

    def behind(self, view: View) -> int:
        """How many stored searches wait without a place among the published ones."""
        queued = self._store.counts().get(State.QUEUED, 0)
        names = tuple(view.ledger.tickets)
        if not queued or not names:
            return queued
        wanted = Filter(states=frozenset({State.QUEUED}), ids=names, limit=len(names))
        return queued - len(self._store.list(wanted))

    def refill(self, *, force: bool = False) -> None:
        """Publish what may follow now. Cheap when nothing is left behind in the store."""
        now = self._monotonic()
        recently = now - self._looked_at < REFILL_SECONDS
        if not force and not self._behind and recently:
            return
        me = self._gate.me.name
        published = self._gate.lately()
        own = Counter(held.user for held in published.tickets.values() if held.submitter == me)
        if not force and own.total() > REFILL_AT:
            return
        self._looked_at = now
        # the first of each user are those that are published already
        places = max(1, PUBLISHED_PER_SUBMITTER - own.total())
        per_user = max(own.values(), default=0) + places
        waiting = self._store.waiting(me, per_user=per_user)
        wishes = [wish(search) for search in waiting]
        may = force or window(published, me, wishes)  # waiting must not cost a call each time
        ledger = self._gate.publish(wishes) if wishes and may else published
        asked = Counter(search.request.user for search in waiting)
        self._behind = max(asked.values(), default=0) == per_user or any(
            search.id not in ledger.tickets and search.id not in ledger.holds for search in waiting
        )
