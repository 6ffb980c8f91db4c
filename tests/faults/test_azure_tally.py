"""What is counted in passing adds up to what is there, whoever counts and whoever dies."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from azure.data.tables import UpdateMode
from azure_stage import WRITE, Stage

from blastyard.domain.job import State
from blastyard.store.azure_tables import key
from blastyard.store.azure_tables.searches import AzureTablesSearchStore
from blastyard.store.azure_tables.tally import TOO_MANY
from blastyard.testing import sample
from blastyard.testing.proxy_fault import LostAnswer, Rule

PATH = "/data/nt"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC).isoformat()


def end_one(store: AzureTablesSearchStore) -> str:
    """The id of a search that was added and cancelled."""
    added = store.add(sample.search(database=PATH), sample.QUEUED)
    return store.update(replace(added, state=State.CANCELLED)).id


def test_threads_and_clients_that_end_searches_together_are_all_counted(tables: Stage) -> None:
    stores = [tables.open(), tables.open()]
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(end_one, stores * 5))

    stores[0].delete(ids[0])

    assert stores[1].counts()[State.CANCELLED] == 9
    assert len(tables.keys("c.")) <= 5, "a sheet for each who writes at the same time, no more"
    tables.audit()


def test_one_end_is_counted_once_whatever_becomes_of_its_answer(tables: Stage) -> None:
    store = tables.open()
    end_one(store)
    tables.proxy.plan.add(Rule(LostAnswer(), *WRITE, skip=1))
    end_one(store)
    end_one(store)

    assert store.counts()[State.CANCELLED] == 3
    tables.audit()


def test_old_sheets_are_added_up_into_one_and_those_who_had_them_go_on(tables: Stage) -> None:
    store, other = tables.open(), tables.open()
    end_one(store)
    (mine,) = tables.keys("c.")
    old = {"PartitionKey": key.PARTITION, "RowKey": mine, "At": LONG_AGO}
    tables.rows.update_entity(old, mode=UpdateMode.MERGE)
    sheet = {"Counts": '{"completed":1}', "At": LONG_AGO}
    tables.seed((key.tally(f"{number:016}"), sheet) for number in range(TOO_MANY))

    assert other.counts()[State.COMPLETED] == TOO_MANY
    assert len(tables.keys("c.")) == 1
    end_one(store)
    end_one(store)

    assert len(tables.keys("c.")) == 2
    for client in (store, other):
        counts = client.counts()
        assert (counts[State.COMPLETED], counts[State.CANCELLED]) == (TOO_MANY, 3)
