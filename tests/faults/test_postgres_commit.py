"""The line to the server is cut around a commit: the caller cannot tell, and asks again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from postgres_stage import SOON, Line, documents, line_to

from blastyard.admission.port import LEDGER
from blastyard.domain.errors import Unavailable
from blastyard.domain.job import State
from blastyard.domain.search import Event
from blastyard.store.port import Filter, Stale
from blastyard.store.sql import open_postgres_store
from blastyard.testing import sample


@pytest.fixture
def line(postgres_url: str) -> Iterator[tuple[Line, str]]:
    """A line to an empty database, and its URL."""
    with line_to(postgres_url) as made:
        yield made


@pytest.mark.parametrize("heard", [True, False])
def test_a_search_whose_acceptance_was_not_heard_is_accepted_once(
    line: tuple[Line, str], heard: bool
) -> None:
    cutter, url = line
    with closing(open_postgres_store(url)) as store:
        new = sample.search(key="k", database="/data/nt", tags=("a",))
        cutter.cut_at(b"COMMIT", heard=heard)
        with pytest.raises(Unavailable, match="ended the connection"):
            store.add(new, sample.QUEUED)
        assert (len(store.list(Filter())) == 1) is heard

        again = store.add(new, sample.QUEUED)
        other = store.add(sample.search(key="k", database="/data/nt"), sample.QUEUED)

        assert other == again == store.get(new.id)
        assert len(store.events(new.id)) == 1
        assert cutter.cuts == 1


@pytest.mark.parametrize("heard", [True, False])
def test_a_step_whose_commit_was_not_heard_was_taken_whole_or_not_at_all(
    line: tuple[Line, str], heard: bool
) -> None:
    cutter, url = line
    with closing(open_postgres_store(url)) as store:
        added = store.add(sample.search(database="/data/nt"), sample.QUEUED)
        step = replace(added, state=State.ADMITTING, attempt=1)
        cutter.cut_at(b"COMMIT", heard=heard)
        with pytest.raises(Unavailable):
            store.update(step, Event(State.ADMITTING))

        found = store.get(added.id)

        assert (found.attempt, len(store.events(added.id))) == ((1, 2) if heard else (0, 1))
        if heard:
            with pytest.raises(Stale):
                store.update(step)
        else:
            assert store.update(step).attempt == 1


@pytest.mark.parametrize("heard", [True, False])
def test_a_swap_whose_answer_was_lost_happened_once_or_not_at_all(
    line: tuple[Line, str], heard: bool
) -> None:
    cutter, url = line
    with closing(documents(url)) as store:
        first = store.swap(LEDGER, 0, b"first")
        assert first is not None
        watch = store.watch()
        cutter.cut_at(b"UPDATE documents", heard=heard)
        with pytest.raises(Unavailable):
            store.swap(LEDGER, first.version, b"second")

        assert watch.wait(SOON)  # it may have happened: everybody here looks
        found = store.read(LEDGER)
        assert found.body == (b"second" if heard else b"first")
        again = store.swap(LEDGER, first.version, b"second")
        assert (again is None) is heard
        assert cutter.cuts == 1


def test_a_question_whose_answer_was_lost_is_asked_again_unnoticed(
    line: tuple[Line, str],
) -> None:
    cutter, url = line
    with closing(documents(url)) as store:
        store.swap(LEDGER, 0, b"x")
        cutter.cut_at(b"LEFT JOIN documents", heard=True)

        assert store.read(LEDGER).body == b"x"
        assert cutter.cuts == 1
