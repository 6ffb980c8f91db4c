"""What waiting costs, and how soon it ends, where nothing goes wrong."""

from __future__ import annotations

import itertools

from model_stage import calm
from verdict_stage import story

from blastyard.testing.schedule import Kind, Order, Role, Schedule, order_name
from blastyard.testing.simulator import run

FLOOR_SECONDS = 30
CALLS_OF_ONE_LOOK = 8


def _calm(ceiling: int, *orders: Order, roles: tuple[Role, ...] = (Role(Kind.SERVE),)) -> Schedule:
    return calm(ceiling, roles, orders)


def _order(number: int, seconds: float, *, slot: int = 0, user: str = "ada") -> Order:
    return Order(order_name(number), slot, 0.0, user, 1, seconds)


def _calls_while_waiting(waiting: int) -> int:
    """Calls in 300 seconds in which so many searches wait behind one that runs."""

    def calls(seconds: float) -> int:
        orders = [_order(number, 0.3) for number in range(1, waiting + 1)]
        verdict = run(_calm(1, _order(0, seconds), *orders))
        assert verdict.violation is None, story(verdict)
        return verdict.calls[0]

    return calls(400.0) - calls(100.0)


def test_a_waiting_search_costs_no_calls_beyond_its_floor() -> None:
    """Fault Q9: what a worker asks does not grow with the queue."""
    few, many = _calls_while_waiting(2), _calls_while_waiting(42)
    per_search = (many - few) / 40
    assert per_search <= CALLS_OF_ONE_LOOK * 300 / FLOOR_SECONDS


def test_a_free_slot_is_used_at_once() -> None:
    """Fault Q2: by the watch, long before the floor."""
    verdict = run(_calm(1, *(_order(number, 1.0) for number in range(20))))
    assert verdict.violation is None, story(verdict)
    started = [at for at, _, what in verdict.history.entries if what.startswith("START")]
    pauses = [after - before for before, after in itertools.pairwise(started)]
    assert len(started) == 20
    assert max(pauses) < 1.1


def test_a_free_slot_is_used_at_once_by_another_process() -> None:
    """Fault Q1: the processes take turns, whoever looks more often."""
    roles = (Role(Kind.SERVE), Role(Kind.SEARCH), Role(Kind.COMMAND))
    orders = [_order(number, 1.0, slot=number % 2, user=f"u{number % 2}") for number in range(10)]
    verdict = run(_calm(1, *orders, _order(10, 1.0, slot=2, user="u2"), roles=roles))
    assert verdict.violation is None, story(verdict)
    started = [
        (at, int(what[12:14]))
        for at, _, what in verdict.history.entries
        if what.startswith("START search")
    ]
    assert len(started) == 11
    assert max(after[0] - before[0] for before, after in itertools.pairwise(started)) < 1.1
    assert 10 in [number for _, number in started[:4]]
