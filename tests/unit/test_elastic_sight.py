"""What carries an id in the namespace, judged; and deleted until nothing of it is left."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_memory import CONFIGMAPS, JOBS, Cluster, Hand

from blastyard.admission.kubernetes.marker_job import MARKER as ADMISSIONS_MARKER
from blastyard.domain.errors import Unavailable
from blastyard.engine.elastic_blast.objects import MARKER, SearchObjects
from blastyard.engine.elastic_blast.sight import Job, Sight, judge
from blastyard.engine.remote import Absent, AtWork, Broken, Over, Partial, Sighted

APPS = ("setup", "submit", "blast", "finalizer")
NOW = "2026-12-01T00:00:00Z"
ENDS: dict[str, dict[str, Any]] = {
    "running": {"active": 1},
    "suspended": {},
    "retrying": {"failed": 1, "active": 1},
    "complete": {
        "succeeded": 1,
        "completionTime": NOW,
        "conditions": [{"type": "Complete", "status": "True"}],
    },
    "failed": {
        "failed": 4,
        "conditions": [
            {"type": "FailureTarget", "status": "True"},
            {
                "type": "Failed",
                "status": "True",
                "reason": "BackoffLimitExceeded",
                "message": "Job has reached the specified backoff limit",
            },
        ],
    },
}
_numbers = itertools.count()


def job(app: str, end: str = "running", *, leaving: bool = False) -> Job:
    metadata: dict[str, Any] = {
        "name": f"{app}-{next(_numbers)}",
        "labels": {"app": app, "elb-job-id": "s"},
    }
    if leaving:
        metadata["deletionTimestamp"] = NOW
    return msgspec.convert({"metadata": metadata, "status": ENDS[end]}, Job)


def judged(*jobs: Job, was_complete: bool = False) -> Sighted:
    return judge(Sight("s", jobs), was_complete=was_complete)


jobs = st.builds(job, st.sampled_from(APPS), st.sampled_from(sorted(ENDS)), leaving=st.booleans())


# -- before it was complete ------------------------------------------------------------------------


@pytest.mark.parametrize("was_complete", [False, True])
def test_nothing_is_nothing(was_complete: bool) -> None:
    assert judged(was_complete=was_complete) == Absent()


@pytest.mark.parametrize("computing", ["submit", "blast"])
def test_a_finalizer_beside_what_computes_makes_a_submission_complete(computing: str) -> None:
    assert isinstance(judged(job("setup"), job(computing), job("finalizer")), AtWork)


@pytest.mark.parametrize(
    "apps", [("setup",), ("submit",), ("blast", "blast"), ("finalizer",), ("setup", "finalizer")]
)
def test_a_submission_that_was_cut_off_is_never_adopted(apps: tuple[str, ...]) -> None:
    """Fault R1."""
    assert isinstance(judged(*map(job, apps)), Partial)


def test_what_is_being_deleted_cannot_be_adopted() -> None:
    assert isinstance(judged(job("blast"), job("finalizer", leaving=True)), Partial)


@given(st.lists(jobs, min_size=1, max_size=6))
def test_before_it_was_complete_it_is_partial_or_what_it_is_afterwards(seen: list[Job]) -> None:
    state = judged(*seen)

    assert isinstance(state, Partial) or state == judged(*seen, was_complete=True)
    assert not isinstance(state, Absent)


# -- afterwards ------------------------------------------------------------------------------------


def test_its_blast_jobs_are_counted() -> None:
    seen = [job("blast", "complete"), job("blast"), job("blast", "suspended"), job("finalizer")]

    assert judged(*seen) == AtWork(1, 3)


def test_a_pod_that_failed_and_is_tried_again_is_no_failure() -> None:
    """Fault R2."""
    assert judged(job("blast", "retrying"), job("finalizer")) == AtWork(0, 1)


@pytest.mark.parametrize("app", ["blast", "submit", "setup", "finalizer"])
def test_a_terminal_failure_of_any_part_is_one_of_the_search(app: str) -> None:
    """Fault R2."""
    state = judged(job("blast"), job("finalizer"), job(app, "failed"))

    assert isinstance(state, Broken)
    assert state.failure.code == ("blast_failed" if app == "blast" else "submit_failed")
    assert "BackoffLimitExceeded: Job has reached" in state.failure.message


def test_of_many_failures_some_are_named() -> None:
    state = judged(job("finalizer"), *(job("blast", "failed") for _ in range(9)))

    assert isinstance(state, Broken)
    assert state.failure.message.endswith("and 6 more.")


def test_a_finalizer_that_gathers_results_after_the_others_were_removed_is_at_work() -> None:
    assert judged(job("finalizer"), was_complete=True) == AtWork(0, 0)


def test_a_search_is_over_when_all_of_it_is() -> None:
    seen = [job("submit", "complete"), job("blast", "complete"), job("finalizer", "complete")]

    assert judged(*seen) == Over(1)


def test_a_finalizer_that_gave_up_waiting_does_not_end_what_still_computes() -> None:
    """Fault R3."""
    seen = [job("blast", "complete"), job("blast"), job("finalizer", "complete")]

    assert judged(*seen) == AtWork(1, 2)


def test_what_was_left_by_a_removed_finalizer_is_judged_by_itself() -> None:
    assert judged(job("blast"), was_complete=True) == AtWork(0, 1)
    assert judged(job("blast", "complete"), was_complete=True) == Over(1)
    assert judged(job("setup", "complete"), was_complete=True) == Over(0)


def test_a_search_that_is_being_deleted_is_as_good_as_gone() -> None:
    seen = [job("blast", leaving=True), job("finalizer", leaving=True)]

    assert judged(*seen, was_complete=True) == Absent()


@given(st.lists(jobs, max_size=6))
def test_a_search_is_over_only_without_a_live_or_failed_part(seen: list[Job]) -> None:
    state = judged(*seen, was_complete=True)

    if isinstance(state, Over):
        ends = [each.end for each in seen if not each.is_leaving and each.app != "setup"]
        assert all(end == "Complete" for end in ends)


# -- asked for, and deleted ------------------------------------------------------------------------


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def cluster(hand: Hand) -> Iterator[Cluster]:
    cluster = Cluster(hand)
    yield cluster
    cluster.close()


@pytest.fixture
def objects(cluster: Cluster, hand: Hand) -> SearchObjects:
    def pause(seconds: float) -> None:
        hand.seconds += seconds

    return SearchObjects(cluster.client(), hand.monotonic, pause)


def make(cluster: Cluster, search: str, *apps: str, **labels: str) -> None:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    for app in apps:
        name = f"{app}-{next(_numbers)}"
        metadata = {"name": name, "labels": {"app": app, "elb-job-id": search, **labels}}
        cluster.send("POST", JOBS, {"metadata": metadata, "spec": {"template": pod}})


def config_map(cluster: Cluster, name: str, **labels: str) -> None:
    cluster.send("POST", CONFIGMAPS, {"metadata": {"name": name, "labels": labels}})


def names(cluster: Cluster, kind: str) -> set[str]:
    return set(cluster.api.documents(kind, "lab"))


def test_a_marker_is_what_admission_says_it_is() -> None:
    assert MARKER == ADMISSIONS_MARKER


def test_all_parts_are_seen_and_no_markers(cluster: Cluster, objects: SearchObjects) -> None:
    make(cluster, "s", *APPS)
    make(cluster, "s", "submit", **{MARKER: "companion"})
    make(cluster, "other", "finalizer")

    assert sorted(each.app for each in objects.look("s").jobs) == sorted(APPS)


def test_a_key_that_was_lower_cased_on_the_way_is_found(
    cluster: Cluster, objects: SearchObjects
) -> None:
    make(cluster, "job-one", "blast", "finalizer")

    assert len(objects.look("Job-ONE").jobs) == 2


def test_many_searches_are_looked_at_in_few_requests(
    cluster: Cluster, objects: SearchObjects
) -> None:
    asked = [f"s-{number}" for number in range(120)]
    make(cluster, "s-7", "blast", "finalizer")

    seen = objects.look_at([*asked, "s-7"])

    assert {name: len(sight.jobs) for name, sight in seen.items() if sight.jobs} == {"s-7": 2}
    assert len(seen) == 120
    assert [verb for verb, *_ in cluster.requests] == ["list"] * 3


def test_a_cancel_leaves_nothing_of_the_search_and_all_of_the_others(
    cluster: Cluster, objects: SearchObjects
) -> None:
    """Fault R8."""
    make(cluster, "s", *APPS)
    make(cluster, "s", "submit", **{MARKER: "companion"})
    make(cluster, "other", "blast", "finalizer")
    config_map(cluster, "elb-job-s")
    config_map(cluster, "queries", **{"elb-job-id": "s"})
    config_map(cluster, "elb-scripts")
    config_map(cluster, "elb-job-other", **{"elb-job-id": "other"})

    assert objects.cancel("s", timedelta(seconds=5)) == ()

    assert objects.look("s").jobs == ()
    assert len(objects.look("other").jobs) == 2
    assert names(cluster, "configmaps") == {"elb-scripts", "elb-job-other"}
    assert len(names(cluster, "jobs")) == 3


def test_a_cancel_may_be_asked_for_again(cluster: Cluster, objects: SearchObjects) -> None:
    assert objects.cancel("s", timedelta(seconds=5)) == ()
    assert objects.cancel("s", timedelta(seconds=5)) == ()


def test_a_cancel_says_what_will_not_go(
    cluster: Cluster, objects: SearchObjects, hand: Hand
) -> None:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    labels = {"app": "blast", "elb-job-id": "s"}
    metadata = {"name": "kept", "labels": labels, "finalizers": ["example.com/keep"]}
    cluster.send("POST", JOBS, {"metadata": metadata, "spec": {"template": pod}})
    began = hand.seconds

    with pytest.raises(Unavailable, match="there is left, after it was deleted: kept"):
        objects.cancel("s", timedelta(seconds=2))

    assert hand.seconds - began == pytest.approx(2.0)


def test_what_is_made_while_it_is_cancelled_goes_too(cluster: Cluster, hand: Hand) -> None:
    def pause(seconds: float) -> None:
        hand.seconds += seconds

    late = iter([("blast",), ("finalizer",)])

    class Late(SearchObjects):
        """Somebody's request arrives just after each deletion."""

        def look(self, name: str) -> Sight:
            for apps in itertools.islice(late, 1):
                make(cluster, name, *apps)
            return super().look(name)

    objects = Late(cluster.client(), hand.monotonic, pause)
    make(cluster, "s", "submit")

    objects.cancel("s", timedelta(seconds=5))

    assert names(cluster, "jobs") == set()


@pytest.mark.parametrize("name", ["", "a,b", "x)", "a b"])
def test_what_is_no_id_deletes_nothing(cluster: Cluster, objects: SearchObjects, name: str) -> None:
    make(cluster, "s", *APPS)

    with pytest.raises(ValueError, match="cannot be the id"):
        objects.cancel(name, timedelta(seconds=5))

    assert len(names(cluster, "jobs")) == len(APPS)
