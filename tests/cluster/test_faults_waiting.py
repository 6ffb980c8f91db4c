"""Waiting for a turn: its deadlines, that it is no fault, and its end."""

from __future__ import annotations

import signal

import pytest
from fault_command import started
from fault_service import NewService, Service
from gate_stage import Lab
from queue_stage import NewSeat, Seat, put_foreign
from waiting_stage import CLOCK, through, until

from blastyard.admission.outcome import Reason, Waiting
from blastyard.domain.job import State
from blastyard.domain.search import Search

TIMED_OUT = 121
INTERRUPTED = 124


class Alternation:
    """Reasons to wait that take turns: nothing may run, and somebody else is inside Gate A."""

    def __init__(self, lab: Lab, seat: Seat) -> None:
        self._seat = seat
        self._ceiling = 0
        seat.fills()
        seat.gate.end("first")
        put_foreign(lab, "somebody")
        self()

    def __call__(self) -> bool:
        """The other reason from now on; always false."""
        self._seat.gate.change_policy("operator", ceiling=self._ceiling)
        self._ceiling = 2 - self._ceiling
        return False


@pytest.mark.parametrize(
    ("words", "environment", "codes"),
    [
        (["--wait", "4s"], {}, ["submit_slot_timeout", "capacity_timeout"]),
        (
            [],
            {
                "BLAST_CAPACITY_WAIT_MAX_SECONDS": "4",
                "BLAST_SUBMIT_SLOT_WAIT_MAX_SECONDS": "3000",
            },
            ["capacity_timeout"],
        ),
        (
            [],
            {
                "BLAST_CAPACITY_WAIT_MAX_SECONDS": "3000",
                "BLAST_SUBMIT_SLOT_WAIT_MAX_SECONDS": "4",
            },
            ["submit_slot_timeout"],
        ),
    ],
    ids=["--wait", "capacity", "submit slot"],
)
def test_a_deadline_is_absolute_whatever_the_reasons_are_meanwhile(
    lab: Lab, new_seat: NewSeat, words: list[str], environment: dict[str, str], codes: list[str]
) -> None:
    """Fault Q7: each denial for one reason would set the other's clock anew; it must not."""
    seat = new_seat(ceiling=2)
    alternates = Alternation(lab, seat)
    script = lab.folder / "ran"
    command = ("exec", "--search-id", "waits", *words, "--", "touch", str(script))
    with started(lab, *command, **environment) as process:
        until(lambda: "waits" in lab.ledger().tickets)
        began = CLOCK.monotonic()
        until(lambda: alternates() or process.poll() is not None)
        took = CLOCK.monotonic() - began
        _, said = process.communicate()

    assert process.returncode == TIMED_OUT, said
    assert any(f"code: {code}" in said for code in codes), said
    assert 2.0 < took < 9.0
    assert not script.exists()
    until(lambda: "waits" not in lab.ledger().tickets)
    assert "waits" not in lab.ledger().holds


def deadlines(search: Search) -> tuple[object, object]:
    return search.submit_deadline_at, search.capacity_deadline_at


def test_the_deadlines_of_a_row_stand_while_reasons_alternate(
    lab: Lab, new_seat: NewSeat, new_service: NewService
) -> None:
    """Fault Q7: in a service, both are in the row from the beginning."""
    alternates = Alternation(lab, new_seat(ceiling=2))
    service = new_service(
        BLAST_CAPACITY_WAIT_MAX_SECONDS="4", BLAST_SUBMIT_SLOT_WAIT_MAX_SECONDS="3000"
    )
    search = service.submit()
    said = deadlines(service.search(search))
    assert None not in said

    until(lambda: alternates() or service.search(search).state is State.FAILED)

    ended = service.search(search)
    assert deadlines(ended) == said
    assert ended.error is not None
    assert ended.error.code == "capacity_timeout"
    assert ended.finished_at is not None
    assert ended.capacity_deadline_at is not None
    assert 0 <= (ended.finished_at - ended.capacity_deadline_at).total_seconds() < 5
    assert ended.attempt == 0
    until(lambda: search not in lab.ledger().tickets)


def test_waiting_is_no_fault_and_has_no_attempt(
    lab: Lab, new_seat: NewSeat, new_service: NewService
) -> None:
    """Fault Q8: whatever it waits for, and how often."""
    seat = new_seat(ceiling=2)
    alternates = Alternation(lab, seat)
    service = new_service()
    search = service.submit()
    for reason in (Reason.DRAINED, Reason.SUBMIT_SLOT) * 4:
        until(lambda reason=reason: reason_of(service, search) is reason)  # type: ignore[misc]
        alternates()

    assert service.search(search).attempt == 0
    assert not [event for event in service.yard.store.events(search) if "failed" in event.reason]
    seat.gate.change_policy("operator", ceiling=2)
    put_foreign(lab, None)
    service.running(search)
    assert service.search(search).attempt == 1


def reason_of(service: Service, search: str) -> Reason | None:
    outcome = service.yard.gate.turn(search)
    return outcome.reason if isinstance(outcome, Waiting) else None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_interrupted_while_it_waits_leaves_no_ticket_and_takes_no_slot(
    lab: Lab, new_seat: NewSeat, number: signal.Signals
) -> None:
    """Fault Q11."""
    seat = new_seat()
    seat.fills()
    ran = lab.folder / "ran"
    with started(lab, "exec", "--search-id", "waits", "--", "touch", str(ran)) as process:
        until(lambda: "waits" in lab.ledger().tickets)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)

    assert (process.returncode, ran.exists()) == (INTERRUPTED, False), said
    assert "nothing was submitted" in said
    assert "waits" not in lab.ledger().tickets
    fence = lab.ledger().fence
    seat.gate.end("first")
    through(1.0, lambda: not lab.ledger().holds)
    assert lab.ledger().fence == fence
    assert lab.markers("waits") == set()


def test_a_search_cancelled_while_it_waits_takes_no_slot(
    lab: Lab, new_seat: NewSeat, new_service: NewService
) -> None:
    """Fault Q11: also where a service waits on its behalf, with or without a published ticket."""
    seat = new_seat(ceiling=0)
    service = new_service()
    cancelled = [service.submit() for _ in range(2)]
    last = service.submit()
    until(lambda: set(cancelled) <= lab.ledger().tickets.keys())
    seat.gate.park(cancelled[1], "olga")
    for each in cancelled:
        service.yard.searches.cancel(each)
    until(lambda: not set(cancelled) & lab.ledger().tickets.keys())

    seat.gate.change_policy("operator", ceiling=1)
    service.running(last)
    for each in cancelled:
        search = service.search(each)
        assert (search.state, search.attempt) == (State.CANCELLED, 0)
    assert lab.ledger().fence == lab.ledger().holds[last].fence
