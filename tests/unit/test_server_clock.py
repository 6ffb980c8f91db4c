"""The server's clock as answers tell it: never ahead, close after a few, put back when it was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blastyard.domain.errors import Unavailable
from blastyard.kube.clock import DRIFT, ServerClock
from blastyard.kube.wire import Answer

EPOCH = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
ROUNDING = timedelta(microseconds=2)

SPANS = st.floats(0, 40, allow_nan=False)
EXCHANGES = st.lists(
    st.tuples(SPANS, st.floats(0, 5), st.floats(0, 5)), min_size=1, max_size=60
)  # idle, way there, way back


@dataclass
class Server:
    """A clock that starts anywhere and runs a little fast or slow."""

    offset: float
    rate: float = 1.0

    def at(self, monotonic: float) -> datetime:
        return EPOCH + timedelta(seconds=self.offset + monotonic * self.rate)

    def answer(self, sent_at: float, there: float, back: float) -> Answer:
        date = self.at(sent_at + there).replace(microsecond=0)
        return Answer(200, b"", date, None, sent_at, sent_at + there + back)


@given(
    offset=st.floats(-1e6, 1e6),
    slew=st.floats(-0.9 * DRIFT, 0.9 * DRIFT),
    exchanges=EXCHANGES,
    later=SPANS,
)
def test_it_is_never_ahead_of_the_server_nor_more_than_a_second_and_the_way_behind(
    offset: float, slew: float, exchanges: list[tuple[float, float, float]], later: float
) -> None:
    server, clock, now = Server(offset, 1 + slew), ServerClock(), 0.0
    for idle, there, back in exchanges:
        answer = server.answer(now + idle, there, back)
        clock.observe(answer)
        now = answer.received_at
        behind = server.at(now) - clock.now(now)
        assert -ROUNDING <= behind <= timedelta(seconds=1 + (there + back) * 1.001) + ROUNDING

    assert clock.now(now + later) <= server.at(now + later) + ROUNDING


@given(offset=st.floats(0, 1), period=st.floats(0.01, 0.3), there=st.floats(0.0005, 0.004))
def test_it_comes_within_the_time_between_two_answers_once_a_second_has_turned(
    offset: float, period: float, there: float
) -> None:
    server, clock, now = Server(offset), ServerClock(), 0.0
    while now < 3:
        answer = server.answer(now, there, there)
        clock.observe(answer)
        now = max(now + period, answer.received_at)

    behind = server.at(now) - clock.now(now)
    assert timedelta(0) - ROUNDING <= behind
    assert behind <= timedelta(seconds=period + 2 * there + 3 * DRIFT) + ROUNDING


@given(
    back=st.floats(2.1, 1e5),
    before=st.lists(st.floats(0.01, 5), min_size=1, max_size=20),
    there=st.floats(0, 0.05),
)
def test_a_clock_that_was_put_back_is_believed_at_the_first_answer_that_proves_it(
    back: float, before: list[float], there: float
) -> None:
    server, clock, now = Server(0.0), ServerClock(), 0.0
    for idle in before:
        answer = server.answer(now + idle, there, there)
        clock.observe(answer)
        now = answer.received_at

    server.offset -= back
    clock.observe(server.answer(now, there, there))
    now += 2 * there

    assert clock.now(now) <= server.at(now) + ROUNDING
    assert server.at(now) - clock.now(now) <= timedelta(seconds=1.2)


def test_a_clock_that_was_put_forward_is_believed_at_once() -> None:
    server, clock = Server(0.5), ServerClock()
    clock.observe(server.answer(0, 0.01, 0.01))

    server.offset += 600
    clock.observe(server.answer(1, 0.01, 0.01))

    assert timedelta(0) <= server.at(2) - clock.now(2) <= timedelta(seconds=1.1)


def test_a_late_answer_does_not_take_back_what_a_quick_one_told() -> None:
    server, clock = Server(0.0), ServerClock()
    clock.observe(server.answer(1.0, 0.001, 0.001))
    before = clock.now(10.0)

    clock.observe(server.answer(2.0, 0.5, 4.0))

    assert clock.now(10.0) == before


def test_an_answer_without_a_date_teaches_nothing() -> None:
    clock = ServerClock()
    clock.observe(Answer(200, b"", None, None, 0.0, 1.0))

    assert not clock.is_set
    with pytest.raises(Unavailable, match="has not said what time it is"):
        clock.now(1.0)


def test_it_runs_forward_between_answers_though_an_old_one_counts_less() -> None:
    clock = ServerClock()
    clock.observe(Server(0.0).answer(0.0, 0.0, 0.0))
    told = [clock.now(at) for at in (0.0, 1.0, 60.0, 3600.0)]

    assert told == sorted(told)
    assert told[-1] - told[0] == timedelta(seconds=3600 * (1 - DRIFT))
