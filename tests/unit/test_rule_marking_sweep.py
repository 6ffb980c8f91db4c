"""Markers are brought in line with the ledger, and stand while their searches live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from admission_stage import NOW, OTHER, TIMINGS, new_ledger, seconds
from shared_stage import census, held, marks, merging, watched

from blastyard.admission.census import Census, MarkerKind, NothingForeign, SeenJob
from blastyard.admission.ledger import HoldState, Ledger, encode
from blastyard.admission.markers import Marking, NoMarkers
from blastyard.admission.marking import Extend, Plan, Put, Take, kind_needed, plan
from blastyard.admission.memory import MemoryDocumentStore
from blastyard.admission.port import LEDGER
from blastyard.admission.record import Record

DAY = timedelta(days=1)


def planned(ledger: Ledger, *jobs: SeenJob, now: datetime = NOW) -> Plan:
    return plan(ledger, census(jobs), now, TIMINGS)


def up(ledger: Ledger, search: str, kind: MarkerKind = MarkerKind.STAND_IN) -> list[SeenJob]:
    return marks(search, ledger.holds[search], kind)


def reservation(search: str = "s1", **changes: object) -> Ledger:
    return held(new_ledger(), search, state=HoldState.RESERVED, **changes)


# -- list, then read -------------------------------------------------------------------------------


@dataclass
class Namespace(NothingForeign):
    """Jobs as a server lists them; ``meanwhile`` happens after they were listed."""

    jobs: list[SeenJob] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    def glance(self) -> Census:
        return census(self.jobs)

    def read(self) -> Census:
        found = census(self.jobs)
        self.meanwhile()
        return found


class Told(NoMarkers):
    """What was to be done."""

    def __init__(self) -> None:
        self.done: list[Put | Extend | Take] = []
        self.rights: list[tuple[str, str]] = []

    def put(self, put: Put, *, holder: str = "", fence: str = "") -> None:
        self.done.append(put)
        self.rights.append((holder, fence))

    def extend(self, extend: Extend) -> None:
        self.done.append(extend)

    def take(self, take: Take) -> None:
        self.done.append(take)


class Shared:
    """A namespace, its ledger, and what is done to its markers."""

    def __init__(self, ledger: Ledger, *jobs: SeenJob) -> None:
        self.documents = MemoryDocumentStore(lambda: NOW)
        self.namespace = Namespace(list(jobs))
        self.told = Told()
        record = Record(self.documents, TIMINGS, lambda: 0.0)
        self.marking = Marking(self.told, self.namespace, record)
        self.write(ledger)

    def write(self, ledger: Ledger) -> None:
        before = self.documents.read(LEDGER)
        assert self.documents.swap(LEDGER, before.version, encode(ledger)) is not None


def test_a_marker_that_is_made_while_the_sweep_looks_is_not_swept() -> None:
    """Fault B16; clause: list the Jobs first, then read the ledger."""
    new = reservation()
    shared = Shared(new_ledger(), *up(new, "s1"))
    shared.namespace.meanwhile = lambda: shared.write(new)

    assert shared.marking.sweep() == Plan()
    assert shared.told.done == []


def test_a_sweep_puts_up_extends_and_takes_down_in_that_order() -> None:
    """Clause: delete with a uid precondition."""
    ledger = held(reservation(), "s2")
    gone, short = marks("s0", ledger.holds["s1"]), up(ledger, "s2")
    short = [replace(each, deadline_seconds=3600) for each in short]
    shared = Shared(ledger, *gone, *short)

    shared.marking.sweep()

    assert [type(each) for each in shared.told.done] == [Put, Extend, Extend, Take, Take]
    takes = shared.told.done[3:]
    assert takes == [Take(each.name, each.uid) for each in gone]


def test_who_took_the_lease_puts_up_by_right_of_it_and_takes_nothing_down() -> None:
    """Clause: a stale Lease is never merely cleared."""
    ledger = reservation()
    shared = Shared(ledger, *marks("s0", ledger.holds["s1"]))

    shared.marking.assert_all(holder="blastyard-s9-1")

    assert [type(each) for each in shared.told.done] == [Put]
    assert shared.told.rights == [("blastyard-s9-1", f"{ledger.uid}/{ledger.fence}")]


def test_that_a_lasting_marker_is_up_is_written_once() -> None:
    """Fault B21."""
    parent = held(new_ledger(), "p")
    shared = Shared(parent, *up(parent, "p"))

    assert shared.marking.is_needed()
    shared.marking.sweep()

    assert not shared.marking.is_needed()
    assert b'"marked":true' in (shared.documents.read(LEDGER).body or b"")


# -- deadlines -------------------------------------------------------------------------------------


def test_a_deadline_is_moved_to_three_days_from_now_once_half_of_them_are_over() -> None:
    """Clause: extended for every hold, by any blastyard."""
    ledger = held(new_ledger(), "p", submitter="somebody-who-is-gone")
    jobs = up(ledger, "p")
    half = NOW + TIMINGS.marker / 2

    assert planned(ledger, *jobs, now=half).extend == ()
    found = planned(ledger, *jobs, now=half + seconds(1))
    seconds_long = int((half + seconds(1) + TIMINGS.marker - NOW).total_seconds())
    assert found.extend == tuple(Extend(each.name, each.uid, seconds_long) for each in jobs)
    longer = [replace(each, deadline_seconds=seconds_long) for each in jobs]
    assert planned(ledger, *longer, now=half + seconds(2)).extend == ()


@pytest.mark.parametrize(
    "ledger",
    [reservation(submitter=OTHER), watched(new_ledger(), "s1", submitter=OTHER)],
    ids=["stand-in", "companion"],
)
def test_it_does_not_matter_whose_and_of_which_kind_the_marker_is(ledger: Ledger) -> None:
    """Clause: for every hold."""
    jobs = merging("s1") if ledger.holds["s1"].watched else []
    kind = kind_needed("s1", ledger.holds["s1"], census(jobs))
    shown = up(ledger, "s1", kind)

    found = planned(ledger, *jobs, *shown, now=NOW + 2 * DAY)

    assert [each.uid for each in found.extend] == [each.uid for each in shown]


def test_what_has_no_deadline_or_has_not_begun_is_not_extended() -> None:
    ledger = held(new_ledger(), "p")
    hold = ledger.holds["p"]

    assert planned(ledger, *marks("p", hold, started_at=None), now=NOW + 9 * DAY).extend == ()
    assert planned(ledger, *marks("p", hold, stands=None), now=NOW + 9 * DAY).extend == ()


def test_a_clock_that_was_put_back_shortens_no_deadline() -> None:
    ledger = held(new_ledger(), "p")

    assert planned(ledger, *up(ledger, "p"), now=NOW - 2 * DAY).extend == ()
