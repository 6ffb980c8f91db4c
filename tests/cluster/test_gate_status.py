"""`gate status` against a real API server, by somebody who may only read."""

from __future__ import annotations

import subprocess
from datetime import datetime, timedelta

from kube_stage import Stage
from operator_fixtures import (
    JOBS,
    LEASES,
    LEDGERS,
    names,
    reader,
    stage,
    store,
)
from operator_stage import (
    LONG_AGO,
    Operator,
    finish,
    hold,
    jobs,
    lease,
    ledger,
    now,
    sign_on,
    ticket,
    write,
)

from blastyard.admission.kubernetes.documents import KubernetesDocumentStore

__all__ = ["reader", "stage", "store"]


# -- status ----------------------------------------------------------------------------------------


def test_status_of_an_empty_namespace_makes_nothing_there_and_no_data_directory(
    reader: Operator, stage: Stage
) -> None:
    shape = reader.json("status")
    text = reader("status").stdout

    assert (shape["namespace"], shape["ledger"], shape["whole"]) == (
        *(stage.namespace, "absent", False),
    )
    assert "there is none yet, or it was removed" in text
    made = names(stage, LEASES, LEDGERS, JOBS)
    assert [name for name in made if name != "kube-root-ca.crt"] == []
    assert not reader.home.exists()


def test_a_reader_sees_holds_foreign_searches_and_the_queue_with_the_reasons(
    reader: Operator, stage: Stage, store: KubernetesDocumentStore
) -> None:
    sign_on(store, "serve-1")
    write(
        store,
        ledger(
            holds={"search-1": hold(7, alias="job-1", watched=True)},
            tickets={"search-2": ticket(8, "bob"), "search-3": ticket(9, "eve", "gone-1")},
            ceiling=2,
        ),
    )
    jobs(stage.plane, stage.namespace, "job-1", "finalizer", "submit")
    jobs(stage.plane, stage.namespace, "theirs", "finalizer", "blast")

    shape = reader.json("status")
    text = reader("status").stdout

    [running] = shape["running"]
    assert (running["search"], running["id"], running["fence"], running["seen"]) == (
        *("search-1", "job-1", 7, True),
    )
    assert running["marker"] == {"needed": "companion", "up": [], "complete": False}
    [foreign] = shape["foreign"]
    assert (foreign["id"], foreign["companions"], foreign["counted"]) == ("theirs", True, True)
    assert foreign["labels"] == {"app": "finalizer", "elb-job-id": "theirs", "team": "lab-7"}
    assert shape["lone"] == []
    assert [(each["search"], each["phase"]) for each in shape["waiting"]] == [
        ("search-2", "waiting_for_capacity"),
        ("search-3", "waiting_for_runner"),
    ]
    assert shape["waiting"][0]["reason"] == (
        "2 of at most 2 are running, 1 of them started by other programs"
    )
    assert shape["waiting"][0]["estimated_start"] is None
    for part in ("search-1", "job-1", "companion missing", "theirs", "team=lab-7", "unknown"):
        assert part in text
    assert "2 (1 running, 1 of other programs, 2 waiting)" in text
    assert not reader.home.exists()


def test_a_finalizer_that_is_alone_is_shown_with_the_command_that_removes_it(
    reader: Operator, stage: Stage, store: KubernetesDocumentStore
) -> None:
    write(store, ledger(lone={"alone": now() - timedelta(minutes=20), "old": now() - LONG_AGO}))
    jobs(stage.plane, stage.namespace, "alone", "finalizer")
    jobs(stage.plane, stage.namespace, "old", "finalizer")
    jobs(stage.plane, stage.namespace, None, "finalizer")

    lone = {each["finalizers"][0]: each for each in reader.json("status")["lone"]}
    command = lone["finalizer-old"]["remove"]
    kubectl = stage.plane.kubectl.parent
    environment = {"PATH": f"{kubectl}:/bin", "KUBECONFIG": str(stage.plane.kubeconfig)}
    subprocess.run(command.split(), env=environment, check=True, capture_output=True)

    assert (lone["finalizer-alone"]["counted"], lone["finalizer-old"]["counted"]) == (True, False)
    until_counted = datetime.fromisoformat(lone["finalizer-alone"]["counted_until"])
    assert timedelta(minutes=95) < until_counted - now() < timedelta(minutes=101)
    assert lone["finalizer-x"]["remove"].endswith("delete job finalizer-x")
    assert sorted(names(stage, JOBS)) == ["finalizer-alone", "finalizer-x"]


def test_a_foreign_holder_is_judged_by_its_own_record(
    reader: Operator, stage: Stage, store: KubernetesDocumentStore
) -> None:
    renewed = "2031-01-02T03:04:05.000000Z"
    lease(
        stage.plane,
        stage.namespace,
        holderIdentity="dashboard-77aa",
        leaseDurationSeconds=600,
        acquireTime=renewed,
        renewTime=renewed,
    )

    slot = reader.json("status")["submit_slot"]
    text = reader("status").stdout

    assert (slot["holder"], slot["kind"]) == ("dashboard-77aa", "foreign")
    assert slot["until"] == "2031-01-02T03:14:35.000Z"  # 600 s of its own and 30 s for clocks
    assert slot["rule"] == (
        "its renewTime, the 600 s that it says, and 30 s for clocks that differ"
    )
    assert "held by dashboard-77aa (foreign) since 2031-01-02 03:04:05 UTC" in text


def test_a_blastyard_holder_is_judged_by_its_silence(
    reader: Operator, stage: Stage, store: KubernetesDocumentStore
) -> None:
    lease(
        stage.plane,
        stage.namespace,
        holderIdentity="blastyard-search-1-1",
        leaseDurationSeconds=900,
        renewTime="2031-01-02T03:04:05.000000Z",
    )

    slot = reader.json("status")["submit_slot"]

    assert slot["kind"] == "blastyard"
    assert "silent for 30 s" in slot["rule"]
    assert datetime.fromisoformat(slot["until"]) - now() < timedelta(seconds=32)
    assert slot["silent_seconds"] < 30


def test_starts_are_estimated_from_searches_that_ended_and_unknown_without(
    reader: Operator, stage: Stage, store: KubernetesDocumentStore
) -> None:
    sign_on(store, "serve-1")
    begun = now() - timedelta(seconds=100)
    write(
        store,
        ledger(
            holds={"search-1": hold(7, since=begun, watched=False)},
            tickets={"search-2": ticket(8), "search-3": ticket(9)},
            ceiling=1,
        ),
    )
    for number, seconds in enumerate((200, 300)):
        finish(stage.plane, stage.namespace, f"done-{number}", timedelta(seconds=seconds))
    unknown = reader.json("status")
    finish(stage.plane, stage.namespace, "done-2", timedelta(seconds=400))
    known = reader.json("status")

    assert unknown["estimate"] is None
    assert [each["estimated_start"] for each in unknown["waiting"]] == [None, None]
    assert known["estimate"] == {"searches": 3, "median_seconds": 300.0}
    first, second = (datetime.fromisoformat(each["estimated_start"]) for each in known["waiting"])
    assert abs((first - begun - timedelta(seconds=300)).total_seconds()) < 0.01
    assert second - first == timedelta(seconds=300)
