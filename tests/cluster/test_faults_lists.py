"""Counting what runs when the list of it is long, old, in pieces, or not to be had."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from fault_command import started
from fault_jobs import (
    a_job,
    jobs,
    jobs_path,
    kubeconfig_of_stranger,
    make,
)
from fault_service import NewService
from fault_stage import NewYard, until
from gate_stage import Lab
from waiting_stage import CLOCK, is_full

from blastyard.admission.outcome import Granted
from blastyard.domain.errors import Unavailable
from blastyard.domain.job import Phase
from blastyard.kube.wire import Call
from blastyard.testing.plain_wire import Access, PlainWire
from blastyard.testing.proxy import FaultProxy
from blastyard.testing.proxy_fault import (
    HalfOpen,
    LostAnswer,
    Rule,
    Said,
    Truncated,
    html,
    too_many,
    unavailable,
)

LIST = r"/jobs\?(?!.*watch=)"
EXPIRED = Said(
    410,
    b'{"kind":"Status","apiVersion":"v1","metadata":{"continue":"ABC"},"status":"Failure",'
    b'"message":"The provided continue parameter is too old to display a consistent list result.",'
    b'"reason":"Expired","code":410}',
)


# -- how it is counted -----------------------------------------------------------------------------


def test_a_list_that_expires_between_its_pages_is_read_again_from_the_beginning(
    lab: Lab, new_yard: NewYard, proxy: FaultProxy
) -> None:
    """Fault B5."""
    names = {f"job-{number:04d}" for number in range(1200)}
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda some: make_many(lab, some), batches(sorted(names), 4)))
    yard = new_yard(kubeconfig=lab.through(proxy), ceiling=1201)
    expires = proxy.plan.add(Rule(EXPIRED, "GET", f"{LIST}.*continue=", skip=1))
    proxy.log.clear()

    _, census = yard.gate.outlook.observe()

    assert expires.hits == 1
    assert census.families == names
    asked = [("continue=" in each.target) for each in proxy.log.records("GET", LIST)]
    assert asked == [False, True, True, False, True, True]
    assert isinstance(yard.ask("last"), Granted)
    assert is_full(yard.ask("one-too-many"))


def batches(names: list[str], count: int) -> list[list[str]]:
    return [names[first::count] for first in range(count)]


def make_many(lab: Lab, names: list[str]) -> None:
    with closing(PlainWire(Access.read(kubeconfig_of_stranger(lab)), "stranger")) as wire:
        for name in names:
            document = json.dumps(a_job(name, "finalizer")).encode()
            assert wire.send(Call("POST", jobs_path(lab), body=document)).status == 201


def test_who_asks_for_a_slot_counts_afresh_while_the_informer_hears_nothing(
    lab: Lab, new_yard: NewYard, proxy: FaultProxy
) -> None:
    """Fault B6."""
    proxy.plan.add(Rule(HalfOpen(), "GET", "/jobs.*watch=", times=None))
    yard = new_yard(kubeconfig=lab.through(proxy), ceiling=1)
    make(lab, "theirs", "finalizer", "submit")
    assert yard.gate.outlook.glance().census.families == frozenset()
    proxy.log.clear()

    assert is_full(yard.ask("ours"))

    asked = proxy.log.records("GET", LIST)
    assert len(asked) == 1
    assert not [each for each in asked if "resourceVersion" in each.target]


def test_a_list_that_fails_admits_nobody_and_is_said(
    lab: Lab, new_yard: NewYard, proxy: FaultProxy
) -> None:
    """Fault B7."""
    yard = new_yard(kubeconfig=lab.through(proxy))
    for fault in (unavailable(), EXPIRED, html(), too_many(), Truncated(40), LostAnswer()):
        failing = proxy.plan.add(Rule(fault, "GET", LIST, times=None))

        with pytest.raises(Unavailable, match="jobs"):
            yard.ask("ours")

        assert failing.hits
        proxy.plan.clear()
    assert not lab.ledger().holds
    assert not jobs(lab)
    assert lab.holder() == ""
    number = len(lab.ledger().tickets) + 10
    assert isinstance(yard.ask("ours", number), Granted)


def test_a_hold_that_nobody_sees_and_a_foreign_search_are_two(lab: Lab, new_yard: NewYard) -> None:
    """Fault B8."""
    yard = new_yard(ceiling=2)
    stay, _ = yard.admit("ours")
    yard.gate.leave(stay)
    make(lab, "theirs", "finalizer", "submit")

    assert is_full(yard.ask("next"))

    make(lab, "ours", "finalizer", "submit")  # seen under its hold's id, it is no third one
    yard.gate.change_policy("olga", ceiling=3)
    assert isinstance(yard.ask("next", 2), Granted)
    assert is_full(yard.ask("another"))


def test_a_command_that_cannot_count_is_told_so_and_is_not_run(lab: Lab, proxy: FaultProxy) -> None:
    """Fault B7. The wait that was allowed is not exceeded."""
    proxy.plan.add(Rule(unavailable(), "GET", LIST, times=None))
    touched = lab.folder / "touched"
    words = ("exec", "--wait", "4s", "--search-id", "ours", "--", "touch", str(touched))
    began = CLOCK.monotonic()

    with started(lab, *words, KUBECONFIG=str(lab.through(proxy))) as process:
        _, said = process.communicate(timeout=60)

    assert process.returncode == 123
    assert "list jobs" in said
    assert not touched.exists()
    assert 4 <= CLOCK.monotonic() - began < 12


def test_a_search_waits_with_the_reason_while_nobody_can_count_and_its_deadline_runs(
    lab: Lab, proxy: FaultProxy, new_service: NewService
) -> None:
    """Fault B7."""
    service = new_service(lab.through(proxy), BLAST_SUBMIT_SLOT_WAIT_MAX_SECONDS="6")
    until(lambda: service.yard.gate.ledger().is_whole)
    proxy.plan.add(Rule(unavailable(), "GET", LIST, times=None))
    search = service.submit()

    until(lambda: service.search(search).phase == Phase.WAITING_FOR_SUBMIT_SLOT)
    reasons = [event.reason for event in service.yard.store.events(search)]
    asked = len(proxy.log.records("GET", LIST))
    until(lambda: service.search(search).state.is_terminal)

    assert len(proxy.log.records("GET", LIST)) - asked <= 6  # it does not ask all the time
    assert "list jobs" in reasons[-1]
    failure = service.search(search).error
    assert failure is not None
    assert failure.code == "submit_slot_timeout"
    assert "list jobs" in failure.message
    assert not service.machine.started
    until(lambda: not lab.ledger().tickets and not lab.ledger().holds)
