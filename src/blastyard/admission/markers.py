"""Bringing the markers of a namespace in line with its ledger."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Protocol

import msgspec

from blastyard.admission.census import CensusReader, MarkerKind
from blastyard.admission.hold import Submission
from blastyard.admission.ledger import Hold, Ledger, fence_text
from blastyard.admission.marking import (
    Extend,
    Plan,
    Put,
    Take,
    apps_of,
    mark,
    marker,
    plan,
    unmarked,
)
from blastyard.admission.record import Record
from blastyard.domain.errors import Unavailable


class Markers(Protocol):
    """Makes and removes markers. All of it may be asked again; raises ``Unavailable``."""

    def put(self, put: Put, *, holder: str = "", fence: str = "") -> None:
        """Have these Jobs up, in order; those that are there stay. ``holder`` and ``fence`` say
        by whose right they are made, for a cluster that enforces it."""
        ...

    def extend(self, extend: Extend) -> None:
        """Move the end of a marker's Job; no error when it is gone."""
        ...

    def take(self, take: Take) -> None:
        """Remove a marker's Job; no error when it is gone, or another one by now."""
        ...

    def drop(self, search: str, kind: MarkerKind | None = None) -> None:
        """Remove the markers of a search, those of one kind or all."""
        ...

    def drop_known(self, search: str) -> None:
        """Remove those markers of a search that were seen; a sweep takes what is left."""
        ...

    def delete_search(self, name: str) -> None:
        """Remove everything in the cluster that carries this id."""
        ...


class NoMarkers:
    """Where nothing foreign looks on, nothing has to be shown to it."""

    def put(self, put: Put, *, holder: str = "", fence: str = "") -> None:
        """See the port, as for all below."""

    def extend(self, extend: Extend) -> None: ...

    def take(self, take: Take) -> None: ...

    def drop(self, search: str, kind: MarkerKind | None = None) -> None: ...

    def drop_known(self, search: str) -> None: ...

    def delete_search(self, name: str) -> None: ...


class Marking:
    """Asserts, extends and sweeps the markers of all holds, whoever's they are."""

    def __init__(self, markers: Markers, census: CensusReader, record: Record) -> None:
        self.markers = markers
        self._census = census
        self._record = record

    def stand_in(self, search: str, hold: Hold, *, holder: str, fence: str) -> None:
        """Have the stand-in of one hold up, so that peers count it from now on."""
        kind = MarkerKind.STAND_IN
        put = Put(marker(search, hold, kind), apps_of(kind))
        self.markers.put(put, holder=holder, fence=fence)

    def companions(self, search: str, hold: Hold, made: Submission) -> None:
        """Have companions up for all that a command submitted, so that peers go on counting it."""
        kind = MarkerKind.COMPANION
        names = {search: made.alias, **dict.fromkeys(made.others)}
        for name, alias in names.items():
            submitted = msgspec.structs.replace(hold, alias=alias, watched=True)
            self.markers.put(Put(marker(name, submitted, kind), apps_of(kind)))

    def drop_stand_in(self, search: str) -> None:
        """Its companion is up; what fails here is swept later."""
        with suppress(Unavailable):
            self.markers.drop(search, MarkerKind.STAND_IN)

    def assert_all(self, *, holder: str = "") -> None:
        """Have the markers of every hold up: whoever had to put them may be gone."""
        found, fence = self._plan()
        self._carry_out(found, holder, fence, take=False)

    def sweep(self) -> Plan:
        """Assert, extend, remove what stands for nothing; who was cancelled by a peer."""
        found, fence = self._plan()
        self._carry_out(found, "", fence, take=True)
        ledger, now = self._record.ledger()
        if ledger is None:
            return found
        timings = self._record.timings
        names = unmarked(ledger, found.up & ledger.holds.keys(), now, timings)
        if names:
            self._record.change_ledger(lambda ledger, now: mark(ledger, names, now))
        return replace(found, cancelled=self._certainly_cancelled(found, ledger))

    def _certainly_cancelled(self, found: Plan, ledger: Ledger) -> frozenset[str]:
        """A marker that went up after the list was taken is missing in it. So whoever seems to be
        cancelled is looked for again, in a list that is later than what the ledger says of it."""
        if not found.cancelled:
            return frozenset()
        census, now = self._census.read(), self._record.ledger()[1]
        return found.cancelled & plan(ledger, census, now, self._record.timings).cancelled

    def is_needed(self) -> bool:
        """Whether a sweep would do anything, as far as a glance tells."""
        census = self._census.glance()
        ledger, now = self._record.ledger(glance=True)
        if ledger is None:
            return False
        found = plan(ledger, census, now, self._record.timings)
        waits = unmarked(ledger, found.up, now, self._record.timings)
        return bool(found.put or found.extend or found.take or found.cancelled or waits)

    def _plan(self) -> tuple[Plan, str]:
        census = self._census.read()  # first: a marker of a hold that is made now is in neither
        ledger, now = self._record.ledger()
        if ledger is None:
            return Plan(), ""
        return plan(ledger, census, now, self._record.timings), fence_text(ledger)

    def _carry_out(self, found: Plan, holder: str, fence: str, *, take: bool) -> None:
        for put in found.put:
            self.markers.put(put, holder=holder, fence=fence)
        for extend in found.extend:
            self.markers.extend(extend)
        if take:
            for each in found.take:
                self.markers.take(each)
