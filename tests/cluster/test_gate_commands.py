"""What an operator decides, by the Role that blastyard asks for, against a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from kube_stage import Stage
from operator_fixtures import (
    JOBS,
    names,
    operator,
    stage,
    store,
)
from operator_stage import (
    LONG_AGO,
    Operator,
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
from blastyard.admission.ledger import Policy, decode_ledger, encode
from blastyard.admission.port import LEDGER

__all__ = ["operator", "stage", "store"]


# -- deciding --------------------------------------------------------------------------------------


def test_the_ceiling_and_who_changed_it_are_kept(operator: Operator) -> None:
    drained = operator("ceiling", "0")
    capped = operator.json("user-cap", "2")
    shape = operator.json("status")

    assert drained.stdout == "ceiling 0, per-user cap none\n"
    assert "drained" in drained.stderr
    assert capped == {"ceiling": 0, "user_cap": 2}
    assert [(each["what"], each["by"]) for each in shape["policy_changes"]] == [
        ("ceiling 3 -> 0", "olga"),
        ("per-user cap none -> 2", "olga"),
    ]
    assert "drained" in operator("status").stdout
    assert not operator.home.exists()


@pytest.mark.parametrize("command", ["ceiling", "user-cap"])
@pytest.mark.parametrize("value", ["-1", "three", "1.5", ""])
def test_a_limit_that_is_no_number_is_refused_before_any_call(
    command: str, value: str, tmp_path: Path
) -> None:
    nobody = Operator.with_kubeconfig(tmp_path / "no-such-file", tmp_path)

    code, error, _ = nobody.error(command, "--", value)

    assert (code, error) == (1, "request_invalid")


def test_a_search_is_set_aside_and_let_go_on_by_any_beginning_of_its_id(
    operator: Operator, store: KubernetesDocumentStore
) -> None:
    sign_on(store, "serve-1")
    write(store, ledger(tickets={"search-10": ticket(8), "search-11": ticket(9)}))

    parked = operator.json("park", "search-10")
    after = operator.json("status")["waiting"]
    unparked = operator("unpark", "search-10").stdout

    assert (parked["id"], parked["phase"], parked["reason"]) == (
        *("search-10", "parked", "set aside by olga"),
    )
    assert [each["eligible"] for each in after] == [False, True]
    assert unparked.startswith("search-10 ")
    assert "begins search-10, search-11" in operator.error("park", "search-1")[2]
    code, error, said = operator.error("park", "other")
    assert (code, error) == (1, "search_unknown")
    assert "there is search-10, search-11" in said


def test_a_search_that_runs_cannot_be_set_aside(
    operator: Operator, store: KubernetesDocumentStore
) -> None:
    write(store, ledger(holds={"search-1": hold(7)}))

    assert operator.error("park", "search-1")[:2] == (1, "search_finished")


# -- forgetting ------------------------------------------------------------------------------------


def test_a_forgotten_finalizer_counts_no_more_and_stays_where_it_is(
    operator: Operator, stage: Stage, store: KubernetesDocumentStore
) -> None:
    write(store, ledger())
    jobs(stage.plane, stage.namespace, "alone", "finalizer")
    before = operator.json("status")

    forgotten = operator.json("forget", "alo")
    again = operator("forget", "alone")
    after = operator.json("status")

    assert (before["occupied"], after["occupied"]) == (1, 0)
    assert forgotten == {"id": "alone", "hold": False}
    assert again.returncode == 0
    assert [each["counted"] for each in after["lone"]] == [False]
    assert names(stage, JOBS) == ["finalizer-alone"]


def test_what_is_no_lone_finalizer_is_not_forgotten(
    operator: Operator, stage: Stage, store: KubernetesDocumentStore
) -> None:
    write(store, ledger(holds={"search-1": hold(7)}))
    jobs(stage.plane, stage.namespace, "busy", "finalizer", "blast")

    code, _, said = operator.error("forget", "busy")
    assert code == 1
    assert f"kubectl -n {stage.namespace} delete jobs -l elb-job-id=busy" in said
    assert "--hold search-1" in operator.error("forget", "search-1")[2]
    assert operator.error("forget", "other")[1] == "search_unknown"
    assert "there is busy, search-1" in operator.error("forget", "other")[2]
    assert operator.json("status")["occupied"] == 2


def test_an_operators_word_ends_a_hold_unless_it_is_seen_to_live(
    operator: Operator, stage: Stage, store: KubernetesDocumentStore
) -> None:
    write(
        store,
        ledger(
            holds={name: hold(number) for number, name in enumerate(("dead", "seen", "inside"))}
        ),
    )
    jobs(stage.plane, stage.namespace, "seen", "finalizer")
    lease(
        stage.plane,
        stage.namespace,
        holderIdentity="blastyard-inside-1",
        leaseDurationSeconds=900,
        renewTime="2031-01-02T03:04:05.000000Z",
    )

    assert operator("forget", "--hold", "dead").stdout == "dead has no run slot any more\n"
    assert "Jobs of seen are still running" in operator.error("forget", "--hold", "seen")[2]
    assert "inside the submit slot" in operator.error("forget", "--hold", "inside")[2]
    assert operator.error("forget", "--hold", "dead")[1] == "search_unknown"
    assert [each["search"] for each in operator.json("status")["running"]] == ["seen", "inside"]


# -- sweeping --------------------------------------------------------------------------------------


def test_a_sweep_frees_what_has_ended_and_says_so(
    operator: Operator, store: KubernetesDocumentStore
) -> None:
    write(store, ledger(holds={"search-1": hold(7, since=now() - LONG_AGO, watched=True)}))
    assert operator.json("status")["running"][0]["ended"] is True

    swept = operator("sweep")

    assert "slots of searches that have ended were freed" in swept.stdout
    assert "search-1 has no run slot any more" in swept.stdout
    assert operator.json("status")["running"] == []
    assert operator("sweep").stdout == "nothing had to be done\n"
    assert not operator.home.exists()


def test_a_sweep_clears_what_a_dead_submitter_left(
    operator: Operator, store: KubernetesDocumentStore
) -> None:
    write(store, ledger(tickets={"search-2": ticket(8, submitter="exec-12-34-gone")}))

    assert "search-2 waits no more" in operator.json("sweep")["changes"]


def test_a_sweep_puts_up_the_markers_that_are_missing(
    operator: Operator, stage: Stage, store: KubernetesDocumentStore
) -> None:
    sign_on(store, "serve-1")
    write(store, ledger(holds={"search-1": hold(7)}))

    swept = operator.json("sweep")

    assert swept["done"] == ["markers were put up, extended or removed"]
    assert "search-1 is shown to others by: stand-in" in swept["changes"]
    assert len(names(stage, JOBS)) == 2


# -- a ledger that cannot be read ------------------------------------------------------------------


def test_an_unreadable_ledger_is_explained_and_rebuilt_from_markers_and_submitters(
    operator: Operator, stage: Stage, store: KubernetesDocumentStore
) -> None:
    write(store, ledger(holds={"search-1": hold(7, submitter="exec-1-2-gone")}))
    operator("sweep")  # its marker is up
    sign_on(store, "serve-9", Policy(ceiling=5, version=4))
    write(store, b"{ broken by hand")

    code, error, said = operator.error("status")
    unasked = operator.error("sweep", "--rebuild")
    broken = store.read(LEDGER).body
    rebuilt = operator("sweep", "--rebuild", "--yes")
    shape = operator.json("status")

    assert (code, error) == (10, "ledger_unreadable")
    assert "gate sweep --rebuild` begins a new one" in said
    assert unasked[:2] == (1, "request_invalid")
    assert "say --yes" in unasked[2]
    assert broken == b"{ broken by hand"
    assert "ceiling 5 that a submitter remembers" in rebuilt.stdout
    assert (shape["ceiling"], shape["ledger"]) == (5, "restoring")
    assert [each["search"] for each in shape["running"]] == ["search-1"]
    assert shape["waited_for"] == ["serve of somebody (serve-9)"]
    assert "serve-9" in rebuilt.stderr


def test_only_a_ledger_that_nobody_can_read_is_rebuilt(
    operator: Operator, store: KubernetesDocumentStore
) -> None:
    absent = operator.error("sweep", "--rebuild", "--yes")
    write(store, ledger(holds={"search-1": hold(7)}))
    readable = operator.error("sweep", "--rebuild", "--yes")
    newer_body = encode(ledger()).replace(b'"format":2', b'"format":99').replace(b"holds", b"h0")
    write(store, newer_body)
    newer = operator.error("sweep", "--rebuild", "--yes")
    status = operator.error("status")

    assert (absent[0], "there is no ledger" in absent[2]) == (1, True)
    assert (readable[0], "the ledger can be read" in readable[2]) == (1, True)
    assert newer[:2] == (10, "ledger_unreadable")
    assert status[:2] == (10, "ledger_unreadable")
    for said in (newer[2], status[2]):
        assert "update this blastyard to the version that the others run" in said
    assert store.read(LEDGER).body == newer_body


def test_the_ledger_that_was_deleted_by_hand_is_begun_again_by_a_sweep(
    operator: Operator, store: KubernetesDocumentStore
) -> None:
    write(store, ledger(holds={"search-1": hold(7, submitter="exec-1-2-gone")}))
    operator("sweep")
    store.swap(LEDGER, store.read(LEDGER).version, None)
    absent = operator.json("status")

    operator("sweep")

    assert absent["ledger"] == "absent"
    body = store.read(LEDGER).body
    assert body is not None
    assert list(decode_ledger(body).holds) == ["search-1"]
