"""Beside programs that poll, under a load that never ends: each gets in, and the ceiling holds."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from threading import Event, Thread
from typing import Any

from fault_command import Command
from fault_jobs import a_job, counted_by_peers, delete, end, jobs_path, kubeconfig_of_stranger, make
from fault_stage import NewYard, Yard, until
from gate_stage import Lab
from waiting_stage import CLOCK, TENTH

from blastyard.admission.ledger import HoldState
from blastyard.kube.wire import Call
from blastyard.testing.foreign.api import Api, Document
from blastyard.testing.foreign.count import count, is_terminal, list_jobs
from blastyard.testing.foreign.kind import DASHBOARD, SERVICE, Pace, Rules, Setup
from blastyard.testing.foreign.submitter import ForeignSubmitter
from blastyard.testing.foreign.time import RealTime, Stopped
from blastyard.testing.plain_wire import Access, PlainWire

CEILING = 2
TIMINGS = replace(TENTH, unbroken_use=timedelta(seconds=10))
PACE = Pace(scale=0.05, life=(5.0, 10.0), merge=(1.0, 5.0))
RULES = Rules(ceiling=CEILING, grace_seconds=4.0)
"""A peer's patience with a finalizer that is alone, scaled as all of its own."""


class Load:
    """Searches of ours without end: as soon as one has ended, its place in the queue is taken."""

    def __init__(self, lab: Lab, yards: list[Yard], places: int) -> None:
        self._lab = lab
        self._stop = Event()
        self.done = 0
        turns = zip(range(places), itertools.cycle(yards), strict=False)
        self._threads = [
            Thread(target=self._run, args=(yard, place), daemon=True) for place, yard in turns
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, yard: Yard, place: int) -> None:
        with closing(stranger(self._lab)) as wire:
            for number in itertools.count():
                if self._stop.is_set():
                    return
                search = f"ours-{place}-{number}"
                command = Command(yard, search, partial(self._submit, wire, search))
                command.result()
                assert command.error is None
                for app in ("submit", "finalizer"):
                    end(self._lab, f"{app}-{search}")
                self.done += 1

    def _submit(self, wire: PlainWire, search: str, _: Event) -> int:
        for app in ("submit", "finalizer"):
            body = json.dumps(a_job(search, app)).encode()
            assert wire.send(Call("POST", jobs_path(self._lab), body=body)).status == 201
        return 0

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def stranger(lab: Lab) -> PlainWire:
    return PlainWire(Access.read(kubeconfig_of_stranger(lab)), "stranger")


@contextmanager
def pollers(lab: Lab, *setups: Setup) -> Iterator[list[dict[str, Any]]]:
    """Foreign programs at work; what they tell."""
    told: list[dict[str, Any]] = []
    time = RealTime()

    def run(setup: Setup) -> None:
        with closing(stranger(lab)) as wire:
            try:
                ForeignSubmitter(setup, wire, time, told.append).run()
            except Stopped:
                return

    threads = [Thread(target=run, args=(setup,), daemon=True) for setup in setups]
    for thread in threads:
        thread.start()
    try:
        yield told
    finally:
        time.stop()
        for thread in threads:
            thread.join()


def test_each_of_two_pollers_gets_in_beside_a_queue_that_never_ends(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B17. The ceiling holds all the while, and peers never lose sight of ours."""
    yards = [new_yard(ceiling=CEILING, timings=TIMINGS) for _ in range(2)]
    load = Load(lab, yards, 5)
    until(lambda: load.done >= 3, *yards)
    setups = [
        Setup(kind.name, lab.namespace, kind, searches=2, pace=PACE, rules=RULES)
        for kind in (DASHBOARD, SERVICE)
    ]
    with closing(stranger(lab)) as wire, pollers(lab, *setups) as told:
        api = Api(wire, lab.namespace)

        def all_have_been_in() -> bool:
            look(list_jobs(api))
            return sum(deed["what"] == "ended" for deed in told) == 4

        try:
            until(all_have_been_in, *yards)
        finally:
            load.stop()

    outcomes = [(deed["who"], deed["outcome"]) for deed in told if deed["what"] == "ended"]
    assert sorted(outcomes) == [("dashboard", "completed")] * 2 + [("service", "completed")] * 2


def look(jobs: list[Document]) -> None:
    """What must be true of the Jobs at every moment."""
    live = [job for job in jobs if not is_terminal(job)]
    real = {
        job["metadata"]["labels"]["elb-job-id"]
        for job in live
        if "blastyard/marker" not in job["metadata"]["labels"]
    }
    assert len(real) <= CEILING, sorted(real)
    in_an_hour = count(jobs, CLOCK.now().timestamp() + 3600, RULES.grace_seconds)
    hidden = {name for name in real if name.startswith("ours-")}
    hidden -= in_an_hour.active | {name.removeprefix("r-") for name in in_an_hour.active}
    assert not hidden, "a peer would take them for phantoms"


def test_peers_count_a_search_of_ours_from_its_grant_to_its_end(
    lab: Lab, new_yard: NewYard
) -> None:
    """Faults B2 and B16. A peer would take a finalizer that is alone for a phantom after 300 s."""
    yard = new_yard(ceiling=1)
    seen: list[frozenset[str]] = []

    def look() -> None:
        for later in (0.0, 600.0, 100_000.0):
            found = counted_by_peers(lab, later=later)
            assert found.phantoms == frozenset()
            seen.append(found.active)
            assert found.active, "peers see a free slot"

    def submits(_: Event) -> int:
        look()
        for app in ("submit", "blast", "finalizer"):
            make(lab, "job-1", app)
            look()
        return 0

    command = Command(yard, "job-1", submits)
    assert command.result() is not None
    look()
    for app in ("submit", "blast"):
        end(lab, f"{app}-job-1")
        look()
    delete(lab, "app in (blast,submit),!blastyard/marker")  # their time-to-live; it merges
    look()
    until(lambda: lab.markers("job-1") == {("companion", "submit")}, yard)
    look()

    assert set().union(*seen) == {"r-job-1", "job-1"}
    end(lab, "finalizer-job-1")
    until(lambda: not lab.markers("job-1"), yard)
    assert counted_by_peers(lab).active == frozenset()


def test_peers_see_a_split_search_between_two_of_its_parts(lab: Lab, new_yard: NewYard) -> None:
    """Fault B20."""
    yard = new_yard(ceiling=2)
    yard.hold("parent")
    for part in ("part-1", "part-2"):
        stay, granted = yard.admit(part, family="parent")
        assert stay.confirm(part, granted.fence)
        yard.gate.leave(stay)
        make(lab, part, "submit", "finalizer")
        assert lab.ledger().holds[part].state is HoldState.SUBMITTED
        for app in ("submit", "finalizer"):
            end(lab, f"{app}-{part}")
        yard.gate.end(part)

        assert counted_by_peers(lab).active == {"r-parent"}
        assert counted_by_peers(lab, later=3600).active == {"r-parent"}
