"""Thousands who wait, and thousands of Jobs: what one has cannot be felt by the others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from fault_command import started
from fault_jobs import a_job, jobs_path, kubeconfig_of_stranger
from gate_stage import Lab
from queue_stage import NewSeat, Seat, seats_in
from waiting_stage import CLOCK, until

from blastyard.admission.port import LEDGER
from blastyard.admission.ticket import PUBLISHED_IN_ALL, PUBLISHED_PER_SUBMITTER, Wish
from blastyard.domain.job import State
from blastyard.kube.wire import Call
from blastyard.service.window import REFILL_AT, Window
from blastyard.store.memory import MemorySearchStore
from blastyard.testing import sample
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.plain_wire import Access, PlainWire

LEDGER_LIMIT = 256 * 1024
FINISHED = 5000
FAILED = 500
"""Of the finished ones; a list by what has not succeeded has them."""
LIVE = 200
NAMESPACE = "large"


def size(seat: Seat) -> int:
    """Bytes of the ledger as it stands."""
    return len(seat.opened.documents.read(LEDGER).body or b"")


class Crowd:
    """Searches that wait in the store of one submitter."""

    def __init__(self, seat: Seat, count: int, *users: str) -> None:
        self.seat = seat
        self.store = MemorySearchStore(CLOCK.now)
        self.store.add_database(sample.database())
        self.ids: list[str] = []
        self.window = Window(self.store, seat.gate, CLOCK.monotonic)
        self.add(count, *users)

    def add(self, count: int, *users: str) -> None:
        for number in range(count):
            search = sample.search(user=users[number % len(users)])
            mine = replace(search, runner=self.seat.gate.me.name)
            self.ids.append(self.store.add(mine, sample.QUEUED).id)
        self.window.refill(force=True)

    def published(self) -> list[str]:
        ledger, mine = self.seat.gate.ledger(), self.seat.gate.me.name
        return [name for name, each in ledger.tickets.items() if each.submitter == mine]


def test_one_search_beside_five_thousand_of_another_submitter_has_its_place_and_its_turn(
    new_seat: NewSeat,
) -> None:
    """Fault Q14: also when all of them are one user's, where the order of arrival decides."""
    crowd = Crowd(new_seat(ceiling=0, kind="serve"), 5000, "ada")
    single = new_seat()
    assert crowd.published() == crowd.ids[:PUBLISHED_PER_SUBMITTER]
    single.publish("of-another", "bob")
    single.publish("of-the-same", "ada")

    queue = [place.search for place in single.gate.view().queue]
    assert (queue.index("of-another"), queue.index("of-the-same")) == (1, len(queue) - 1)
    assert len(queue) == PUBLISHED_PER_SUBMITTER + 2
    assert size(single) < LEDGER_LIMIT
    single.gate.change_policy("operator", ceiling=1)
    first, second = crowd.seat.served(crowd.ids[0]), single.served("of-another")
    assert first < second
    for search in crowd.ids[1 : PUBLISHED_PER_SUBMITTER - REFILL_AT]:
        crowd.seat.served(search)
        found = crowd.store.get(search)
        crowd.store.update(replace(found, state=State.COMPLETED))
    crowd.store.update(replace(crowd.store.get(crowd.ids[0]), state=State.COMPLETED))
    crowd.window.refill()
    refilled = crowd.ids[PUBLISHED_PER_SUBMITTER - REFILL_AT :][:PUBLISHED_PER_SUBMITTER]
    assert crowd.published() == refilled
    queue = [place.search for place in single.gate.view().queue]
    assert queue.index("of-the-same") == REFILL_AT  # before all that were published later


def test_twenty_thousand_at_one_submitter_change_nothing_for_the_others(
    new_seat: NewSeat,
) -> None:
    """Fault Q14: the ledger that all of them read and write stays as it was."""
    crowd = Crowd(new_seat(ceiling=0, kind="serve"), PUBLISHED_PER_SUBMITTER, "ada", "eve")
    other = new_seat()
    other.publish("one", "bob")
    before, queue = size(other), [each.search for each in other.gate.view().queue]
    asked = len(other.asked)

    crowd.add(20_000, "ada", "eve")
    for _ in range(3):
        crowd.window.refill()

    assert [each.search for each in other.gate.view().queue] == queue
    assert size(other) == before < LEDGER_LIMIT
    assert len(other.asked) - asked < 10  # two looks of this test's own
    crowd.add(1, "zoe")  # nobody is hidden behind the thousands of others at the same submitter
    assert [each.ticket.user for each in other.gate.view().queue][:4] == [
        "ada",
        "eve",
        "bob",
        "zoe",
    ]


def test_a_full_ledger_is_small_and_the_next_place_is_for_whoever_has_none(
    new_seat: NewSeat,
) -> None:
    """Fault Q14: eleven submitters with a hundred each, and names as long as they may be."""
    owner, late = new_seat(ceiling=0), new_seat()
    for number in range(11):
        name = f"serve-{number}-{'x' * 40}"
        wishes = [Wish(f"{number}-{n}-{'y' * 50}", f"user{n}-{'z' * 50}", 1) for n in range(100)]
        owner.gate.publish(wishes, name)
    tickets = owner.gate.ledger().tickets
    assert len(tickets) == PUBLISHED_IN_ALL
    late.publish("late")
    assert "late" not in late.gate.ledger().tickets
    assert size(owner) < 2 * LEDGER_LIMIT

    owner.gate.withdraw(next(iter(tickets)))
    late.publish("late")

    assert "late" in late.gate.ledger().tickets


# -- Jobs ------------------------------------------------------------------------------------------


def make_finished(lab: Lab, numbers: list[int]) -> None:
    """Finalizers of searches that have ended, some of them badly."""
    with closing(PlainWire(Access.read(kubeconfig_of_stranger(lab)), "stranger")) as wire:
        for number in numbers:
            body = json.dumps(a_job(f"past-{number:04d}", "finalizer")).encode()
            answer = wire.send(Call("POST", jobs_path(lab), body=body))
            assert answer.status == 201
            job = json.loads(answer.body)
            begun = job["metadata"]["creationTimestamp"]
            kinds = ("FailureTarget", "Failed")
            more: dict[str, object] = {"failed": 1}
            if number >= FAILED:
                kinds, more = ("SuccessCriteriaMet", "Complete"), {"succeeded": 1}
                more["completionTime"] = begun
            conditions = [{"type": kind, "status": "True", "reason": "Test"} for kind in kinds]
            status = {"startTime": begun, "conditions": conditions, **more}
            path = f"{jobs_path(lab)}/{job['metadata']['name']}/status"
            patch = json.dumps({"status": status}).encode()
            merge = "application/merge-patch+json"
            assert wire.send(Call("PATCH", path, {}, patch, merge)).status == 200


def make_live(lab: Lab) -> None:
    with closing(PlainWire(Access.read(kubeconfig_of_stranger(lab)), "stranger")) as wire:
        for number in range(LIVE // 2):
            for app in ("submit", "finalizer"):
                body = json.dumps(a_job(f"live-{number:03d}", app)).encode()
                assert wire.send(Call("POST", jobs_path(lab), body=body)).status == 201


@pytest.fixture(scope="module")
def large(
    own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    """A namespace with thousands of finished Jobs, and hundreds that live."""
    own_control_plane.create_namespace(NAMESPACE)
    lab = Lab(own_control_plane, NAMESPACE, tmp_path_factory.mktemp("large"))
    lab.environment["BLAST_MAX_RUN_CONCURRENCY"] = str(LIVE)
    kubeconfig_of_stranger(lab)
    with ThreadPoolExecutor(6) as pool:
        parts = [list(range(first, FINISHED, 6)) for first in range(6)]
        list(pool.map(lambda part: make_finished(lab, part), parts))
    make_live(lab)
    yield lab
    lab.close()


def peak_megabytes(pid: int) -> float:
    """The most memory that a process has had (``VmHWM``)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(kilobytes) / 1024


LIVING = {f"live-{number:03d}" for number in range(LIVE // 2)}


def test_a_census_of_a_large_namespace_is_complete_and_costs_whoever_waits_nothing(
    large: Lab,
) -> None:
    """Fault Q9: a list when somebody is inside Gate A, none for each who waits."""
    with seats_in(large) as new:
        seat = new(ceiling=LIVE)
        began = CLOCK.monotonic()
        _, census = seat.gate.outlook.observe()
        assert CLOCK.monotonic() - began < 3.0
        assert census.families == LIVING
        assert seat.gate.outlook.glance().census.families == LIVING
        names = [f"waits-{number}" for number in range(50)]
        seat.gate.publish([Wish(name, "ada", 1) for name in names])
        asked = len(seat.asked)
        for name in names:
            seat.gate.turn(name)
            seat.gate.due()
        assert len(seat.asked) == asked

        until(lambda: seat.claimed(names[0]))

        listed = [path for method, path in seat.asked[asked:] if path.endswith("/jobs")]
        pages = -(-(FAILED + LIVE) // 500)
        gets = [each for each in seat.asked[asked:] if each == ("GET", listed[0])]
        assert len(gets) == pages
        seat.gate.end(names[0])
        for name in names:
            seat.gate.withdraw(name)


def test_processes_in_a_large_namespace_stay_small(large: Lab) -> None:
    """One is inside Gate A, with a census; one waits; an operator looks."""
    go, inside = large.folder / "go", large.folder / "inside"
    os.mkfifo(go)
    command = ("sh", "-c", f"touch {inside}; read word <{go}; exec {large.submit_script()} {{id}}")
    with started(large, "exec", "--search-id", "one", "--", *command) as one:
        until(inside.exists)
        with started(large, "exec", "--search-id", "two", "--", "true") as two:
            until(lambda: "two" in large.ledger().tickets)
            peaks = [peak_megabytes(each.pid) for each in (one, two)]
            go.write_text("on\n")
            assert [each.wait(60) for each in (one, two)] == [0, 0]
    assert max(peaks) < 200, peaks
