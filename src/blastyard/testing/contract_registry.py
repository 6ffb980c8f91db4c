"""What every ``SearchStore`` must do with databases: subclass, and give ``open_store``.

See :mod:`blastyard.testing.contract_searches`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from blastyard.domain.errors import CallerMistake, Conflict, NotFound
from blastyard.domain.job import State
from blastyard.domain.search import DatabaseState
from blastyard.store.port import Filter, SearchStore
from blastyard.testing import sample


class RegistryContract:
    """The obligations of :mod:`blastyard.store.port` towards databases, as tests."""

    @pytest.fixture
    def open_store(self) -> Callable[[], SearchStore]:
        """Another client of the store under test."""
        raise NotImplementedError

    @pytest.fixture
    def empty(self, open_store: Callable[[], SearchStore]) -> SearchStore:
        """A client of the store under test."""
        return open_store()

    def test_a_registered_database_is_read_back_whole(
        self, empty: SearchStore, open_store: Callable[[], SearchStore]
    ) -> None:
        before = empty.now()
        empty.add_database(sample.database())

        found = open_store().get_database(sample.DATABASE)

        assert found == replace(sample.database(), created_at=found.created_at)
        assert before <= found.created_at <= empty.now()

    def test_a_name_is_registered_once(self, empty: SearchStore) -> None:
        empty.add_database(sample.database())
        with pytest.raises(Conflict) as refused:
            empty.add_database(replace(sample.database(), title="another"))

        assert refused.value.code == "database_exists"
        assert empty.get_database(sample.DATABASE).title == sample.database().title

    def test_an_update_overwrites_the_registration(self, empty: SearchStore) -> None:
        empty.add_database(sample.database())
        found = empty.get_database(sample.DATABASE)
        wanted = replace(found, state=DatabaseState.READY, sequences=5, files={})

        empty.update_database(wanted)

        assert empty.get_database(sample.DATABASE) == wanted

    def test_databases_are_listed_by_name(self, empty: SearchStore) -> None:
        assert empty.list_databases() == []
        for name in ("nt", "Nt", "a", "ü"):
            empty.add_database(sample.database(name))

        assert [one.name for one in empty.list_databases()] == ["Nt", "a", "nt", "ü"]

    def test_an_unknown_database_is_refused_with_the_nearest_names(
        self, empty: SearchStore
    ) -> None:
        empty.add_database(sample.database())
        calls: list[Callable[[], object]] = [
            lambda: empty.get_database("swisprot"),
            lambda: empty.remove_database("swisprot"),
            lambda: empty.update_database(sample.database("swisprot")),
            lambda: empty.add(sample.search(database="swisprot"), sample.QUEUED),
        ]
        for call in calls:
            with pytest.raises(NotFound, match="swisprot") as refused:
                call()
            assert refused.value.code == "database_unknown"
            assert sample.DATABASE in refused.value.next_step
        assert empty.list(Filter()) == []

    def test_a_database_given_as_a_path_needs_no_registration(self, empty: SearchStore) -> None:
        empty.add(sample.search(database="/data/nt"), sample.QUEUED)

        assert len(empty.list(Filter())) == 1

    def test_a_database_can_be_removed_once_no_search_needs_it(self, empty: SearchStore) -> None:
        empty.add_database(sample.database())
        added = empty.add(sample.search(), sample.QUEUED)
        with pytest.raises(Conflict, match=added.id) as refused:
            empty.remove_database(sample.DATABASE)
        assert refused.value.code == "database_in_use"
        empty.update(replace(added, state=State.CANCELLED))

        empty.remove_database(sample.DATABASE)

        assert empty.list_databases() == []
        assert empty.get(added.id).request.database == sample.DATABASE

    def test_no_search_slips_onto_a_database_while_it_is_removed(
        self, open_store: Callable[[], SearchStore]
    ) -> None:
        adder, remover = open_store(), open_store()
        for round_number in range(20):
            name = f"db{round_number}"
            adder.add_database(sample.database(name))
            barrier = Barrier(2)
            with ThreadPoolExecutor(2) as pool:
                added = pool.submit(_added, adder, name, barrier)
                removed = pool.submit(_removed, remover, name, barrier)
                assert added.result() is not removed.result()


def _added(store: SearchStore, name: str, barrier: Barrier) -> bool:
    barrier.wait()
    return _succeeds(lambda: store.add(sample.search(database=name), sample.QUEUED))


def _removed(store: SearchStore, name: str, barrier: Barrier) -> bool:
    barrier.wait()
    return _succeeds(lambda: store.remove_database(name))


def _succeeds(call: Callable[[], object]) -> bool:
    try:
        call()
    except CallerMistake:
        return False
    return True
