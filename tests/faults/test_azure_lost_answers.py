"""A Table service whose answers are lost: each write happens once, whole, and its writer knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Thread

import pytest
from azure_stage import DONE, NOT_DONE, SHORT, WRITE, Stage

from blastyard.domain.errors import NotFound, Unavailable
from blastyard.domain.job import State
from blastyard.domain.search import Event, Search
from blastyard.store.azure_tables import entity, key
from blastyard.store.azure_tables.searches import AzureTablesSearchStore
from blastyard.store.port import Stale
from blastyard.testing import sample
from blastyard.testing.proxy_fault import Delay, Fault, LostAnswer, LostRequest, Rule

ENDED = Event(State.CANCELLED, reason="on request")


def begun(tables: Stage) -> AzureTablesSearchStore:
    """A client of a table with one database and one queued search, which has a key."""
    store = tables.open()
    store.add_database(sample.database())
    store.add(sample.search(key="first", tags=("a",)), sample.QUEUED)
    return store


def add(store: AzureTablesSearchStore) -> None:
    added = store.add(sample.search(key="k", tags=("t",)), sample.QUEUED)
    assert store.by_key("ada", "k") == added


def update(store: AzureTablesSearchStore) -> None:
    first = store.live()[0]
    written = store.update(replace(first, state=State.RUNNING, runner="r2"), Event(State.RUNNING))
    assert written.version == first.version + 1
    assert store.get(first.id) == written
    assert len(store.events(first.id)) == 2


def update_without_event(store: AzureTablesSearchStore) -> None:
    first = store.live()[0]
    assert store.update(replace(first, phase="parked")) == store.get(first.id)


def end(store: AzureTablesSearchStore) -> None:
    first = store.live()[0]
    store.update(replace(first, state=State.CANCELLED), ENDED)
    assert store.live() == []
    assert store.counts()[State.CANCELLED] == 1


def delete(store: AzureTablesSearchStore) -> None:
    first = store.live()[0]
    store.update(replace(first, state=State.CANCELLED), ENDED)
    store.delete(first.id)
    with pytest.raises(NotFound):
        store.get(first.id)
    assert store.by_key("ada", "first") is None


def add_database(store: AzureTablesSearchStore) -> None:
    store.add_database(sample.database("nt"))
    assert store.get_database("nt").title == "Swiss-Prot"


def update_database(store: AzureTablesSearchStore) -> None:
    store.update_database(replace(sample.database(), title="another"))
    assert store.get_database(sample.DATABASE).title == "another"


def remove_database(store: AzureTablesSearchStore) -> None:
    store.add_database(sample.database("nt"))
    store.remove_database("nt")
    assert [one.name for one in store.list_databases()] == [sample.DATABASE]


CHANGES: dict[str, tuple[Callable[[AzureTablesSearchStore], None], int]] = {
    # what is done, and which of its writes goes wrong
    "add": (add, 0),
    "update": (update, 0),
    "update without event": (update_without_event, 0),
    "end": (end, 0),
    "delete": (delete, 1),
    "add database": (add_database, 0),
    "update database": (update_database, 0),
    "remove database": (remove_database, 1),
}


EACH = [(change, fault) for change in CHANGES for fault in (LostAnswer(), LostRequest())]
ALL_FAULTS = [("update", fault) for fault in (*DONE, *NOT_DONE)]


def short(value: object) -> str:
    """The beginning of a fault's or a change's name."""
    return str(value)[:36]


@pytest.mark.parametrize(("change", "fault"), [*EACH, *ALL_FAULTS], ids=short)
def test_a_write_that_is_not_answered_happens_once_and_succeeds(
    tables: Stage, change: str, fault: Fault
) -> None:
    store = begun(tables)
    act, skip = CHANGES[change]
    rule = tables.proxy.plan.add(Rule(fault, *WRITE, skip=skip))

    act(store)

    assert rule.hits == 1
    tables.audit()


NEVER = [*((change, LostAnswer()) for change in CHANGES), ("add", LostRequest())]


@pytest.mark.parametrize(("change", "fault"), NEVER, ids=short)
def test_a_write_that_is_never_answered_raises_and_leaves_nothing_half_done(
    tables: Stage, change: str, fault: Fault
) -> None:
    begun(tables)
    impatient = tables.open(patience=SHORT)
    act, skip = CHANGES[change]
    tables.proxy.plan.add(Rule(fault, *WRITE, skip=skip, times=None))

    with pytest.raises(Unavailable) as raised:
        act(impatient)

    assert raised.value.code == "store_unavailable"
    tables.proxy.plan.clear()
    tables.audit()


def test_adding_again_after_no_answer_finds_what_was_added(tables: Stage) -> None:
    store, impatient = begun(tables), tables.open(patience=SHORT)
    new = sample.search(key="k")
    tables.proxy.plan.add(Rule(LostAnswer(), *WRITE, times=None))
    with pytest.raises(Unavailable):
        impatient.add(new, sample.QUEUED)
    tables.proxy.plan.clear()

    assert impatient.add(new, sample.QUEUED).id == new.id
    assert store.add(sample.search(key="k"), sample.QUEUED).id == new.id
    assert len(tables.audit()) == 2


def meanwhile(tables: Stage, act: Callable[[], object], between: Callable[[], object]) -> None:
    """``act`` writes and is not answered; ``between`` happens before it writes once more."""
    tables.proxy.plan.add(Rule(LostAnswer(), *WRITE))
    again = tables.proxy.plan.add(Rule(Delay(), *WRITE))
    failures: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=run)
    thread.start()
    again.wait()
    between()
    again.release()
    thread.join()
    if failures:
        raise failures[0]


def test_a_writer_knows_its_own_update_also_when_others_have_written_since(tables: Stage) -> None:
    store, other = begun(tables), tables.open(direct=True)
    first = store.live()[0]
    written: list[Search] = []

    def follow() -> None:
        for phase in ("second", "third"):
            other.update(replace(other.get(first.id), phase=phase), Event(State.QUEUED))

    meanwhile(
        tables,
        lambda: written.append(store.update(replace(first, phase="first"), Event(State.QUEUED))),
        follow,
    )

    assert (written[0].phase, written[0].version) == ("first", 2)
    assert (store.get(first.id).phase, store.get(first.id).version) == ("third", 4)
    assert len(store.events(first.id)) == 4
    tables.audit()


def test_a_registration_that_followed_a_removal_is_not_removed_in_its_place(tables: Stage) -> None:
    store, other = begun(tables), tables.open(direct=True)
    store.add_database(sample.database("nt"))

    meanwhile(
        tables,
        lambda: store.remove_database("nt"),
        lambda: other.add_database(replace(sample.database("nt"), title="newer")),
    )

    assert store.get_database("nt").title == "newer"


def test_a_search_that_followed_a_deletion_is_not_deleted_in_its_place(tables: Stage) -> None:
    store, other = begun(tables), tables.open(direct=True)
    first = store.live()[0]
    store.update(replace(first, state=State.CANCELLED), ENDED)

    meanwhile(
        tables,
        lambda: store.delete(first.id),
        lambda: other.add(replace(first, state=State.QUEUED), sample.QUEUED),
    )

    assert store.get(first.id).sequence > first.sequence
    tables.audit()


def test_a_write_that_failed_for_another_reason_is_no_success(tables: Stage) -> None:
    store, other = begun(tables), tables.open(direct=True)
    first = store.live()[0]
    tables.proxy.plan.add(Rule(LostRequest(), *WRITE))
    again = tables.proxy.plan.add(Rule(Delay(), *WRITE))
    outcomes: list[object] = []

    def run() -> None:
        try:
            outcomes.append(store.update(replace(first, phase="mine"), Event(State.QUEUED)))
        except Stale as error:
            outcomes.append(error)

    thread = Thread(target=run)
    thread.start()
    again.wait()
    other.update(replace(other.get(first.id), phase="theirs"))
    again.release()
    thread.join()

    assert isinstance(outcomes[0], Stale)
    assert store.get(first.id).phase == "theirs"
    assert len(store.events(first.id)) == 1
    tables.audit()


def ended_with_history(tables: Stage, events: int) -> Search:
    """A search with so many events, and its end."""
    store = begun(tables)
    ended = store.update(replace(store.live()[0], state=State.CANCELLED), ENDED)
    columns = entity.of_event(Event(State.QUEUED, reason="waited"))
    tables.seed((key.event(ended.sequence, 3 + number), columns) for number in range(events - 2))
    return ended


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_long_history_is_deleted_whole_although_its_deleter_died(
    tables: Stage, lost: int
) -> None:
    search = ended_with_history(tables, 195)
    dying = tables.open(patience=SHORT)
    tables.proxy.plan.add(Rule(LostRequest(), *WRITE, skip=lost, times=None))
    with pytest.raises(Unavailable):
        dying.delete(search.id)
    tables.proxy.plan.clear()

    heir = tables.open()  # whoever opens the table next

    if lost == 0:
        assert heir.get(search.id) == search
        heir.delete(search.id)
    assert tables.keys("e.") == []
    assert tables.audit() == []


def test_a_long_history_is_deleted_whole_when_the_first_answer_is_lost(tables: Stage) -> None:
    search = ended_with_history(tables, 95)
    store = tables.open()
    tables.proxy.plan.add(Rule(LostAnswer(), *WRITE))

    store.delete(search.id)

    assert tables.keys("e.") == []
    assert tables.audit() == []
