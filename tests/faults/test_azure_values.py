"""Values that a table does not take as they are: large ones, and ones made to do harm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from azure_stage import WRITE, Stage

from blastyard.domain.errors import CallerMistake, Failure, NotFound
from blastyard.domain.job import State
from blastyard.domain.search import Event, Search
from blastyard.store.azure_tables import entity
from blastyard.store.port import Filter
from blastyard.testing import sample

PATH = "/data/nt"
HOSTILE = (
    "o'hara",
    "' or RowKey ge '",
    "a/b\\c#d?e%27f%",
    "Größe \U0001f9ec",
    "\x00\x01\r\n\t\x7f\x85",
    "",
    " ",
    "..",
    "A",
    "a",
    "a&b=c+d~e!f",
    "--changeset_x\r\nPUT http://127.0.0.1/a/b",
    "x" * 3000,
)
HUGE = entity.ROOM + 1
CHUNKS = 5 * entity.CHUNK


def test_users_keys_tags_and_runners_of_any_kind_are_told_apart(tables: Stage) -> None:
    store = tables.open()
    added = []
    for text in HOSTILE:
        new = sample.search(user=text, key=text, tags=(text,), title=text, database=PATH)
        added.append(store.add(replace(new, runner=text), sample.QUEUED))

    for text, mine in zip(HOSTILE, added, strict=True):
        assert store.get(mine.id) == mine
        assert store.by_key(text, text) == mine
        assert store.list(Filter(user=text)) == [mine]
        assert store.list(Filter(tag=text)) == [mine]
        assert store.live(text) == [mine]
        assert store.waiting(text, per_user=1) == [mine]
    assert store.runners() == set(HOSTILE)
    assert tables.audit() == sorted(added, key=lambda one: one.id)


def test_databases_of_any_name_are_told_apart(tables: Stage) -> None:
    store = tables.open()
    names = [text.replace("/", "|") for text in HOSTILE]
    for name in names:
        store.add_database(sample.database(name))
        store.add(sample.search(database=name), sample.QUEUED)

    for name in names:
        assert store.get_database(name).name == name
        assert [one.request.database for one in store.list(Filter(database=name))] == [name]
    assert [one.name for one in store.list_databases()] == sorted(names)
    tables.audit()


def test_ids_of_any_kind_are_found_by_their_beginning(tables: Stage) -> None:
    store = tables.open()
    ids = [text for text in HOSTILE if text and len(text) < 100]
    for search_id in ids:
        store.add(replace(sample.search(database=PATH), id=search_id), sample.QUEUED)

    for search_id in ids:
        assert store.get(search_id).id == search_id
    assert store.resolve("Größe \U0001f9ec") == "Größe \U0001f9ec"
    assert store.resolve("' or") == "' or RowKey ge '"
    for unknown in ("", "x" * 3000, "Größe \U0001f9ecx"):
        with pytest.raises(NotFound):
            store.get(unknown)
    assert [one.id for one in store.list(Filter(ids=(*ids, "", "x" * 3000)))] == ids[::-1]
    tables.audit()


@pytest.mark.parametrize("search_id", ["", "x" * 501, "/" * 72])
def test_an_id_that_makes_no_key_is_refused(tables: Stage, search_id: str) -> None:
    with pytest.raises(CallerMistake, match="id") as refused:
        tables.open().add(replace(sample.search(database=PATH), id=search_id), sample.QUEUED)

    assert refused.value.code == "request_invalid"


def test_large_values_are_kept_whole(tables: Stage) -> None:
    store = tables.open()
    new = sample.search(database=PATH, title="\U0001f9ec" * 9000, options=("-x",) * 5000)
    notices = tuple(f"line {n}: repaired" for n in range(2000))
    new = replace(new, query=replace(new.query, notices=notices))
    added = store.add(new, replace(sample.QUEUED, reason="r" * CHUNKS))
    failure = Failure("blast_failed", "é\n" * (CHUNKS // 8), "n" * CHUNKS)

    failed = store.update(
        replace(added, state=State.FAILED, error=failure), Event(State.FAILED, reason="w" * CHUNKS)
    )

    assert added.request.title == new.request.title
    assert store.get(new.id) == failed
    assert store.list(Filter()) == [failed]
    assert [len(event.reason) for event in store.events(new.id)] == [CHUNKS, CHUNKS]
    tables.audit()


def with_notices(text: str) -> Search:
    plain = sample.search(database=PATH)
    return replace(plain, query=replace(plain.query, notices=(text,)))


TOO_LARGE: dict[str, Callable[[], Search]] = {
    "request.title": lambda: sample.search(database=PATH, title="t" * HUGE),
    "request.options": lambda: sample.search(database=PATH, options=("-o", "o" * HUGE)),
    "request.tags": lambda: sample.search(database=PATH, tags=("t" * HUGE,)),
    "request.key": lambda: sample.search(database=PATH, key="k" * HUGE),
    "query.notices": lambda: with_notices("n" * HUGE),
}


@pytest.mark.parametrize("part", TOO_LARGE)
def test_a_search_that_cannot_fit_is_refused_by_the_name_of_what_is_too_large(
    tables: Stage, part: str
) -> None:
    store = tables.open()
    tables.proxy.log.clear()

    with pytest.raises(CallerMistake, match=f"its {part} takes") as refused:
        store.add(TOO_LARGE[part](), sample.QUEUED)

    assert refused.value.code == "request_invalid"
    assert part in refused.value.next_step
    assert tables.proxy.log.records(*WRITE) == []
    assert tables.audit() == []


def test_what_an_update_cannot_fit_is_refused_and_changes_nothing(tables: Stage) -> None:
    store = tables.open()
    added = store.add(sample.search(database=PATH), sample.QUEUED)
    failed = replace(added, state=State.FAILED, error=Failure("killed", "m" * HUGE))

    with pytest.raises(CallerMistake, match="its error takes"):
        store.update(failed, Event(State.FAILED))
    with pytest.raises(CallerMistake, match=r"event.* its reason takes"):
        store.update(added, Event(State.QUEUED, reason="r" * HUGE))
    tags = tuple(f"t{number}" for number in range(101))
    with pytest.raises(CallerMistake, match="100 tags"):
        store.add(sample.search(database=PATH, tags=tags), sample.QUEUED)

    assert store.get(added.id) == added
    assert tables.audit() == [added]


def test_a_search_as_large_as_may_be_added_still_has_room_for_its_life(tables: Stage) -> None:
    store = tables.open()
    size = entity.NEW_ROOM - 2000
    added = store.add(sample.search(database=PATH, title="t" * size), sample.QUEUED)

    failed = replace(added, state=State.FAILED, error=Failure("killed", "m" * size))

    assert store.update(failed, Event(State.FAILED)) == store.get(added.id)
    tables.audit()


def test_a_database_of_many_volumes_fits_and_one_of_too_many_is_refused(tables: Stage) -> None:
    store = tables.open()
    files = {f"nt.{number:04}.nsq": 10**9 for number in range(5000)}
    store.add_database(replace(sample.database("nt"), files=files))

    assert store.get_database("nt").files == files
    with pytest.raises(CallerMistake, match="its files takes") as refused:
        store.add_database(replace(sample.database("xx"), files={"x" * HUGE: 1}))
    assert refused.value.code == "database_invalid"
