"""Waking whoever is next, and nobody else: by watch within moments, without one a little later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from threading import Event

import pytest
from fault_command import started
from fault_service import NewService
from gate_stage import Lab
from queue_stage import PLAIN, NewSeat, Queued, Seat, put_foreign
from waiting_stage import CLOCK, TENTH, through, until

from blastyard.admission.outcome import Reason
from blastyard.testing.plain_wire import Access
from blastyard.testing.proxy import FaultProxy

SOON = 0.5
"""Seconds from what frees a turn to the start of the command whose turn it is."""
WITHOUT_A_WATCH = 20.0
"""The floor of two seconds, and five in which an end that nobody saw is looked for."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def queued(lab: Lab, stack: ExitStack, seats: list[Seat]) -> list[Queued]:
    """A command waiting in each, in this order."""
    commands = []
    for number, seat in enumerate(seats):
        command = Queued(lab, seat, f"waits-{number}")
        stack.callback(command.close)
        commands.append(command.waits())
    return commands


def soon(command: Queued, freed_at: float) -> float:
    """How long it took until it began; its submission has ended, and Gate A is free."""
    until(command.begun.is_set)
    until(command.ended.is_set)
    assert command.error is None
    return command.begun_at - freed_at


def test_each_slot_that_frees_wakes_the_next_alone_within_half_a_second(
    lab: Lab, new_seat: NewSeat, stack: ExitStack
) -> None:
    """Faults Q2 and Q9: a search ends in the cluster, and one command begins in another process.

    The processes that wait for a later turn ask the API server nothing.
    """
    seats = [new_seat() for _ in range(6)]
    (owner := new_seat()).fills()
    commands = queued(lab, stack, seats)
    owner.gate.end("first")
    until(commands[0].ended.is_set)

    took = []
    for number in range(1, len(commands)):
        others = seats[number + 1 :]
        asked = [len(seat.asked) for seat in others]
        freed_at = commands[number - 1].finish()
        took.append(soon(commands[number], freed_at))
        assert [len(seat.asked) for seat in others] == asked

    assert median(took) < SOON, took


def by_word(lab: Lab, owner: Seat) -> None:
    owner.gate.end("first")


def by_ceiling(lab: Lab, owner: Seat) -> None:
    owner.gate.change_policy("operator", ceiling=2)


def by_lease(lab: Lab, owner: Seat) -> None:
    put_foreign(lab, None)


def by_retreat(lab: Lab, owner: Seat) -> None:
    owner.gate.retire()


def busy(lab: Lab, owner: Seat) -> None:
    """Slots are free, but a foreign program is inside Gate A."""
    owner.fills()
    owner.gate.change_policy("operator", ceiling=4)
    put_foreign(lab, "somebody")


def headed(lab: Lab, owner: Seat) -> None:
    """The head does not claim the free slot, and has long to do so."""
    owner.publish("first")


@pytest.mark.parametrize(
    ("before", "frees", "reason"),
    [
        pytest.param(lambda _, owner: owner.fills(), by_word, Reason.CAPACITY, id="a slot freed"),
        pytest.param(lambda _, owner: owner.fills(), by_ceiling, Reason.CAPACITY, id="the ceiling"),
        pytest.param(busy, by_lease, Reason.SUBMIT_SLOT, id="the lease cleared"),
        pytest.param(headed, by_retreat, Reason.TURN, id="a submitter gone"),
    ],
)
def test_whatever_lets_the_next_go_wakes_it_and_nobody_else(
    lab: Lab,
    new_seat: NewSeat,
    stack: ExitStack,
    before: Callable[[Lab, Seat], None],
    frees: Callable[[Lab, Seat], None],
    reason: Reason,
) -> None:
    """Faults Q2 and Q9: a slot, the ceiling, a cleared lease, a submitter that is gone."""
    timings = replace(PLAIN, turn=timedelta(seconds=600))
    owner, *seats = [new_seat(timings=timings) for _ in range(4)]
    before(lab, owner)
    first, *later = queued(lab, stack, seats)
    until(lambda: first.told[-1].reason is reason)
    others = seats[1:]
    asked = [len(seat.asked) for seat in others]

    freed_at = CLOCK.monotonic()
    frees(lab, owner)

    assert soon(first, freed_at) < 2 * SOON  # one measurement, on a machine that does more
    if reason is not Reason.SUBMIT_SLOT:  # there, slots are free for everybody
        assert not any(command.begun.is_set() for command in later)
        assert [len(seat.asked) for seat in others] == asked


def test_without_a_watch_a_turn_comes_later_and_nothing_else_is_lost(
    lab: Lab, new_seat: NewSeat, stack: ExitStack
) -> None:
    """Fault Q2: a floor stands under the watch. What is not followed is read, once a second."""
    owner, deaf, last = new_seat(), new_seat(follows=False), new_seat(follows=False)
    owner.fills()
    first, second = queued(lab, stack, [deaf, last])
    asked, began = len(last.asked), CLOCK.monotonic()

    freed_at = CLOCK.monotonic()
    owner.gate.end("first")
    assert soon(first, freed_at) < WITHOUT_A_WATCH
    assert soon(second, first.finish()) < WITHOUT_A_WATCH

    assert first.begun_at < second.begun_at
    # three documents, and the Jobs, at most once a second; and the admission itself
    assert len(last.asked) - asked < 6 * (CLOCK.monotonic() - began) + 30


def test_what_happens_while_somebody_looks_is_one_more_look(
    lab: Lab, new_seat: NewSeat, stack: ExitStack
) -> None:
    """Fault Q9: however often the ledger changes meanwhile, and at no cost."""
    owner, seat = new_seat(), new_seat()
    owner.fills()
    (command,) = queued(lab, stack, [seat])
    entered, leave = Event(), Event()

    def stand() -> None:
        entered.set()
        assert leave.wait(20)

    command.before_told = stand
    owner.gate.wake()
    owner.publish("other")
    assert entered.wait(20)
    for number in range(30):
        owner.publish(f"other-{number}")
    until(lambda: len(seat.gate.lately().tickets) == 32)
    looks, asked = len(command.told), len(seat.asked)
    leave.set()

    until(lambda: len(command.told) >= looks + 2)
    through(1.0, lambda: len(command.told) <= looks + 3)  # the third is the floor's
    assert len(seat.asked) == asked


def test_those_who_wait_ask_the_api_server_nothing(
    lab: Lab, new_seat: NewSeat, stack: ExitStack, new_service: NewService
) -> None:
    """Fault Q9: fifty in a service and three commands, while one runs and others come and go.

    Each process gives its signs of life, and has three streams open; that is all.
    """
    (owner := new_seat(timings=TENTH)).fills()
    proxies = [stack.enter_context(FaultProxy.before(lab.plane)) for _ in range(4)]
    token = Access.read(Path(lab.environment["KUBECONFIG"])).token
    paths = [
        proxy.write_kubeconfig(lab.folder / f"through-{number}", token, lab.namespace)
        for number, proxy in enumerate(proxies)
    ]
    service = new_service(kubeconfig=paths[0])
    for number in range(50):
        service.submit(user=f"user-{number % 7}")
    for number, path in enumerate(paths[1:]):
        words = ("exec", "--search-id", f"exec-{number}", "--", str(lab.submit_script()), "{id}")
        stack.enter_context(started(lab, *words, KUBECONFIG=str(path)))
    until(lambda: owner.lives() and len(lab.ledger().tickets) == 53)
    submitted = [search.id for search in service.yard.store.live()]
    until(lambda: owner.lives() and all(service.search(each).phase for each in submitted))
    until(lambda: owner.lives() and lab.ledger().holds["first"].marked)  # by whoever tends first
    for proxy in proxies:
        assert asked_by(proxy)
        proxy.log.clear()

    through(5.0, owner.lives)
    owner.publish("comes")
    owner.gate.withdraw("comes")
    through(7.0, owner.lives)

    assert [asked_by(proxy) for proxy in proxies] == [[], [], [], []]
    assert all(proxy.log.records(path="/blastyard-submitter-") for proxy in proxies)
    owner.gate.end("first")
    until(lambda: lab.ledger().holds)
    assert "first" not in lab.ledger().holds


def asked_by(proxy: FaultProxy) -> list[tuple[str, str]]:
    """What came through it, but for signs of life and streams."""
    return [
        (each.verb, each.target)
        for each in proxy.log.records()
        if "/blastyard-submitter-" not in each.target and "watch=true" not in each.target
    ]
