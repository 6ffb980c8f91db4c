"""The ledger of a namespace when it cannot be read, or when somebody has deleted it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from fault_command import Command, submitted
from fault_jobs import jobs, make
from fault_service import NewService
from fault_stage import NewYard, Yard, until
from gate_stage import Lab
from waiting_stage import TENTH, reason

from blastyard.admission.ledger import HoldState, Ledger
from blastyard.admission.outcome import Granted, Reason
from blastyard.domain.job import Phase
from blastyard.kube import rbac
from blastyard.testing.controlplane_request import MERGE_PATCH

BROKEN = "{ edited by hand"
NEWER = '{"format":3,"uid":"u","policy":{},"fence":7,"slots":[]}'


def ledger_path(lab: Lab) -> str:
    return f"/api/v1/namespaces/{lab.namespace}/configmaps/{rbac.ledger_name(lab.namespace)}"


def text(lab: Lab) -> str:
    """What stands in the ledger's ConfigMap."""
    return str(lab.plane.admin.send("GET", ledger_path(lab)).expect(200)["data"]["ledger"])


def write(lab: Lab, body: str) -> None:
    change = {"data": {"ledger": body}}
    lab.plane.admin.send("PATCH", ledger_path(lab), change, kind=MERGE_PATCH).expect(200)


def lose(lab: Lab) -> None:
    """Delete the ledger by hand."""
    lab.plane.admin.send("DELETE", ledger_path(lab)).expect(200)


def whole(lab: Lab, before: Ledger, *yards: Yard) -> Ledger:
    """Wait until a new ledger is whole."""
    found: list[Ledger] = []

    def is_whole() -> bool:
        if not lab.plane.admin.finds(ledger_path(lab)):
            return False
        found.append(lab.ledger())
        return found[-1].is_whole and found[-1].uid != before.uid

    until(is_whole, *yards)
    return found[-1]


# -- one that cannot be read -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (BROKEN, ("cannot be read", "blastyard gate sweep --rebuild")),
        ("", ("cannot be read", "blastyard gate sweep --rebuild")),
        (NEWER, ("has format 3", "update this blastyard")),
    ],
    ids=["broken", "empty", "newer"],
)
def test_nobody_is_admitted_on_a_ledger_that_cannot_be_read_and_it_is_said_why(
    lab: Lab, body: str, said: tuple[str, str]
) -> None:
    """Fault B13."""
    script = lab.submit_script()
    lab.run("exec", "--search-id", "job-1", "--", str(script), "{id}")
    write(lab, body)

    refused = lab.run("exec", "--search-id", "job-2", "--", str(script), "{id}")

    assert refused.returncode == 123
    assert all(part in refused.stderr for part in (*said, "next:"))
    assert not jobs(lab, "elb-job-id=job-2")
    assert text(lab) == body
    assert lab.holder() == ""


def test_a_search_waits_with_that_reason_and_goes_on_when_the_ledger_is_mended(
    lab: Lab, new_service: NewService
) -> None:
    """Fault B13."""
    service = new_service(ceiling=1)
    service.until(lambda: lab.plane.admin.finds(ledger_path(lab)))
    mended = text(lab)
    write(lab, BROKEN)

    search = service.submit()

    service.until(lambda: service.search(search).phase == Phase.WAITING_FOR_SUBMIT_SLOT)
    reasons = [event.reason for event in service.yard.store.events(search)]
    assert "cannot be read" in reasons[-1]
    assert not service.machine.started
    write(lab, mended)
    service.running(search)


# -- one that is gone ------------------------------------------------------------------------------


def test_a_ledger_deleted_by_hand_is_rebuilt_with_what_runs_before_anybody_is_admitted(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B14."""
    yard, another = new_yard(), new_yard(boot_id="elsewhere")
    for search in ("job-1", "job-2"):
        submitted(lab, yard, search)
    another.gate.change_policy("olga", ceiling=2)
    until(lambda: knows_policy(yard, 1) and knows_policy(another, 1), yard, another)
    waiting = Command(another, "next", lambda _: 0)
    until(lambda: bool(waiting.told), yard, another)
    before = lab.ledger()

    lose(lab)

    ledger = whole(lab, before, yard, another)
    assert ledger.holds.keys() == {"job-1", "job-2"}
    assert {(hold.state, hold.watched) for hold in ledger.holds.values()} == {
        (HoldState.SUBMITTED, True)
    }
    assert (ledger.policy.ceiling, ledger.policy.version) == (2, before.policy.version)
    assert ledger.fence > before.fence
    assert reason(yard.ask("another")) in (Reason.CAPACITY, Reason.RESTORING)
    waiting.passage.stop()
    assert waiting.result() is None
    assert not waiting.program.begun.is_set()


def knows_policy(yard: Yard, version: int) -> bool:
    """Whether the others could learn the policy from this submitter's document."""
    seen = yard.gate.submitters()[yard.gate.me.name].submitter.policy
    return seen is not None and seen.version >= version


def test_what_a_service_runs_is_brought_back_by_it_and_goes_on(
    lab: Lab, new_yard: NewYard, new_service: NewService
) -> None:
    """Fault B14."""
    service, yard = new_service(ceiling=1), new_yard(ceiling=1)
    first, second = service.submit(), service.submit()
    service.running(first)
    before = lab.ledger()

    lose(lab)

    ledger = whole(lab, before, yard)
    assert ledger.holds.keys() == {first}
    hold = ledger.holds[first]
    assert (hold.submitter, hold.ticket.user) == (service.yard.gate.me.name, "ada")
    assert reason(yard.ask("theirs")) is Reason.CAPACITY
    yard.gate.withdraw("theirs")
    service.machine.complete(first)
    service.running(second)
    assert [name for name, _ in service.machine.started] == [first, second]


def test_a_foreign_search_counts_on_a_new_ledger_too(lab: Lab, new_yard: NewYard) -> None:
    """Fault B14."""
    yard = new_yard(ceiling=2)
    submitted(lab, yard, "job-1")
    make(lab, "theirs", "blast")
    before = lab.ledger()

    lose(lab)

    whole(lab, before, yard)
    assert reason(yard.ask("next")) is Reason.CAPACITY


@pytest.mark.parametrize("document", ["stays", "is gone too"])
def test_what_a_submitter_that_is_down_had_running_is_claimed_by_its_markers(
    lab: Lab, new_yard: NewYard, document: str
) -> None:
    """Fault B22."""
    before = down_with_a_family(lab, new_yard)
    if document == "is gone too":
        new_yard().gate.forget(before.holds["part"].submitter)
    lose(lab)
    yard = new_yard(ceiling=2, timings=replace(TENTH, command=timedelta(seconds=60)))

    assert reason(yard.ask("next")) is Reason.RESTORING
    first = lab.ledger()
    ledger = whole(lab, before, yard)

    assert ledger.holds.keys() == {"parent", "part"}
    for search, hold in ledger.holds.items():
        assert hold.submitter == before.holds[search].submitter
        assert (hold.ticket.user, hold.ticket.family) == (
            "ada",
            before.holds[search].ticket.family,
        )
    assert isinstance(yard.ask("next", 2), Granted)
    assert reason(yard.ask("another", 3)) is Reason.CAPACITY
    waited = lab.ledger().holds["next"].since - first.holds["parent"].since
    assert waited >= TENTH.forgotten / 2


def test_no_claim_of_a_silent_submitter_is_dropped_while_it_is_waited_for(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B22."""
    before = down_with_a_family(lab, new_yard)
    lose(lab)
    yard = new_yard(ceiling=2, timings=replace(TENTH, command=timedelta(seconds=0.2)))
    yard.tick()
    seen = [lab.ledger()]

    def is_whole() -> bool:
        seen.append(lab.ledger())
        return seen[-1].is_whole

    until(is_whole, yard)

    restoring = [ledger.holds.keys() for ledger in seen if not ledger.is_whole]
    assert set(map(frozenset, restoring)) == {frozenset(before.holds)}


def down_with_a_family(lab: Lab, new_yard: NewYard) -> Ledger:
    """What an installation had running that is down now: a split search, and a part of it."""
    down = new_yard(kind="serve", home="elsewhere", boot_id="elsewhere")
    down.hold("parent")
    stay, _ = down.admit("part", family="parent")
    down.gate.leave(stay)
    down.close()
    return lab.ledger()


def test_a_submit_command_that_has_ended_is_not_waited_for(lab: Lab, new_yard: NewYard) -> None:
    """Fault B22. Its markers tell all that it could."""
    ended = new_yard(boot_id="elsewhere")
    submitted(lab, ended, "job-1")
    before = lab.ledger()
    ended.gate.retire()
    ended.close()
    lose(lab)
    yard = new_yard(ceiling=1)

    ledger = whole(lab, before, yard)

    assert ledger.holds.keys() == {"job-1"}
    assert reason(yard.ask("next")) is Reason.CAPACITY
