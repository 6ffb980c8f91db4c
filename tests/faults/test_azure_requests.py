"""What a search costs in requests: the account counts, and bills, each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from azure_stage import Stage

from blastyard.domain.job import State
from blastyard.domain.search import Event, Run
from blastyard.testing import sample

LIFE = (State.ADMITTING, State.SUBMITTING, State.RUNNING, State.COLLECTING, State.COMPLETED)
"""What a search becomes after it was added, when nobody is in its way."""


def test_a_search_takes_six_requests_from_being_added_to_its_end(tables: Stage) -> None:
    store = tables.open()
    store.add_database(sample.database())
    tables.proxy.log.clear()

    search = store.add(sample.search(key="k", tags=("a", "b")), sample.QUEUED)
    for state in LIFE:
        run = Run("boot", 1, 2, 3, 4, 1) if state is State.RUNNING else search.run
        after = replace(search, state=state, attempt=1, run=run, finished_at=store.now())
        search = store.update(after, Event(state, reason="its turn"))

    assert len(tables.proxy.log.records()) == 1 + len(LIFE) == 6
    assert len(store.events(search.id)) == 6
    assert store.counts()[State.COMPLETED] == 1
    tables.audit()


def test_a_process_that_takes_a_search_over_reads_it_once(tables: Stage) -> None:
    web, worker = tables.open(), tables.open()
    added = web.add(sample.search(database="/data/nt"), sample.QUEUED)
    tables.proxy.log.clear()

    search = worker.get(added.id)
    for state in LIFE:
        search = worker.update(replace(search, state=state), Event(state))

    assert len(tables.proxy.log.records("GET")) == 1
    assert len(tables.proxy.log.records("POST")) == len(LIFE)
    tables.audit()


def test_looking_costs_one_request_for_each_thing_looked_at(tables: Stage) -> None:
    store = tables.open()
    store.add_database(sample.database())
    added = store.add(sample.search(key="k"), sample.QUEUED)
    calls: dict[str, tuple[Callable[[], object], int]] = {
        "get": (lambda: store.get(added.id), 1),
        "live": (lambda: store.live("r1"), 1),
        "waiting": (lambda: store.waiting("r1", per_user=10), 1),
        "runners": (store.runners, 2),  # each runner, and that there is no other
        "counts": (store.counts, 2),  # what has ended, and what lives
        "by_key": (lambda: store.by_key("ada", "k"), 2),
        "events": (lambda: store.events(added.id), 2),
        "now": (store.now, 0),
    }
    for name, (call, requests) in calls.items():
        tables.proxy.log.clear()
        assert call()
        assert len(tables.proxy.log.records()) == requests, name
