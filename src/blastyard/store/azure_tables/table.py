"""One table's partition: rows read, pages of rows, and transactions, each asked with patience.

What passes by itself (throttling, a lost answer) is asked again for a bounded time, obeying
``Retry-After``, and then raised as ``Unavailable``. The library's own retries are off: it re-sends
without telling, and a write that was carried out the first time is then answered with 409 or 412,
as if somebody else had won. Here the caller hears of the doubt (:attr:`NotCommitted.doubtful`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from threading import Event
from typing import Any, Final, TypeVar

from azure.core import MatchConditions
from azure.core.pipeline import PipelineResponse
from azure.data.tables import TableClient, TableEntity

from blastyard.domain.clock import Clock
from blastyard.domain.errors import Unavailable
from blastyard.store.azure_tables.account import Account
from blastyard.store.azure_tables.clock import StoreClock
from blastyard.store.azure_tables.failure import ANY, Kind, Trouble, read
from blastyard.store.azure_tables.key import PARTITION, Range

MOST_ROWS: Final = 1000
"""In one page of an answer."""
MOST_STEPS: Final = 100
"""In one transaction."""

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0

_never: Final = Event()

T = TypeVar("T")
Values = Mapping[str, Any]
Heard = Callable[[PipelineResponse[Any, Any]], None]


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it was read."""

    key: str
    etag: str
    values: Values


@dataclass(frozen=True, slots=True)
class Query:
    """Rows of a range of keys. ``where`` is an OData condition; ``select`` empty: all columns."""

    keys: Range
    where: str = ""
    select: tuple[str, ...] = ()
    top: int = MOST_ROWS

    @property
    def filter(self) -> str:
        """All of it, as the service takes it. Keys have no quotes."""
        text = f"PartitionKey eq '{PARTITION}' and RowKey ge '{self.keys.low}'"
        text += f" and RowKey lt '{self.keys.high}'"
        return f"{text} and ({self.where})" if self.where else text


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, in the order of their keys; ``following`` leads to the next page, if any."""

    rows: Sequence[Row]
    following: Any


@dataclass(frozen=True, slots=True)
class Step:
    """One write of a transaction; made by the functions below."""

    verb: str
    key: str
    values: Values = field(default_factory=dict)
    options: Values = field(default_factory=dict)


def insert(key: str, values: Values) -> Step:
    """A row that must not be there yet."""
    return Step("create", key, values, {"response_preference": "return-no-content"})


def put(key: str, values: Values) -> Step:
    """A row, whatever was there."""
    return Step("upsert", key, values, {"mode": "replace"})


def replace(key: str, values: Values, etag: str | None = None) -> Step:
    """A row that must be there, with this ETag if one is given."""
    return Step("update", key, values, {"mode": "replace", **_only_if(etag)})


def merge(key: str, values: Values) -> Step:
    """Some columns of a row that must be there; the others stay."""
    return Step("update", key, values, {"mode": "merge"})


def remove(key: str, etag: str | None = None) -> Step:
    """A row that must be there, with this ETag if one is given."""
    return Step("delete", key, {}, _only_if(etag))


def _only_if(etag: str | None) -> Values:
    if etag is None:
        return {}
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


@dataclass(frozen=True, slots=True)
class Committed:
    """All steps were carried out. The ETags are those of the rows; empty for what was removed."""

    etags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotCommitted:
    """No step was carried out, this time. Which of them failed is not said reliably.

    ``doubtful``: an answer was lost before, so that the transaction may have been carried out then.
    """

    doubtful: bool


class Table:
    """One table of an account. Thread-safe; a forked child may go on using it.

    ``patience`` is how long a call goes on asking; ``pause`` waits for so many seconds. Its
    ``clock`` is the account's, its ``place`` names it in messages.
    """

    def __init__(
        self,
        account: Account,
        clock: Clock,
        patience: timedelta,
        pause: Callable[[float], object] = _never.wait,
    ) -> None:
        self.place = account.place
        self.clock = StoreClock(clock.monotonic)
        self._monotonic = clock.monotonic
        self._patience = patience.total_seconds()
        self._pause = pause
        self._connect = account.connect
        self._client = account.connect()
        self._process = os.getpid()
        self._inherited: list[TableClient] = []
        self._closed = False

    def create(self) -> None:
        """Make the table, unless it is there."""
        answer, _ = self._ask(lambda client, heard: client.create_table(raw_response_hook=heard))
        if isinstance(answer, Trouble) and answer.kind is not Kind.EXISTS:
            raise answer.unavailable(self.place)

    def get(self, key: str) -> Row | None:
        """One row."""
        answer, _ = self._ask(
            lambda client, heard: client.get_entity(PARTITION, key, raw_response_hook=heard)
        )
        if not isinstance(answer, Trouble):
            return self._row(answer)
        if answer.kind is Kind.ABSENT and not answer.is_about_the_table:
            return None
        raise answer.unavailable(self.place)

    def page(self, query: Query, following: Any = None) -> Page:
        """One page; it may be empty and yet lead to a next one."""

        def ask(client: TableClient, heard: Heard) -> tuple[list[TableEntity], Any]:
            pages: Any = client.query_entities(
                query.filter,
                results_per_page=query.top,
                select=[*query.select, "RowKey"] if query.select else None,
                raw_response_hook=heard,
            ).by_page(following)
            return [*next(pages)], pages.continuation_token

        answer, _ = self._ask(ask)
        if isinstance(answer, Trouble):
            raise answer.unavailable(self.place)
        entities, token = answer
        return Page([self._row(entity) for entity in entities], token)

    def rows(self, query: Query) -> Iterator[Row]:
        """All rows of a query, page by page."""
        page = self.page(query)
        yield from page.rows
        while page.following:
            page = self.page(query, page.following)
            yield from page.rows

    def commit(self, steps: Sequence[Step]) -> Committed | NotCommitted:
        """Carry out all steps (at most :data:`MOST_STEPS`), or none."""
        operations = [_operation(step) for step in steps]

        def ask(client: TableClient, heard: Heard) -> list[Values]:
            told = client.submit_transaction(operations, raw_response_hook=heard)
            if len(told) != len(operations):
                raise ValueError("an answer that was cut short")
            return told

        answer, doubtful = self._ask(ask)
        if not isinstance(answer, Trouble):
            etags = tuple(str(each.get("etag") or "") for each in answer)
            for etag in etags:
                self.clock.observe_etag(etag)
            return Committed(etags)
        decided = answer.kind in (Kind.ABSENT, Kind.CHANGED, Kind.EXISTS)
        if decided and not answer.is_about_the_table:
            return NotCommitted(doubtful)
        raise answer.unavailable(self.place)

    def close(self) -> None:
        """Let go of the connections; later calls raise ``Unavailable``."""
        self._closed = True
        self._client.close()

    def _ask(self, call: Callable[[TableClient, Heard], T]) -> tuple[T | Trouble, bool]:
        """The answer, and whether one before it was lost."""
        latest = self._monotonic() + self._patience
        doubtful = False
        for attempt in count():
            answer = self._once(call)
            if not (isinstance(answer, Trouble) and answer.passes):
                break
            doubtful = doubtful or answer.kind is Kind.LOST
            wait = _backoff(attempt) if answer.retry_after is None else answer.retry_after
            if self._monotonic() + wait > latest:
                raise answer.unavailable(self.place)
            self._pause(wait)
        return answer, doubtful

    def _once(self, call: Callable[[TableClient, Heard], T]) -> T | Trouble:
        client = self._usable()
        sent_at = self._monotonic()

        def heard(response: PipelineResponse[Any, Any]) -> None:
            self.clock.observe_date(response.http_response.headers.get("Date"), sent_at)

        try:
            return call(client, heard)
        except ANY as error:
            return read(error)

    def _usable(self) -> TableClient:
        if self._closed:
            raise Unavailable("store_unavailable", f"{self.place} was closed.")
        if self._process != os.getpid():
            self._inherited.append(self._client)  # closing it would end the parent's connections
            self._client = self._connect()
            self._process = os.getpid()
        return self._client

    def _row(self, entity: TableEntity) -> Row:
        etag = str(entity.metadata.get("etag") or "")
        self.clock.observe_etag(etag)
        return Row(entity["RowKey"], etag, entity)


def _operation(step: Step) -> tuple[str, dict[str, Any], dict[str, Any]]:
    keys = {"PartitionKey": PARTITION, "RowKey": step.key}
    return step.verb, {**step.values, **keys}, dict(step.options)


def _backoff(attempt: int) -> float:
    """Twice as long each time, and spread, so that many who were refused do not come as one."""
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(attempt, 10))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311  (no secret)
