"""Who goes first in a namespace: the order of the swaps, and what raises a priority."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Any

from fault_command import started
from gate_stage import Lab
from queue_stage import PLAIN, NewSeat, Seat, rewrite_ledger
from test_faults_clock import library
from waiting_stage import until

__all__ = ["library"]

LONG_TURNS = replace(PLAIN, turn=timedelta(seconds=600))
"""Nobody is passed over in these."""


def test_there_is_one_order_whatever_the_cadence_of_a_submitter(new_seat: NewSeat) -> None:
    """Fault Q1: one asks without a pause, one when something happens, one twice a second."""
    owner = new_seat(ceiling=0, timings=LONG_TURNS)
    seats = [new_seat(timings=LONG_TURNS) for _ in range(3)]
    published = [(seats[number % 3], f"search-{number:02d}") for number in range(15)]
    for seat, search in published:
        seat.publish(search)
    fences: dict[str, int] = {}
    owner.gate.change_policy("operator", ceiling=1)

    def work(seat: Seat, pause: float) -> None:
        watch = seat.opened.documents.watch() if pause > 1 else Event()
        mine = [search for other, search in published if other is seat]
        while mine:
            fence = seat.claimed(mine[0])
            if fence is None:
                watch.wait(pause)
                continue
            fences[mine[0]] = fence
            seat.gate.end(mine.pop(0))

    threads = [
        Thread(target=work, args=(seat, pause), daemon=True)
        for seat, pause in zip(seats, (0.0, 2.0, 0.5), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(fences, key=lambda search: fences[search]) == [each for _, each in published]


def test_order_is_that_of_the_swaps_whatever_the_stamps_say(new_seat: NewSeat) -> None:
    """Fault Q12: equal stamps, and stamps that go backwards."""
    owner = new_seat(ceiling=0)
    seats = [new_seat() for _ in range(3)]
    names = [f"search-{number}" for number in (5, 3, 4, 1, 2, 0)]
    for number, name in enumerate(names):
        seats[number % 3].publish(name)
    began = owner.gate.ledger().tickets[names[0]].ticketed_at

    def stamped(step: int) -> None:
        def change(ledger: dict[str, Any]) -> None:
            for number, name in enumerate(names):
                at = began + timedelta(seconds=step * number)
                ledger["tickets"][name]["ticketed_at"] = at.isoformat()

        rewrite_ledger(owner, change)

    for step in (0, -60, 60):
        stamped(step)
        assert [place.search for place in seats[0].gate.view().queue] == names
    stamped(0)
    owner.gate.change_policy("operator", ceiling=1)
    fences = [seats[number % 3].served(name) for number, name in enumerate(names)]
    assert fences == sorted(fences)


def test_a_clock_that_is_wrong_makes_nobody_earlier(
    lab: Lab, new_seat: NewSeat, library: str
) -> None:
    """Fault Q12: stamps are the server's, in a process whose clock is ten minutes late."""
    seat = new_seat(ceiling=0)
    seat.publish("before")
    words = ("exec", "--search-id", "shifted", "--", "true")
    with started(
        lab, *words, LD_PRELOAD=library, FAKETIME="-600s", FAKETIME_DONT_FAKE_MONOTONIC="1"
    ):
        until(lambda: "shifted" in lab.ledger().tickets)
    seat.publish("after")

    tickets = lab.ledger().tickets
    assert sorted(tickets, key=lambda name: tickets[name].sequence) == [
        "before",
        "shifted",
        "after",
    ]
    stamps: list[datetime] = [each.ticketed_at for each in tickets.values()]
    assert max(stamps) - min(stamps) < timedelta(seconds=60)
    assert [place.search for place in seat.gate.view().queue] == ["before", "shifted", "after"]


def test_a_low_search_comes_at_last_in_a_stream_of_high_ones(new_seat: NewSeat) -> None:
    """Fault Q6: waiting raises the priority."""
    owner, other = new_seat(), new_seat()
    owner.publish("low", "ada", 0)

    def high(number: int) -> bool:
        """Whether a new one of high priority goes before it."""
        other.publish(f"high-{number}", "bob", 2)
        other.publish(f"high-{number}-too", "bob", 2)
        first = other.head()
        (owner if first == "low" else other).served(first)
        return first != "low"

    assert all(high(number) for number in range(5))

    def change(ledger: dict[str, Any]) -> None:
        ledger["policy"]["ageing_seconds"] = 1

    rewrite_ledger(owner, change)
    numbers = iter(range(5, 10_000))
    until(lambda: not high(next(numbers)), 10.0)
    assert "low" not in owner.gate.ledger().tickets
