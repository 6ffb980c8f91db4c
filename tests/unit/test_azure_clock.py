"""The time of a storage account, told from its answers: never ahead, and soon not far behind."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from blastyard.domain.errors import Unavailable
from blastyard.store.azure_tables.clock import StoreClock

START = datetime(2026, 3, 1, 12, 0, 0, 400_000, tzinfo=UTC)


class Account:
    """A server whose clock is known to the test; the client's counts from some other moment."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.clock = StoreClock(lambda: 5000.0 + self.elapsed)

    @property
    def time(self) -> datetime:
        return START + timedelta(seconds=self.elapsed)

    def answer(self, way: float) -> None:
        """An answer with a date, sent now, that is so many seconds on its way."""
        sent_at, date = 5000.0 + self.elapsed, format_datetime(self.time, usegmt=True)
        self.elapsed += way
        self.clock.observe_date(date, sent_at)

    def etag(self, way: float) -> None:
        """An answer with the ETag of a row that is written now."""
        stamp = self.time.isoformat().replace("+00:00", "0Z").replace(":", "%3A")
        self.elapsed += way
        self.clock.observe_etag(f"W/\"datetime'{stamp}'\"")


def test_a_clock_that_nobody_has_told_the_time_says_so() -> None:
    account = Account()
    account.clock.observe_date(None, 0.0)
    account.clock.observe_date("yesterday", 0.0)
    account.clock.observe_etag(None)
    account.clock.observe_etag('W/"0x8D"')

    with pytest.raises(Unavailable, match="what time"):
        account.clock.now()


def test_a_date_alone_is_behind_by_a_second_at_most() -> None:
    account = Account()
    account.answer(way=0.01)

    assert timedelta(0) <= account.time - account.clock.now() < timedelta(seconds=1.02)


def test_an_etag_is_behind_by_its_way_only() -> None:
    account = Account()
    account.answer(way=0.01)
    account.etag(way=0.003)

    behind = account.time - account.clock.now()
    assert timedelta(milliseconds=2.9) < behind < timedelta(milliseconds=3.1)


@pytest.mark.parametrize("seed", range(20))
def test_the_clock_is_never_ahead_and_never_goes_back(seed: int) -> None:
    chance, account = random.Random(seed), Account()
    account.answer(way=0.01)
    last = account.clock.now()
    for _ in range(200):
        account.elapsed += chance.choice((0.0, 0.01, 30.0))
        chance.choice((account.answer, account.etag))(chance.uniform(0.001, 0.5))
        now = account.clock.now()
        assert last <= now <= account.time
        last = now


def test_a_server_whose_clock_was_put_back_is_followed() -> None:
    account = Account()
    account.etag(way=0.001)
    before = account.clock.now()
    account.elapsed += 10
    date = format_datetime(START - timedelta(hours=1), usegmt=True)

    account.clock.observe_date(date, 5000.0 + account.elapsed)

    assert account.clock.now() < before - timedelta(minutes=59)


def test_sequences_grow_also_when_no_time_passes_or_the_clock_is_put_back() -> None:
    account = Account()
    account.etag(way=0.001)
    taken = [account.clock.take_sequence()[0] for _ in range(3)]
    date = format_datetime(START - timedelta(hours=1), usegmt=True)
    account.clock.observe_date(date, 5000.0 + account.elapsed)
    taken.append(account.clock.take_sequence()[0])

    assert taken == [taken[0] + n for n in range(4)]
    assert taken[0] < 2**53, "whoever reads JSON with floating-point numbers reads it exactly"


def test_a_sequence_is_larger_than_that_of_any_search_whose_row_was_seen() -> None:
    one, other = Account(), Account()
    one.etag(way=0.001)
    other.answer(way=0.2)
    sequence, at = one.clock.take_sequence()
    stamp = at.isoformat().replace("+00:00", "1Z")

    other.clock.observe_etag(f"W/\"datetime'{stamp}'\"")  # the row was written after that

    other.elapsed += 0.001
    assert other.clock.take_sequence()[0] > sequence
