"""Calls to an API server go wrong exactly as planned."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from wire_stage import MAPS, TIMEOUT, Stage, creation

from blastyard.domain.errors import Unavailable
from blastyard.kube.wire import Answer, Call
from blastyard.testing.faulty_wire import named
from blastyard.testing.wire_fault import Trouble, WireFault

NOTHING_HAPPENS = (Trouble.LOST_REQUEST, Trouble.BUSY, Trouble.REFUSED, Trouble.CRASHED)
IT_HAPPENS = (Trouble.LOST_ANSWER, Trouble.GATEWAY_TIMEOUT, Trouble.TRUNCATED)


def sent(stage: Stage) -> Answer | Unavailable:
    """What comes of creating a ConfigMap."""
    results: list[Answer | Unavailable] = []

    def call() -> None:
        try:
            results.append(stage.wire.send(creation()))
        except Unavailable as error:
            results.append(error)

    stage.run(call)
    return results[0]


@pytest.mark.parametrize("trouble", NOTHING_HAPPENS)
def test_nothing_happens_when_a_request_does_not_arrive(trouble: Trouble) -> None:
    stage = Stage(WireFault(trouble))

    sent(stage)

    assert not stage.exists()


@pytest.mark.parametrize("trouble", IT_HAPPENS)
def test_what_was_asked_happens_though_the_answer_is_bad(trouble: Trouble) -> None:
    stage = Stage(WireFault(trouble))

    sent(stage)

    assert stage.exists()
    assert stage.api.requests == 1


@pytest.mark.parametrize("trouble", [Trouble.LOST_REQUEST, Trouble.LOST_ANSWER])
def test_what_is_lost_is_unavailable(trouble: Trouble) -> None:
    said = sent(Stage(WireFault(trouble)))

    assert isinstance(said, Unavailable)
    assert said.code == "cluster_unavailable"


def test_a_late_request_happens_after_the_caller_has_given_up() -> None:
    stage = Stage(WireFault(Trouble.LATE_REQUEST, before=60.0))
    seen: list[tuple[float, bool]] = []

    def call() -> None:
        with pytest.raises(Unavailable):
            stage.wire.send(creation())
        seen.append((stage.scheduler.now, stage.exists()))

    stage.run(call)

    assert seen == [(TIMEOUT, False)]
    assert stage.exists()
    assert stage.scheduler.now >= 60.0


@pytest.mark.parametrize(
    ("trouble", "status", "is_json", "retry_after"),
    [
        (Trouble.BUSY, 429, True, 7.0),
        (Trouble.REFUSED, 503, True, None),
        (Trouble.CRASHED, 500, False, None),
        (Trouble.GATEWAY_TIMEOUT, 504, False, None),
    ],
)
def test_a_refusal_looks_as_it_does_in_a_cluster(
    trouble: Trouble, status: int, is_json: bool, retry_after: float | None
) -> None:
    said = sent(Stage(WireFault(trouble, retry_after=7.0)))

    assert isinstance(said, Answer)
    assert (said.status, said.retry_after) == (status, retry_after)
    assert (said.body[:1] == b"{") is is_json
    if is_json:
        assert msgspec.json.decode(said.body)["code"] == status


def test_a_truncated_answer_is_no_json() -> None:
    said = sent(Stage(WireFault(Trouble.TRUNCATED)))

    assert isinstance(said, Answer)
    assert said.status == 201
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(said.body)


def test_a_delay_takes_time_on_both_ways_and_the_answer_says_so() -> None:
    stage = Stage(WireFault(before=1.0, after=2.0))

    said = sent(stage)

    assert isinstance(said, Answer)
    assert (said.sent_at, said.received_at) == (0.0, 3.0)
    assert said.date == datetime(2031, 5, 1, 0, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "after", "happens"), [(6.0, 0.0, False), (3.0, 3.0, True), (0.0, 6.0, True)]
)
def test_a_delay_past_the_time_out_is_a_loss(before: float, after: float, happens: bool) -> None:
    stage = Stage(WireFault(before=before, after=after))
    seen: list[float] = []

    def call() -> None:
        with pytest.raises(Unavailable):
            stage.wire.send(creation())
        seen.append(stage.scheduler.now)

    stage.run(call)

    assert seen == [TIMEOUT]
    assert stage.exists() is happens


def test_every_call_is_a_checkpoint_even_when_it_fails() -> None:
    stage = Stage(WireFault(Trouble.LOST_REQUEST))

    sent(stage)

    assert stage.asked == [("create", "configmaps/a")]
    assert stage.passed == ["before:create:configmaps/a", "after:create:configmaps/a"]


@pytest.mark.parametrize(
    ("method", "path", "query", "verb", "resource"),
    [
        ("GET", f"{MAPS}/a", {}, "get", "configmaps/a"),
        ("GET", MAPS, {}, "list", "configmaps"),
        ("GET", MAPS, {"watch": "true"}, "watch", "configmaps"),
        ("PUT", f"{MAPS}/a", {}, "update", "configmaps/a"),
        ("DELETE", f"{MAPS}/a", {}, "delete", "configmaps/a"),
        ("DELETE", MAPS, {}, "deletecollection", "configmaps"),
        ("PATCH", "/apis/batch/v1/namespaces/n/jobs/a/status", {}, "patch", "jobs/a/status"),
        ("POST", "/apis/a.k8s.io/v1/selfsubjectreviews", {}, "create", "selfsubjectreviews"),
    ],
)
def test_calls_are_named_as_in_a_role(
    method: str, path: str, query: dict[str, str], verb: str, resource: str
) -> None:
    assert named(Call(method, path, query)) == (verb, resource)
