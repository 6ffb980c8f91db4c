"""What every ``SearchStore`` must do: subclass, give ``open_store``, and let pytest collect.

::

    class TestMyStore(SearchStoreContract):
        @pytest.fixture
        def open_store(self): ...

``open_store()`` returns another client of one and the same store, empty at the beginning of a test.
Databases have a contract of their own, :mod:`blastyard.testing.contract_registry`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from blastyard.domain.errors import Conflict, NotFound
from blastyard.domain.job import State
from blastyard.domain.search import Event, Priority, Search
from blastyard.store.port import Filter, SearchStore, Stale
from blastyard.testing import sample

OpenStore = Callable[[], SearchStore]


class SearchStoreContract:
    """The obligations of :mod:`blastyard.store.port`, as tests."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Another client of the store under test."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, open_store: OpenStore) -> SearchStore:
        """A client of the store under test, in which :data:`sample.DATABASE` is registered."""
        store = open_store()
        store.add_database(sample.database())
        return store

    def test_an_added_search_is_numbered_stamped_and_read_back_whole(
        self, store: SearchStore, open_store: OpenStore
    ) -> None:
        last = 0
        for new in (sample.search(), sample.full_search()):
            before = store.now()
            added = store.add(new, sample.QUEUED)
            after = store.now()

            assert before <= added.created_at <= after
            assert added.sequence > last
            last = added.sequence
            assert added == replace(new, sequence=last, version=1, created_at=added.created_at)
            assert open_store().get(new.id) == added
            event = store.events(new.id)[0]
            assert event == replace(sample.QUEUED, at=added.created_at)

    def test_adding_the_same_search_again_returns_what_is_stored(self, store: SearchStore) -> None:
        new = sample.search()
        added = store.add(new, sample.QUEUED)

        assert store.add(new, sample.QUEUED) == added
        assert len(store.events(new.id)) == 1
        assert len(store.list(Filter())) == 1

    def test_a_key_names_one_search_of_one_user(self, store: SearchStore) -> None:
        mine = store.add(sample.search(key="k"), sample.QUEUED)
        theirs = store.add(sample.search(key="k", user="bob"), sample.QUEUED)

        assert store.add(sample.search(key="k", title="another"), sample.QUEUED) == mine
        assert store.by_key("ada", "k") == mine
        assert store.by_key("bob", "k") == theirs
        assert store.by_key("ada", "K") is None
        store.add(sample.search(), sample.QUEUED)
        store.add(sample.search(), sample.QUEUED)
        assert len(store.list(Filter())) == 4

    def test_one_key_in_many_threads_makes_one_search(self, open_store: OpenStore) -> None:
        shared = open_store()
        shared.add_database(sample.database())
        clients = (shared, shared, open_store(), open_store())
        barrier = Barrier(len(clients))

        def add(client: SearchStore) -> Search:
            barrier.wait()
            return client.add(sample.search(key="k"), sample.QUEUED)

        with ThreadPoolExecutor(len(clients)) as pool:
            added = list(pool.map(add, clients))

        assert len({search.id for search in added}) == 1
        assert len(shared.list(Filter())) == 1

    def test_an_update_writes_every_field_and_its_event_together(self, store: SearchStore) -> None:
        full = sample.full_search()
        added = store.add(replace(sample.search(), id=full.id, request=full.request), sample.QUEUED)
        event = Event(State.FAILED, "parked", "why", "killed", None, {"exit": "137"})
        wanted = replace(
            full, created_at=added.created_at, sequence=added.sequence, version=added.version
        )

        written = store.update(wanted, event)

        assert written == replace(wanted, version=written.version)
        assert written.version > added.version
        assert store.get(full.id) == written
        first, second = store.events(full.id)
        assert second == replace(event, at=second.at)
        assert first.at is not None
        assert second.at is not None
        assert first.at <= second.at <= store.now()

    def test_an_update_of_an_older_version_is_stale_and_leaves_no_trace(
        self, store: SearchStore
    ) -> None:
        added = store.add(sample.search(), sample.QUEUED)
        winner = store.update(replace(added, phase="parked"))

        with pytest.raises(Stale):
            store.update(replace(added, runner="thief"), Event(State.QUEUED, reason="lost"))

        assert store.get(added.id) == winner
        assert len(store.events(added.id)) == 1

    def test_an_unknown_search_is_said_to_be_unknown(self, store: SearchStore) -> None:
        nobody = sample.search()
        for call in (store.get, store.events, store.delete):
            with pytest.raises(NotFound, match=nobody.id) as refused:
                call(nobody.id)
            assert refused.value.code == "search_unknown"
        with pytest.raises(NotFound):
            store.update(nobody)

    def test_threads_that_count_attempts_together_lose_none(self, open_store: OpenStore) -> None:
        shared = open_store()
        shared.add_database(sample.database())
        added = shared.add(sample.search(), sample.QUEUED)
        clients = (shared, shared, open_store(), open_store())

        def count(client: SearchStore) -> None:
            for _ in range(25):
                _claim(client, added.id)

        with ThreadPoolExecutor(len(clients)) as pool:
            list(pool.map(count, clients))

        assert shared.get(added.id).attempt == 100
        assert len(shared.events(added.id)) == 101

    def test_a_deleted_search_is_forgotten_and_its_sequence_never_returns(
        self, store: SearchStore
    ) -> None:
        added = store.add(sample.search(key="k", tags=("t",)), sample.QUEUED)
        with pytest.raises(Conflict) as refused:
            store.delete(added.id)
        assert refused.value.code == "search_unfinished"
        store.update(replace(added, state=State.CANCELLED))

        store.delete(added.id)

        assert store.list(Filter(tag="t")) == []
        assert store.by_key("ada", "k") is None
        with pytest.raises(NotFound):
            store.get(added.id)
        again = store.add(replace(added, state=State.QUEUED), sample.QUEUED)
        assert again.sequence > added.sequence
        assert len(store.events(added.id)) == 1

    def test_the_beginning_of_an_id_finds_the_search_when_it_is_the_only_one(
        self, store: SearchStore
    ) -> None:
        for search_id in ("aaaa1111", "aaaa2222", "aaab_1"):
            store.add(replace(sample.search(), id=search_id), sample.QUEUED)

        assert store.resolve("aaaa1") == "aaaa1111"
        assert store.resolve("aaaa2222") == "aaaa2222"
        assert store.resolve("aaab_") == "aaab_1"
        for prefix in ("aaaa", "aaa", "", "bbbb", "aaaa11112", "aaaa%", "aaa_1"):
            with pytest.raises(NotFound) as refused:
                store.resolve(prefix)
            assert refused.value.code == "search_unknown"

    def test_every_filter_lists_what_a_plain_loop_finds(self, store: SearchStore) -> None:
        everything = _crowd(store)
        for seed in range(60):
            wanted = _some_filter(random.Random(seed), everything)
            assert list(store.list(wanted)) == _found(everything, wanted)

    def test_pages_follow_each_other_without_gap_or_repetition(self, store: SearchStore) -> None:
        everything = _crowd(store)
        pages: list[Search] = []
        page = store.list(Filter(limit=7))
        while page:
            pages += page
            page = store.list(Filter(limit=7, before=page[-1].sequence))

        assert pages == everything[::-1]

    def test_counts_runners_and_live_searches_are_those_of_a_plain_loop(
        self, store: SearchStore
    ) -> None:
        assert store.counts() == dict.fromkeys(State, 0)
        assert store.runners() == frozenset()
        everything = _crowd(store)
        alive = [search for search in everything if not search.state.is_terminal]

        assert store.counts() == {
            state: sum(search.state is state for search in everything) for state in State
        }
        assert store.runners() == {search.runner for search in alive}
        assert list(store.live()) == alive
        assert list(store.live(limit=3)) == alive[:3]
        for runner in ("r1", "", "nobody"):
            mine = [search for search in alive if search.runner == runner]
            assert list(store.live(runner)) == mine
            assert list(store.live(runner, limit=2)) == mine[:2]

    def test_waiting_gives_every_user_the_same_number_of_places(self, store: SearchStore) -> None:
        queued = [one for one in _crowd(store) if one.state is State.QUEUED and one.runner == "r1"]
        queued.sort(key=lambda one: (-one.request.priority.level, one.sequence))
        for places in (0, 1, 2, 100):
            chosen: list[Search] = []
            for one in queued:
                before = [other for other in chosen if other.request.user == one.request.user]
                if len(before) < places:
                    chosen.append(one)
            assert list(store.waiting("r1", per_user=places)) == chosen


def _claim(client: SearchStore, search_id: str) -> None:
    while True:
        found = client.get(search_id)
        try:
            client.update(replace(found, attempt=found.attempt + 1), Event(found.state))
        except Stale:
            continue
        return


def _crowd(store: SearchStore) -> list[Search]:
    """Sixty searches of all kinds, oldest first, some of them changed after they were added."""
    chance = random.Random(1)
    store.add_database(sample.database("nt"))
    crowd = []
    for _ in range(60):
        request = {
            "user": chance.choice(("ada", "bob", "cyd")),
            "tags": tuple(chance.sample(("x", "y", "z"), chance.randint(0, 2))),
            "database": chance.choice((sample.DATABASE, "nt")),
            "priority": chance.choice(list(Priority)),
        }
        new = replace(sample.search(**request), runner=chance.choice(("r1", "r1", "r2", "")))
        added = store.add(new, sample.QUEUED)
        state = chance.choice([State.QUEUED, State.QUEUED, *State])
        crowd.append(added if state is added.state else store.update(replace(added, state=state)))
    return crowd


def _some_filter(chance: random.Random, crowd: Sequence[Search]) -> Filter:
    ids = tuple(search.id for search in chance.sample(crowd, chance.randint(1, 9)))
    return Filter(
        states=frozenset(chance.sample(list(State), chance.choice((0, 0, 1, 3)))),
        user=chance.choice((None, "ada", "bob", "nobody")),
        tag=chance.choice((None, None, "x", "y")),
        database=chance.choice((None, None, "nt")),
        ids=chance.choice(((), (), (*ids, "unknown"))),
        before=chance.choice((None, None, crowd[29].sequence)),
        limit=chance.choice((100, 5, 1)),
    )


def _found(crowd: Sequence[Search], wanted: Filter) -> list[Search]:
    found = [
        search
        for search in reversed(crowd)
        if (not wanted.states or search.state in wanted.states)
        and (wanted.user is None or search.request.user == wanted.user)
        and (wanted.tag is None or wanted.tag in search.request.tags)
        and (wanted.database is None or search.request.database == wanted.database)
        and (not wanted.ids or search.id in wanted.ids)
        and (wanted.before is None or search.sequence < wanted.before)
    ]
    return found[: wanted.limit]
