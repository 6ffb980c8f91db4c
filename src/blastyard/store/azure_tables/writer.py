"""Adding, changing and deleting searches: one transaction each, and what to do when it fails.

The service says that a transaction failed, not reliably why; and after a lost answer it may have
been carried out all the same. So whoever hears of a failure reads again and decides by what stands
there: each version of a search bears the mark of the write that made it.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import replace
from threading import Lock
from typing import Final

from blastyard.domain.errors import CallerMistake, Unavailable
from blastyard.domain.search import Event, Search
from blastyard.store import rule
from blastyard.store.azure_tables import entity, key, table
from blastyard.store.azure_tables.deletion import Deletion
from blastyard.store.azure_tables.entity import Stored
from blastyard.store.azure_tables.registry import Registry
from blastyard.store.azure_tables.table import Committed, Row, Step, Table, Values
from blastyard.store.azure_tables.tally import Tally, change
from blastyard.store.port import Stale

ATTEMPTS: Final = 20
"""How often a write is tried anew because something else was written meanwhile."""
_SEEN: Final = 4096
"""Searches whose last version a client remembers, so as not to read it before it writes."""


class Writer:
    """Reads and writes single searches of one table."""

    def __init__(self, table: Table, tally: Tally, registry: Registry) -> None:
        self._table = table
        self._tally = tally
        self._registry = registry
        self._deletion = Deletion(table, tally)
        self._seen = _Seen()

    def read(self, search_id: str) -> Search | None:
        """One search, by its id."""
        found = self._read(search_id)
        return None if found is None else found[0]

    def claimed(self, user: str, name: str) -> Search | None:
        """The search of this user with this idempotency key."""
        row = self._table.get(key.claim(user, name))
        return None if row is None else self.read(row.values["Id"])

    def go_on(self) -> None:
        """Carry on with deletions that came to no end."""
        self._deletion.go_on()

    # -- adding --------------------------------------------------------------------------------

    def add(self, search: Search, event: Event) -> Search:
        """See the port."""
        if not key.is_possible_id(search.id):
            message = f"An id of {len(search.id)} characters cannot be stored in Azure Tables."
            raise CallerMistake("request_invalid", message, "Choose a shorter id.")
        for _ in range(ATTEMPTS):
            if added := self._added(search, event):
                return added
            if known := self._same(search):
                return known
            if rule.is_registered_name(search.request.database):
                self._registry.require(search.request.database)
            # another client took the sequence, or what was in the way has just gone
        raise self._never_quiet(search.id)

    def _added(self, search: Search, event: Event) -> Search | None:
        sequence, at = self._table.clock.take_sequence()
        new = replace(search, sequence=sequence, version=1, created_at=at)
        write = secrets.token_hex(8)
        columns = entity.of_search(new, (write,), entity.NEW_ROOM)
        request = new.request
        steps = [
            table.insert(key.by_id(new.id), columns),
            table.insert(key.by_arrival(sequence), columns),
            table.insert(key.by_user(key.digest(request.user), sequence), columns),
            table.insert(key.event(sequence, 1), entity.of_event(replace(event, at=at))),
        ]
        if columns["Live"]:
            steps.append(table.insert(columns["Live"], columns))
        if request.key is not None:
            steps.append(table.insert(key.claim(request.user, request.key), {"Id": new.id}))
        if rule.is_registered_name(request.database):
            steps.append(self._registry.used(request.database, write))
        outcome = self._tally.commit(steps, change(None, new.state))
        if not isinstance(outcome, Committed):
            return None
        self._seen.note(entity.stored(Row("", outcome.etags[0], columns), new))
        return new

    def _same(self, search: Search) -> Search | None:
        """What is stored under the id of a new search, or under its key."""
        request = search.request
        found = self.read(search.id)
        if found is None and request.key is not None:
            found = self.claimed(request.user, request.key)
        return found

    # -- changing ------------------------------------------------------------------------------

    def update(self, search: Search, event: Event | None) -> Search:
        """See the port."""
        written = replace(search, version=search.version + 1)
        write, doubtful = secrets.token_hex(8), False
        before = self._seen.at(search)
        for _ in range(ATTEMPTS):
            before = before or self._need(search.id)[1]
            if doubtful and before.was_made_by(write, written.version):
                return written
            if (before.sequence, before.version) != (search.sequence, search.version):
                raise Stale(search.id)
            columns = entity.of_search(written, (*before.writes, write))
            steps = self._over(before, written, columns, event)
            outcome = self._tally.commit(steps, change(before.state, written.state))
            if isinstance(outcome, Committed):
                self._seen.note(entity.stored(Row("", outcome.etags[0], columns), written))
                return written
            before, doubtful = None, doubtful or outcome.doubtful
        raise self._never_quiet(search.id)

    def _over(
        self, before: Stored, search: Search, columns: Values, event: Event | None
    ) -> list[Step]:
        steps = [
            table.replace(key.by_id(search.id), columns, before.etag),
            table.put(key.by_arrival(search.sequence), columns),
            table.put(key.by_user(before.user, search.sequence), columns),
        ]
        if columns["Live"]:
            steps.append(table.put(columns["Live"], columns))
        if before.live and before.live != columns["Live"]:
            steps.append(table.remove(before.live))
        if event is not None:
            stamped = replace(event, at=self._table.clock.now())
            where = key.event(search.sequence, search.version)
            steps.append(table.insert(where, entity.of_event(stamped)))
        return steps

    # -- deleting ------------------------------------------------------------------------------

    def delete(self, search_id: str) -> None:
        """See the port."""
        first, doubtful = self._need(search_id)[0], False
        for _ in range(ATTEMPTS):
            found = self._read(search_id)
            if doubtful and (found is None or found[0].sequence != first.sequence):
                return self.go_on()  # it went when the answer was lost
            if found is None:
                raise rule.unknown_search(search_id)
            rule.refuse_live(found[0])
            outcome = self._deletion(*found)
            if isinstance(outcome, Committed):
                return None
            doubtful = doubtful or outcome.doubtful
        raise self._never_quiet(search_id)

    # -- rows ----------------------------------------------------------------------------------

    def _need(self, search_id: str) -> tuple[Search, Stored]:
        found = self._read(search_id)
        if found is None:
            raise rule.unknown_search(search_id)
        return found

    def _read(self, search_id: str) -> tuple[Search, Stored] | None:
        if not key.is_possible_id(search_id):
            return None
        row = self._table.get(key.by_id(search_id))
        if row is None:
            return None
        search = entity.search(row)
        stored = entity.stored(row, search)
        self._seen.note(stored)
        return search, stored

    def _never_quiet(self, search_id: str) -> Unavailable:
        message = f"{self._table.place}: search {search_id} is being written all the time."
        return Unavailable("store_unavailable", message, "Try again.")


class _Seen:
    """The last versions this client has read or written, so that most updates need not read."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stored: OrderedDict[str, Stored] = OrderedDict()

    def note(self, stored: Stored) -> None:
        with self._lock:
            self._stored[stored.id] = stored
            self._stored.move_to_end(stored.id)
            if len(self._stored) > _SEEN:
                self._stored.popitem(last=False)

    def at(self, search: Search) -> Stored | None:
        """What is stored, if this very version of the search was the last that was seen."""
        stored = self._stored.get(search.id)
        if stored is None or (stored.sequence, stored.version) != (search.sequence, search.version):
            return None
        return stored
