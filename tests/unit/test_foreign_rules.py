"""The gates as foreign submitters pass them, by the contract that such programs share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from foreign_stage import HELD, LEASE, NOW, RULES, Server, lease, said_of

from blastyard.domain.errors import Unavailable
from blastyard.kube.wire import Answer, Call
from blastyard.testing.foreign.api import Api, Forbidden, Unanswered
from blastyard.testing.foreign.count import count, is_terminal, list_jobs
from blastyard.testing.foreign.lease import Acquired, Busy, GateA, is_free, stamp


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def gate(server: Server) -> GateA:
    return GateA(Api(server, "lab"), RULES, lambda: NOW)


# -- Gate A ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "later", "free"),
    [
        ({}, 0.0, True),
        ({"holderIdentity": ""}, 0.0, True),
        ({**HELD, "holderIdentity": " "}, 0.0, False),
        ({"holderIdentity": "x"}, 0.0, True),
        ({**HELD, "renewTime": "yesterday"}, 1e9, False),
        ({**HELD, "renewTime": "2001-01-01T00:00:00"}, 0.0, False),
        ({**HELD, "renewTime": "2001-01-01T00:00:00+09:00"}, 0.0, True),
        (HELD, 929.0, False),
        (HELD, 931.0, True),
        ({**HELD, "leaseDurationSeconds": 15}, 44.0, False),
        ({**HELD, "leaseDurationSeconds": 15}, 46.0, True),
        ({**HELD, "leaseDurationSeconds": None}, 929.0, False),
    ],
)
def test_a_lease_is_free_by_its_own_word(spec: dict[str, Any], later: float, free: bool) -> None:
    assert is_free(spec, NOW + later, RULES) is free


def test_a_stamp_has_six_digits_at_a_whole_second_too() -> None:
    assert stamp(0.0) == "1970-01-01T00:00:00.000000Z"


def test_a_missing_lease_is_made(gate: GateA, server: Server) -> None:
    assert gate.acquire("lab-1") == Acquired("101")
    spec = server.objects[LEASE]["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("lab-1", 900)


def test_the_whole_body_is_put_with_nothing_but_name_namespace_and_version(
    gate: GateA, server: Server
) -> None:
    lease(server, holderIdentity="")
    assert isinstance(gate.acquire("lab-1"), Acquired)
    put = json.loads(server.calls[-1].body or b"")
    assert put["metadata"] == {
        "name": "elb-blast-submit-lab",
        "namespace": "lab",
        "resourceVersion": "101",
    }


def test_a_held_lease_is_busy_and_not_written(gate: GateA, server: Server) -> None:
    lease(server)
    assert gate.acquire("lab-1") == Busy("other-1")
    assert [call.method for call in server.calls] == ["GET"]


def test_an_expired_lease_is_taken_by_the_programs_own_clock(server: Server) -> None:
    lease(server)
    late = GateA(Api(server, "lab"), RULES, lambda: NOW + 931)
    assert isinstance(late.acquire("lab-1"), Acquired)


def test_a_lease_that_is_being_deleted_is_busy(gate: GateA, server: Server) -> None:
    lease(server, holderIdentity="")
    server.objects[LEASE]["metadata"]["deletionTimestamp"] = stamp(NOW)
    assert gate.acquire("lab-1") == Busy("")


def test_a_conflict_is_busy(gate: GateA, server: Server) -> None:
    lease(server, holderIdentity="")

    def overtake(call: Call) -> None:
        if len(server.calls) == 1:
            lease(server, holderIdentity="faster")

    server.after = overtake
    assert gate.acquire("lab-1") == Busy("faster")


def test_a_lost_answer_is_found_to_be_its_own(gate: GateA, server: Server) -> None:
    def lose(call: Call) -> None:
        if call.method == "POST":
            raise Unavailable("cluster_unavailable", "reset")

    server.after = lose
    assert gate.acquire("lab-1") == Acquired("101")


def test_a_lost_request_is_not_taken_for_a_claim(gate: GateA, server: Server) -> None:
    def lose(call: Call) -> Answer | None:
        if call.method == "POST":
            raise Unavailable("cluster_unavailable", "reset")
        return None

    server.before = lose
    with pytest.raises(Unanswered):
        gate.acquire("lab-1")


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_credential_is_loud_and_never_busy(
    gate: GateA, server: Server, status: int
) -> None:
    server.before = lambda _: said_of(status, {})
    with pytest.raises(Forbidden, match=r"GET coordination.*lab"):
        gate.acquire("lab-1")


@pytest.mark.parametrize(
    "answer",
    [
        said_of(503, {}),
        said_of(429, {}),
        Answer(200, b"<html>", None, None, 0.0, 0.0),
        Answer(200, b'{"met', None, None, 0.0, 0.0),
    ],
)
def test_what_cannot_be_told_is_no_denial(gate: GateA, server: Server, answer: Answer) -> None:
    server.before = lambda _: answer
    with pytest.raises(Unanswered):
        gate.acquire("lab-1")


def test_a_release_clears_its_own_holder_only(gate: GateA, server: Server) -> None:
    lease(server)
    assert gate.release("lab-1", lambda _: None) is None
    assert server.objects[LEASE]["spec"]["holderIdentity"] == "other-1"
    assert gate.release("other-1", lambda _: None) == "102"
    assert server.objects[LEASE]["spec"]["holderIdentity"] == ""


def test_a_release_goes_on_through_429_and_a_conflict(gate: GateA, server: Server) -> None:
    lease(server)
    troubles: Iterator[Answer] = iter([said_of(429, {}, 3.0), said_of(409, {})])
    server.before = lambda call: next(troubles, None) if call.method == "PUT" else None
    waited: list[float] = []
    assert gate.release("other-1", waited.append) is not None
    assert waited == [3.0]


# -- Gate B ------------------------------------------------------------------------------------


def job(app: str, name: str = "", age: float = 0.0, **status: object) -> dict[str, Any]:
    labels = {"app": app, **({"elb-job-id": name} if name else {})}
    created = stamp(NOW - age)[:19] + "Z"
    metadata = {"labels": labels, "uid": f"u-{app}-{name}", "creationTimestamp": created}
    return {"metadata": metadata, "status": status}


COMPLETE = [{"type": "Complete", "status": "True"}]
FAILED = [{"type": "Failed", "status": "True"}]


@pytest.mark.parametrize(
    ("status", "terminal"),
    [
        ({}, False),
        ({"failed": 1}, False),
        ({"succeeded": 1}, True),
        ({"completionTime": "2026-01-01T00:00:00Z"}, True),
        ({"conditions": COMPLETE}, True),
        ({"conditions": FAILED}, True),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, False),
        ({"conditions": [{"type": "Suspended", "status": "True"}]}, False),
    ],
)
def test_a_job_has_ended_only_when_that_is_definite(status: dict[str, Any], terminal: bool) -> None:
    assert is_terminal({"status": status}) is terminal


def test_distinct_ids_of_finalizers_that_have_not_ended_are_counted() -> None:
    jobs = [
        job("finalizer", "a"),
        job("finalizer", "a"),
        job("finalizer", "b"),
        job("finalizer", "ended", succeeded=1),
        job("submit", "no-finalizer"),
        job("finalizer"),
    ]
    assert count(jobs, NOW, 300).active == {"a", "b", "uid:u-finalizer-"}


def test_an_old_finalizer_without_a_live_companion_is_a_phantom() -> None:
    jobs = [
        job("finalizer", "lone", age=301),
        job("finalizer", "young", age=299),
        job("finalizer", "kept", age=9000),
        job("submit", "kept", age=9000),
        job("finalizer", "done", age=9000),
        job("blast", "done", age=9000, succeeded=1),
    ]
    found = count(jobs, NOW, 300)
    assert found.active == {"young", "kept"}
    assert found.phantoms == {"lone", "done"}


def test_a_clock_that_is_ahead_makes_phantoms_of_young_finalizers() -> None:
    assert count([job("finalizer", "young")], NOW + 600, 300).active == frozenset()


def test_every_page_is_read_and_an_expired_list_begins_anew(server: Server) -> None:
    pages = iter(
        [
            said_of(200, {"metadata": {"continue": "t1"}, "items": [job("submit", "stale")]}),
            said_of(410, {}),
            said_of(200, {"metadata": {"continue": "t2"}, "items": [job("submit", "a")]}),
            said_of(200, {"metadata": {}, "items": [job("submit", "b")]}),
        ]
    )
    server.before = lambda _: next(pages)
    found = list_jobs(Api(server, "lab"))
    assert [one["metadata"]["labels"]["elb-job-id"] for one in found] == ["a", "b"]
    assert "resourceVersion" not in server.calls[0].query
    assert server.calls[-1].query["continue"] == "t2"


def test_a_failed_page_is_no_count(server: Server) -> None:
    server.before = lambda call: said_of(500 if "continue" in call.query else 200, PAGE)
    with pytest.raises(Unanswered):
        list_jobs(Api(server, "lab"))


PAGE = {"metadata": {"continue": "t"}, "items": []}
