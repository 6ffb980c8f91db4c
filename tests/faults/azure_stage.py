"""A table of a real Table service, clients with a bad network before them, and an audit of rows."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, Final

import pytest
from azure.data.tables import TableClient

from blastyard.domain.clock import Clock
from blastyard.domain.search import Search
from blastyard.store.azure_tables import PATIENCE, entity, key, open_azure_tables
from blastyard.store.azure_tables.searches import AzureTablesSearchStore
from blastyard.store.azure_tables.table import MOST_STEPS, Row, Values
from blastyard.testing.azurite import ACCOUNT, Azurite, connection_string
from blastyard.testing.proxy import FaultProxy, Server
from blastyard.testing.proxy_fault import Fault, LostAnswer, LostRequest, Reset, Said, Truncated

SHORT: Final = timedelta(seconds=0.15)
"""Patience of a client that is to lose it."""
WRITE: Final = ("POST", r"\$batch")
"""The requests that are transactions."""


def said(status: int, code: str, retry_after: int | None = None) -> Said:
    """An error as the service words it."""
    body = f'{{"odata.error":{{"code":"{code}","message":{{"lang":"en-US","value":"No."}}}}}}'
    return Said(status, body.encode(), "application/json;odata=minimalmetadata", retry_after)


NOT_DONE: Final[tuple[Fault, ...]] = (
    LostRequest(),
    said(429, "TooManyRequests", retry_after=0),
    said(503, "ServerBusy"),
    said(500, "OperationTimedOut"),
    Said(502, b"<html><body><h1>502</h1></body></html>", "text/html"),
    Said(200, b"<html><body>Log in to the hotel's network</body></html>", "text/html"),
)
DONE: Final[tuple[Fault, ...]] = (
    LostAnswer(),
    Reset(),
    Truncated(40),
    Truncated(700),
    Truncated(40, honest=False),
)
"""The service has done what was asked, and whoever asked does not hear of it."""


class Stage:
    """One table; ``proxy`` is the network of all clients that are opened without ``direct``."""

    def __init__(self, azurite: Azurite, proxy: FaultProxy) -> None:
        self.proxy = proxy
        self.table = f"t{secrets.token_hex(8)}"
        self._azurite = azurite
        self._stack = ExitStack()
        client = TableClient.from_connection_string(azurite.connection_string, self.table)
        self.rows: TableClient = self._stack.enter_context(client)

    def open(
        self,
        *,
        direct: bool = False,
        patience: timedelta = PATIENCE,
        clock: Clock | None = None,
    ) -> AzureTablesSearchStore:
        """Another client."""
        url = self._azurite.url if direct else f"{self.proxy.url}/{ACCOUNT}"
        store = open_azure_tables(
            connection_string(url), table=self.table, patience=patience, clock=clock
        )
        self._stack.callback(store.close)
        return store

    def close(self) -> None:
        """Let go of all clients."""
        self._stack.close()

    def seed(self, rows: Iterable[tuple[str, Values]]) -> None:
        """Write rows past the store."""
        everything = [*rows]
        for start in range(0, len(everything), MOST_STEPS):
            some = everything[start : start + MOST_STEPS]
            keyed = [{"PartitionKey": key.PARTITION, "RowKey": name, **row} for name, row in some]
            self.rows.submit_transaction([("create", row) for row in keyed])

    def keys(self, beginning: str) -> list[str]:
        """The keys of the rows that stand there."""
        keys = key.Range.of(beginning)
        condition = f"RowKey ge '{keys.low}' and RowKey lt '{keys.high}'"
        return [row["RowKey"] for row in self.rows.query_entities(condition, select=["RowKey"])]

    def audit(self) -> list[Search]:
        """The searches, after every row was compared with them: nothing lacks, nothing is over."""
        rows = {row["RowKey"]: row for row in self.rows.list_entities()}
        kinds: dict[str, dict[str, Any]] = {letter: {} for letter in "fignulekdc"}
        for name, row in rows.items():
            kinds[name[0]][name] = row
        searches = [entity.search(Row(name, "", row)) for name, row in kinds["i"].items()]
        expected: set[str] = set()
        for search in searches:
            expected |= self._rows_of(search, rows)
        kinds["e"] = {name: row for name, row in kinds["e"].items() if name not in expected}
        claimed = {name for name in kinds["k"] if name not in expected}
        assert not kinds["g"], "events of a deleted search are left"
        assert not kinds["e"], "events of no search"
        assert not claimed, "a key of no search"
        assert {*kinds["i"], *kinds["n"], *kinds["u"], *kinds["l"]} <= expected
        self._audit_counts(searches, kinds["c"])
        return searches

    def _rows_of(self, search: Search, rows: dict[str, Any]) -> set[str]:
        request, sequence = search.request, search.sequence
        user = key.digest(request.user)
        copies = {key.by_id(search.id), key.by_arrival(sequence), key.by_user(user, sequence)}
        if not search.state.is_terminal:
            copies.add(key.while_live(search))
        for name in copies:
            assert entity.search(Row(name, "", rows[name])) == search, name
        events = {name for name in rows if name.startswith(key.events(sequence).low)}
        assert key.event(sequence, 1) in events
        assert len(events) <= search.version
        if request.key is not None:
            claim = key.claim(request.user, request.key)
            assert rows[claim]["Id"] == search.id
            return copies | events | {claim}
        return copies | events

    @staticmethod
    def _audit_counts(searches: list[Search], sheets: dict[str, Any]) -> None:
        counted: Counter[str] = Counter()
        for sheet in sheets.values():
            counted.update(json.loads(sheet["Counts"]))
        ended = Counter(search.state.value for search in searches if search.state.is_terminal)
        assert +counted == ended
        assert not -counted


@pytest.fixture(scope="session")
def azure_proxy(azurite: Azurite) -> Iterator[FaultProxy]:
    """The bad network before the run's Table service."""
    with FaultProxy(Server(azurite.url)) as proxy:
        yield proxy


@pytest.fixture
def tables(azurite: Azurite, azure_proxy: FaultProxy) -> Iterator[Stage]:
    """A table of its own, and fine weather to begin with."""
    azure_proxy.plan.clear()
    azure_proxy.log.clear()
    made = Stage(azurite, azure_proxy)
    yield made
    azure_proxy.plan.clear()
    made.close()
