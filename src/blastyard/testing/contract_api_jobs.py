"""What an API server and its controllers do with Jobs."""

from __future__ import annotations

from typing import Any

import pytest

from blastyard.testing.contract_api import (
    ApiContract,
    ApiUnderTest,
    Caller,
    Json,
    Said,
    job,
    let_a_second_pass,
)

NOT_OURS = "blastyard.test/nobody"
"""A manager of Jobs that does nothing."""

CHANGES_OF_THE_PAST: tuple[Json, ...] = (
    {"conditions": []},
    {"startTime": None},
    {"active": 1},
    {"completionTime": "2001-01-01T00:00:00Z"},
)


def conditions(said: Said) -> set[str]:
    """The types of the conditions that are true."""
    found = said.document["status"].get("conditions", ())
    return {one["type"] for one in found if one["status"] == "True"}


def suspended_later(api: ApiUnderTest, jobs: Caller, name: str, seconds: int) -> str:
    """Let a Job begin, with a deadline, and then suspend it; when it began."""
    jobs.post(job(name, activeDeadlineSeconds=seconds))
    api.until(lambda: "active" in jobs.get(name).document["status"])
    began: str = jobs.get(name).document["status"]["startTime"]
    jobs.patch(name, {"spec": {"suspend": True}})
    api.until(lambda: "active" not in jobs.get(name).document["status"])
    return began


class JobContract(ApiContract):
    """Jobs, their status, and what becomes of them by themselves."""

    @pytest.fixture
    def jobs(self, api: ApiUnderTest) -> Caller:
        """Jobs."""
        return Caller(api, "jobs")

    def test_a_job_begins_by_itself(self, api: ApiUnderTest, jobs: Caller) -> None:
        made = jobs.post(job("a"))

        assert (made.status, made.document["status"]) == (201, {})
        api.until(lambda: "startTime" in jobs.get("a").document["status"])
        assert jobs.get("a").document["status"]["active"] == 1

    @pytest.mark.parametrize("spec", [{"suspend": True}, {"managedBy": NOT_OURS}])
    def test_a_job_that_is_suspended_or_anothers_is_left_alone(
        self, api: ApiUnderTest, jobs: Caller, spec: Json
    ) -> None:
        made = jobs.post(job("a", activeDeadlineSeconds=1, **spec))
        if "managedBy" in spec:
            begun = {"startTime": made.document["metadata"]["creationTimestamp"]}
            jobs.patch("a/status", {"status": begun})
        jobs.post(job("b", activeDeadlineSeconds=1))

        api.until(lambda: "Failed" in conditions(jobs.get("b")))

        said = jobs.get("a")
        assert "Failed" not in conditions(said)
        assert "active" not in said.document["status"]
        assert ("startTime" in said.document["status"]) is ("managedBy" in spec)

    def test_a_suspended_job_meets_its_deadline_only_once_it_is_resumed(
        self, api: ApiUnderTest, jobs: Caller
    ) -> None:
        suspended_later(api, jobs, "a", seconds=1)
        jobs.post(job("b", activeDeadlineSeconds=2))
        api.until(lambda: "Failed" in conditions(jobs.get("b")))
        assert conditions(jobs.get("a")) == {"Suspended"}

        jobs.patch("a", {"spec": {"suspend": False}})

        api.until(lambda: "Failed" in conditions(jobs.get("a")))

    def test_a_job_that_is_resumed_in_time_begins_anew(
        self, api: ApiUnderTest, jobs: Caller
    ) -> None:
        first = suspended_later(api, jobs, "a", seconds=600)
        let_a_second_pass(api)
        jobs.patch("a", {"spec": {"suspend": False}})

        api.until(lambda: "active" in jobs.get("a").document["status"])

        assert conditions(jobs.get("a")) == set()
        assert jobs.get("a").document["status"]["startTime"] > first

    def test_a_job_ends_well(self, api: ApiUnderTest, jobs: Caller) -> None:
        jobs.post(job("a", managedBy=NOT_OURS))

        api.complete("a")

        said = jobs.get("a")
        assert conditions(said) >= {"Complete", "SuccessCriteriaMet"}
        assert said.document["status"]["succeeded"] == 1
        assert "completionTime" in said.document["status"]

    def test_a_job_fails(self, api: ApiUnderTest, jobs: Caller) -> None:
        jobs.post(job("a", managedBy=NOT_OURS))

        api.fail("a")

        said = jobs.get("a")
        assert conditions(said) >= {"Failed", "FailureTarget"}
        assert not said.document["status"].keys() & {"completionTime", "succeeded"}

    def test_a_job_past_its_deadline_has_failed_for_that_reason(
        self, api: ApiUnderTest, jobs: Caller
    ) -> None:
        jobs.post(job("a", activeDeadlineSeconds=1))

        api.until(lambda: "Failed" in conditions(jobs.get("a")))

        found = jobs.get("a").document["status"]["conditions"]
        assert {one["reason"] for one in found if one["type"] == "Failed"} == {"DeadlineExceeded"}

    def test_a_job_without_pods_meets_its_deadline_too(
        self, api: ApiUnderTest, jobs: Caller
    ) -> None:
        jobs.post(job("a", parallelism=0, activeDeadlineSeconds=1))

        api.until(lambda: "Failed" in conditions(jobs.get("a")))

    def test_a_job_is_removed_when_its_time_after_the_end_is_over(
        self, api: ApiUnderTest, jobs: Caller
    ) -> None:
        jobs.post(job("a", activeDeadlineSeconds=1, ttlSecondsAfterFinished=1))

        api.until(lambda: jobs.get("a").status == 404)

    def test_a_job_is_gone_at_once_or_a_little_later(self, api: ApiUnderTest, jobs: Caller) -> None:
        for name in ("a", "b", "c"):
            jobs.post(job(name))
        at_once = jobs.delete("a", propagationPolicy="Background")
        later = jobs.delete("b")
        last = jobs.delete("c", propagationPolicy="Foreground")

        assert at_once.document["status"] == "Success"
        assert jobs.get("a").status == 404
        assert later.document["metadata"]["finalizers"] == ["orphan"]
        assert last.document["metadata"]["finalizers"] == ["foregroundDeletion"]
        api.until(lambda: jobs.list().names == [])

    def test_a_policy_that_is_none_is_refused(self, jobs: Caller) -> None:
        jobs.post(job("a"))

        assert jobs.delete("a", propagationPolicy="Sideways").outcome == (422, "Invalid")

    @pytest.mark.parametrize(
        "pod",
        [
            {"restartPolicy": "Never"},
            {"restartPolicy": "Always", "containers": [{"name": "x", "image": "y"}]},
            {"containers": [{"name": "x", "image": "y"}]},
            {"restartPolicy": "Never", "containers": [{"name": "x"}]},
        ],
    )
    def test_a_job_that_could_run_nothing_is_refused(self, jobs: Caller, pod: Json) -> None:
        document = job("a", template={"spec": pod})

        assert jobs.post(document).outcome == (422, "Invalid")

    def test_the_spec_of_a_job_is_fixed_but_for_a_few_fields(self, jobs: Caller) -> None:
        jobs.post(job("a", managedBy=NOT_OURS))
        pod = {"containers": [{"name": "x", "image": "another"}]}

        assert jobs.patch("a", {"spec": {"template": {"spec": pod}}}).outcome == (422, "Invalid")
        assert jobs.patch("a", {"spec": {"managedBy": "x.test/y"}}).outcome == (422, "Invalid")
        assert jobs.patch("a", {"spec": {"suspend": True}}).document["spec"]["suspend"] is True
        assert jobs.patch("a", {"spec": {"activeDeadlineSeconds": 9}}).status == 200

    def test_a_job_that_was_read_can_be_put_back(self, jobs: Caller) -> None:
        found = jobs.post(job("a", managedBy=NOT_OURS)).document
        found["metadata"]["annotations"] = {"blastyard/x": "y"}

        said = jobs.put("a", found)

        assert said.status == 200
        assert said.document["metadata"]["annotations"] == {"blastyard/x": "y"}

    def test_a_job_without_labels_has_those_of_its_pods(self, jobs: Caller) -> None:
        template = {**job("a")["spec"]["template"], "metadata": {"labels": {"app": "blast"}}}
        jobs.post(job("a", template=template, managedBy=NOT_OURS))
        jobs.post(job("b", {"elb-job-id": "x"}, template=template, managedBy=NOT_OURS))

        said = jobs.list(labelSelector="app=blast")

        assert said.names == ["a"]
        inherited = said.document["items"][0]["metadata"]["labels"]
        assert inherited == said.document["items"][0]["spec"]["template"]["metadata"]["labels"]

    def test_status_and_spec_are_written_at_their_own_places(self, jobs: Caller) -> None:
        made = jobs.post(job("a", {"app": "submit"}, managedBy=NOT_OURS))

        there = jobs.patch("a", {"status": {"active": 3}})
        here = jobs.patch("a/status", {"status": {"active": 3}, "spec": {"suspend": True}})

        assert (there.status, there.version) == (200, made.version)
        assert here.document["status"] == {"active": 3}
        assert here.document["spec"]["suspend"] is False
        assert jobs.get("a/status").document == jobs.get("a").document == here.document

    @pytest.mark.parametrize(
        "status",
        [
            {"conditions": ["Complete"]},
            {"conditions": ["Failed"]},
            {"conditions": ["Failed", "FailureTarget"]},
            {"conditions": ["Complete", "SuccessCriteriaMet"], "startTime": "+0"},
            {"conditions": ["Complete"], "startTime": "+0", "completionTime": "+0"},
            {"conditions": ["Failed"], "startTime": "+0"},
            {"conditions": ["Failed", "FailureTarget"], "startTime": "+0", "completionTime": "+0"},
            {"conditions": ["Failed", "FailureTarget"], "startTime": "+0", "active": 1},
            {"startTime": "+0", "completionTime": "+0"},
            {"active": -1},
            {"active": 1, "ready": 2},
        ],
    )
    def test_a_status_that_contradicts_itself_is_refused(self, jobs: Caller, status: Json) -> None:
        made = jobs.post(job("a", managedBy=NOT_OURS))

        said = jobs.patch("a/status", {"status": _at(status, made)})

        assert said.outcome == (422, "Invalid")
        assert jobs.get("a").document["status"] == {}

    def test_a_job_that_runs_keeps_its_start(self, jobs: Caller) -> None:
        jobs.post(job("a", managedBy=NOT_OURS))
        jobs.patch("a/status", {"status": {"startTime": "2031-05-01T12:00:00Z"}})

        for other in ("2031-05-01T12:00:01Z", None):
            said = jobs.patch("a/status", {"status": {"startTime": other}})
            assert said.outcome == (422, "Invalid")
        jobs.patch("a", {"spec": {"suspend": True}})
        assert jobs.patch("a/status", {"status": {"startTime": None}}).document["status"] == {}

    def test_a_job_that_has_ended_stays_so(self, api: ApiUnderTest, jobs: Caller) -> None:
        jobs.post(job("a", managedBy=NOT_OURS))
        jobs.post(job("b", managedBy=NOT_OURS))
        api.complete("a")
        api.fail("b")

        for name in ("a", "b"):
            before = jobs.get(name).document
            for status in CHANGES_OF_THE_PAST:
                assert jobs.patch(f"{name}/status", {"status": status}).outcome == (422, "Invalid")
            assert jobs.get(name).document == before
        assert jobs.patch("a/status", {"status": {"succeeded": 0}}).outcome == (422, "Invalid")


def _at(status: Json, made: Said) -> dict[str, Any]:
    """The status with real times, and with conditions written out."""
    time = made.document["metadata"]["creationTimestamp"]
    filled = {key: time if value == "+0" else value for key, value in status.items()}
    if "conditions" in filled:
        kinds = filled["conditions"]
        filled["conditions"] = [{"type": kind, "status": "True"} for kind in kinds]
    return filled
