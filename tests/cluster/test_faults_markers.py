"""By what other programs count our searches: up while they live, gone afterwards, and heeded."""

from __future__ import annotations

from datetime import timedelta
from threading import Event, Thread

import msgspec
from fault_command import Command, submitted
from fault_jobs import counted_by_peers, delete, end, jobs, jobs_path, make
from fault_service import NewService
from fault_stage import NewYard, until
from gate_stage import Lab
from waiting_stage import TENTH

from blastyard.admission.kubernetes import marker_job
from blastyard.admission.ledger import Ledger
from blastyard.admission.marking import Plan
from blastyard.admission.outcome import Granted
from blastyard.domain.job import State
from blastyard.testing.controlplane_request import MERGE_PATCH
from blastyard.testing.proxy import FaultProxy
from blastyard.testing.proxy_fault import Delay, Rule

COMPANION = {("companion", "submit")}
STAND_IN = {("stand-in", "finalizer"), ("stand-in", "submit")}


def without(ledger: Ledger, search: str) -> Ledger:
    """The ledger after somebody has ended a hold, and left its markers where they are."""
    holds = {name: hold for name, hold in ledger.holds.items() if name != search}
    return msgspec.structs.replace(ledger, holds=holds)


def marker(lab: Lab, search: str, app: str = "submit") -> str:
    """The name of the Job that marks a search, and is there."""
    [found] = [
        job["metadata"]["name"]
        for job in jobs(lab, f"blastyard/search={marker_job.key(search)},app={app}")
    ]
    return str(found)


def patch_deadline(lab: Lab, name: str, seconds: int) -> None:
    change = {"spec": {"activeDeadlineSeconds": seconds}}
    path = f"{jobs_path(lab)}/{name}"
    lab.plane.admin.send("PATCH", path, change, kind=MERGE_PATCH).expect(200)


# -- what peers see --------------------------------------------------------------------------------


def test_the_stand_in_is_taken_down_only_when_the_companion_is_up(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B16. A finalizer may appear long after the command that ordered it has ended."""
    yard = new_yard(ceiling=1)

    def orders(_: Event) -> int:
        make(lab, "job-1", "submit")
        return 0

    assert Command(yard, "job-1", orders).result() is not None
    assert lab.markers("job-1") == STAND_IN | COMPANION
    assert counted_by_peers(lab).active == {"r-job-1"}

    assert yard.gate.marking.sweep().take == ()
    make(lab, "job-1", "finalizer")
    until(lambda: lab.markers("job-1") == COMPANION, yard)
    assert not lab.ledger().holds["job-1"].cancelled
    assert counted_by_peers(lab, later=600).active == {"job-1"}


# -- markers that outlive their search -------------------------------------------------------------


def test_a_marker_that_nobody_extends_ends_by_itself(lab: Lab, new_yard: NewYard) -> None:
    """Fault B16."""
    yard = new_yard(ceiling=1)
    submitted(lab, yard, "job-1")
    yard.close()
    delete(lab, "elb-job-id=job-1,app in (blast,finalizer)")
    name = marker(lab, "job-1")

    patch_deadline(lab, name, 1)

    def has_failed() -> bool:
        job = lab.plane.admin.send("GET", f"{jobs_path(lab)}/{name}").expect(200)
        found = [(each["type"], each["status"]) for each in job["status"].get("conditions", ())]
        return ("Failed", "True") in found

    until(has_failed)
    job = lab.plane.admin.send("GET", f"{jobs_path(lab)}/{name}").expect(200)
    assert job["spec"]["ttlSecondsAfterFinished"] == 60
    assert not counted_by_peers(lab).active


def test_any_blastyard_extends_the_markers_of_every_hold(lab: Lab, new_yard: NewYard) -> None:
    """Fault B16."""
    submitted(lab, new_yard(boot_id="elsewhere"), "job-1")
    name = marker(lab, "job-1")
    patch_deadline(lab, name, 3600)
    another = new_yard()

    def deadline() -> timedelta:
        job = lab.plane.admin.send("GET", f"{jobs_path(lab)}/{name}").expect(200)
        return timedelta(seconds=job["spec"]["activeDeadlineSeconds"])

    until(lambda: deadline() >= TENTH.marker, another)
    assert lab.markers("job-1") == COMPANION


def test_a_marker_that_stands_for_nothing_is_swept_and_never_the_one_that_took_its_name(
    lab: Lab, new_yard: NewYard, proxy: FaultProxy
) -> None:
    """Fault B16."""
    yard, swept = new_yard(), new_yard(kubeconfig=lab.through(proxy))
    stay, granted = yard.admit("job-1")
    assert stay.confirm("job-1", granted.fence)
    yard.gate.leave(stay)
    before = {job["metadata"]["uid"] for job in jobs(lab, "blastyard/marker")}
    yard.gate.outlook.change(lambda ledger, _: without(ledger, "job-1"))
    held = proxy.plan.add(Rule(Delay(), "DELETE", "/jobs/", times=2))
    sweeping = Thread(target=swept.gate.marking.sweep)
    sweeping.start()
    held.wait()

    delete(lab, "blastyard/marker")
    stay, _ = yard.admit("job-1")
    held.release()
    sweeping.join()

    after = {job["metadata"]["uid"] for job in jobs(lab, "blastyard/marker")}
    assert len(after) == 2
    assert not after & before
    yard.gate.leave(stay)
    yard.gate.outlook.change(lambda ledger, _: without(ledger, "job-1"))
    until(lambda: not jobs(lab, "blastyard/marker"), yard)


def test_a_marker_made_while_others_sweep_is_not_swept(
    lab: Lab, new_yard: NewYard, proxy: FaultProxy
) -> None:
    """Fault B16. Jobs are listed first, and the ledger is read then."""
    yard, sweeping = new_yard(), new_yard(kubeconfig=lab.through(proxy))
    yard.ledger()
    plans: list[Plan] = []
    held = proxy.plan.add(Rule(Delay(answer=True), "GET", r"/jobs\?(?!.*watch=)"))
    thread = Thread(target=lambda: plans.append(sweeping.gate.marking.sweep()))
    thread.start()
    held.wait()

    yard.hold("job-1")
    held.release()
    thread.join()

    assert [plan.take for plan in plans] == [()]
    assert lab.markers("job-1") == STAND_IN


def test_a_companion_is_not_swept_before_the_ledger_tells_of_it(
    lab: Lab, new_yard: NewYard, proxy: FaultProxy
) -> None:
    """Fault B16. It would be missed afterwards, and its search be taken for cancelled."""
    yard, sweeping = new_yard(kubeconfig=lab.through(proxy)), new_yard()
    rules: list[Rule] = []

    def submits(_: Event) -> int:
        make(lab, "job-1", "submit", "blast", "finalizer")
        rules.append(proxy.plan.add(Rule(Delay(), "PUT", "/configmaps/")))
        return 0

    command = Command(yard, "job-1", submits)
    until(lambda: bool(rules))
    rules[0].wait()
    assert lab.markers("job-1") == STAND_IN | COMPANION

    swept = sweeping.gate.marking.sweep()
    rules[0].release()

    assert swept.take == ()
    assert command.result() is not None
    assert not sweeping.gate.marking.sweep().cancelled
    assert lab.markers("job-1") == COMPANION


# -- cancelled by a peer ---------------------------------------------------------------------------


def test_a_search_that_a_peer_cancels_while_it_merges_is_removed_altogether(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B21."""
    yard = new_yard(ceiling=1)
    submitted(lab, yard, "job-1")
    for app in ("submit", "blast"):
        end(lab, f"{app}-job-1")
    until(lambda: lab.markers("job-1") == COMPANION and lab.ledger().holds["job-1"].marked, yard)

    delete(lab, "app in (blast,submit),elb-job-id=job-1")  # what a peer's cancel does

    until(lambda: not lab.ledger().holds, yard)
    assert jobs(lab, "elb-job-id=job-1") == []
    assert isinstance(yard.ask("next"), Granted)


def test_a_search_of_a_service_whose_stand_in_a_peer_deletes_is_cancelled_and_says_by_whom(
    lab: Lab, new_service: NewService
) -> None:
    """Fault B21."""
    service = new_service(ceiling=1)
    search = service.submit()
    service.running(search)
    waiting = service.submit()
    service.until(lambda: lab.ledger().holds[search].marked)

    delete(lab, f"app in (blast,submit),elb-job-id=r-{search}")

    service.until(lambda: service.search(search).state is State.CANCELLED)
    error = service.search(search).error
    assert error is not None
    assert "cancelled by another program of the cluster" in error.message
    assert "app=submit" in error.message
    assert search not in service.machine.live()
    service.running(waiting)
    assert lab.ledger().holds.keys() == {waiting}
    assert not lab.markers(search)
