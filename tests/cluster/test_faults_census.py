"""Counting what runs in a namespace, whoever started it, when something is odd about it."""

from __future__ import annotations

import itertools
import json
import signal
from contextlib import closing
from datetime import timedelta
from threading import Event
from typing import Any

import msgspec
import pytest
from fault_command import Command, started
from fault_jobs import (
    counted_by_peers,
    delete,
    end,
    jobs,
    kubeconfig_of_stranger,
    make,
    set_status,
)
from fault_stage import NewYard, Yard, until
from gate_stage import Lab
from waiting_stage import TENTH, is_full

from blastyard.admission.ledger import HoldState, Ledger
from blastyard.admission.outcome import Granted
from blastyard.admission.timing import Timings
from blastyard.service.submitting import Fate, Result
from blastyard.testing.foreign.kind import RUDE, Setup
from blastyard.testing.foreign.submitter import ForeignSubmitter
from blastyard.testing.foreign.time import RealTime
from blastyard.testing.plain_wire import Access, PlainWire

# -- what counts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("app", ["submit", "blast", "finalizer"])
def test_any_live_job_of_an_id_occupies_a_slot(lab: Lab, new_yard: NewYard, app: str) -> None:
    """Fault B1. A foreign submitter may have died before it made its finalizer."""
    yard = new_yard(ceiling=1)
    make(lab, "theirs", app)

    assert is_full(yard.ask("ours"))

    end(lab, f"{app}-theirs")
    assert isinstance(yard.ask("ours", 2), Granted)


def test_a_submitter_killed_before_its_finalizer_was_in_the_ledger_first_and_is_counted(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B1."""
    kubectl = lab.plane.kubectl
    script = lab.folder / "half"
    script.write_text(
        f"#!/bin/sh -e\n{kubectl} get configmap elb-blast-ledger-{lab.namespace} -o yaml "
        f">{lab.folder}/before\n{kubectl} create -f {lab.folder}/job.json >&2\necho made\n"
        "exec sleep 600\n"
    )
    script.chmod(0o755)
    labels = {"app": "submit", "elb-job-id": "job-half"}
    pod = {"restartPolicy": "Never", "containers": [{"name": "none", "image": "localhost/none:1"}]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "submit-half", "labels": labels},
        "spec": {"suspend": True, "template": {"spec": pod}},
    }
    (lab.folder / "job.json").write_text(json.dumps(job))
    with started(lab, "exec", "--search-id", "job-half", "--", str(script)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "made\n"
        process.send_signal(signal.SIGKILL)
        process.wait()

    assert '"job-half":' in (lab.folder / "before").read_text()
    yard = new_yard()
    yard.gate.change_policy("olga", ceiling=1)
    until(lambda: lab.holder() == "", yard)
    assert lab.ledger().holds["job-half"].state is HoldState.RESERVED
    assert is_full(yard.ask("next"))
    assert counted_by_peers(lab).active == {"r-job-half"}


def test_a_finalizer_that_merges_for_ten_minutes_without_companions_is_counted(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B2."""
    yard = new_yard(ceiling=1, timings=Timings())
    make(lab, "theirs", "blast", "submit", "finalizer")
    for app in ("blast", "submit"):
        end(lab, f"{app}-theirs")
    delete(lab, "app in (blast,submit)")  # what a time-to-live does to finished Jobs
    assert is_full(yard.ask("ours"))

    def ten_minutes_earlier(ledger: Ledger, now: object) -> Ledger:
        lone = {name: at - timedelta(minutes=10) for name, at in ledger.lone.items()}
        return msgspec.structs.replace(ledger, lone=lone)

    yard.gate.outlook.change(ten_minutes_earlier)

    assert lab.ledger().lone.keys() == {"theirs"}
    assert counted_by_peers(lab, later=600).phantoms == {"theirs"}
    assert is_full(yard.ask("ours", 2))


# -- finalizers that nothing stands behind ---------------------------------------------------------


def test_what_our_failed_command_left_is_deleted_and_once_more_after_a_while(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B3."""
    yard = new_yard(ceiling=1)

    def fails(_: Event) -> int:
        make(lab, "job-1", "submit", "finalizer")
        return 3

    assert Command(yard, "job-1", fails).result() == Result(Fate.FAILED)
    hold = lab.ledger().holds["job-1"]
    assert (hold.state, hold.failed_at is None) == (HoldState.RESERVED, False)
    assert jobs(lab, "elb-job-id=job-1") == []
    make(lab, "job-1", "finalizer")  # a create that had timed out lands all the same
    assert is_full(yard.ask("next"))

    until(lambda: not lab.ledger().holds and not lab.markers("job-1"), yard)

    assert jobs(lab, "elb-job-id=job-1") == []
    assert isinstance(yard.ask("next", 2), Granted)


def test_a_finalizer_whose_companions_were_seen_to_be_deleted_is_a_phantom_at_once(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B3."""
    yard = new_yard(ceiling=1)
    make(lab, "theirs", "submit", "blast", "finalizer")
    until(lambda: "theirs" in yard.gate.outlook.glance().census.families)
    delete(lab, "app in (blast,submit),elb-job-id=theirs")
    until(lambda: "theirs" in yard.informer.jobs.deserted)

    assert isinstance(yard.ask("ours"), Granted)
    assert [job["metadata"]["name"] for job in jobs(lab, "elb-job-id=theirs")] == [
        "finalizer-theirs"
    ]


def test_a_finalizer_that_was_always_alone_is_counted_and_shown_until_it_is_forgotten(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B3."""
    yard = new_yard(ceiling=1)
    make(lab, "theirs", "finalizer")
    assert is_full(yard.ask("ours"))
    [shown] = status(lab)["lone"]
    assert (shown["id"], shown["counted"]) == ("theirs", True)
    assert shown["remove"].endswith("delete job finalizer-theirs")
    numbers = itertools.count(2)

    until(lambda: isinstance(yard.ask("ours", next(numbers)), Granted), yard)

    ledger = lab.ledger()
    assert ledger.holds["ours"].since - ledger.lone["theirs"] >= TENTH.forgotten


def test_an_operator_who_knows_better_has_a_lone_finalizer_forgotten_at_once(
    lab: Lab, new_yard: NewYard
) -> None:
    """Fault B3."""
    yard = new_yard(ceiling=1, timings=Timings())
    make(lab, "theirs", "finalizer")
    assert is_full(yard.ask("ours"))

    forgotten = lab.run("gate", "forget", "theirs")

    assert forgotten.stdout == "theirs counts no more; its finalizer is still there\n"
    assert isinstance(yard.ask("ours", 2), Granted)


def status(lab: Lab) -> Any:
    """What `gate status` shows."""
    return json.loads(lab.run("gate", "status", "--json").stdout)


def test_a_pod_that_failed_and_is_tried_again_is_running(lab: Lab, new_yard: NewYard) -> None:
    """Fault B4."""
    yard = new_yard(ceiling=1)
    make(lab, "theirs", "finalizer", "blast")
    for name in ("finalizer-theirs", "blast-theirs"):
        set_status(lab, name, startTime="2024-05-06T07:08:09Z", active=1, failed=1)

    assert is_full(yard.ask("ours"))

    for name in ("finalizer-theirs", "blast-theirs"):
        end(lab, name, "Failed")
    assert isinstance(yard.ask("ours", 2), Granted)


def test_a_search_that_came_past_gate_a_is_counted_metered_and_shown(
    lab: Lab, new_yard: NewYard, caplog: pytest.LogCaptureFixture
) -> None:
    """Fault B18."""
    yard = new_yard(ceiling=1, kind="serve")
    told: list[dict[str, object]] = []
    with closing(PlainWire(Access.read(kubeconfig_of_stranger(lab)), "stranger")) as wire:
        rude = ForeignSubmitter(Setup("rude", lab.namespace, RUDE), wire, RealTime(), told.append)
        rude.step()
    search = str(told[0]["search"])

    assert is_full(yard.ask("ours"))
    until(lambda: b"blastyard_passed_searches_total 1.0" in metrics_after_upkeep(yard))

    assert "k8s_gate_passed" in caplog.text
    assert search in caplog.text
    assert [each["id"] for each in status(lab)["foreign"]] == [search]


def metrics_after_upkeep(yard: Yard) -> bytes:
    yard.opened.tend()
    return yard.opened.instruments.exposition()
