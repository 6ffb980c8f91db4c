"""Markers as Jobs."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blastyard.admission.census import FINALIZER, Marker, MarkerKind
from blastyard.admission.kubernetes import marker_job
from blastyard.admission.kubernetes.job_sight import Job, sight
from blastyard.admission.kubernetes.marker_job import SEARCH_ID, job_name, key, made, read
from blastyard.admission.marking import SUBMIT, apps_of

STANDS = timedelta(days=3)
STAND_IN, COMPANION = MarkerKind.STAND_IN, MarkerKind.COMPANION

DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
LABEL_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")

LETTERS = "abcxyzABCXYZ0189"
IDS = st.builds(
    lambda first, inner, last: (first + inner + last)[:63].rstrip("._-"),
    st.sampled_from(LETTERS),
    st.text(LETTERS + "._-", max_size=61),
    st.sampled_from(LETTERS),
)
"""Every id that a label may say."""
ANY_ID = st.text(LETTERS + "._-", min_size=1, max_size=63)
"""Every id of the characters that ids are made of, at whatever end."""
TEXTS = st.text(max_size=20)
MARKERS = st.builds(
    Marker,
    st.sampled_from(MarkerKind),
    IDS,
    user=TEXTS,
    submitter=TEXTS,
    level=st.integers(0, 2),
    attempt=st.integers(0, 10**6),
    family=st.none() | IDS,
    alias=st.none() | IDS,
    watched=st.booleans(),
)


def job_of(marker: Marker, app: str = FINALIZER, holder: str = "h", fence: str = "f") -> Any:
    return made("ns", marker, app, stands=STANDS, holder=holder, fence=fence)


def labels_of(job: Any) -> dict[str, str]:
    labels: dict[str, str] = job["metadata"]["labels"]
    return labels


def said_by(job: Any) -> Marker | None:
    return read(labels_of(job), job["metadata"]["annotations"])


@given(marker=MARKERS)
def test_what_a_job_says_is_the_marker_it_was_made_of(marker: Marker) -> None:
    """Fault B22; clause: markers carry the claim."""
    for app in apps_of(marker.kind):
        assert said_by(job_of(marker, app)) == marker


@given(marker=MARKERS)
def test_names_and_labels_are_what_kubernetes_allows(marker: Marker) -> None:
    """Fault R9."""
    for app in apps_of(marker.kind):
        job = job_of(marker, app)
        assert DNS_LABEL.fullmatch(job["metadata"]["name"])
        assert len(job["metadata"]["name"]) <= 63
        for labels in (labels_of(job), job["spec"]["template"]["metadata"]["labels"]):
            for name, value in labels.items():
                assert LABEL_KEY.fullmatch(name), name
                assert LABEL_VALUE.fullmatch(value), value
        for name, value in job["metadata"]["annotations"].items():
            assert LABEL_KEY.fullmatch(name), name
            assert isinstance(value, str)
        json.dumps(job)


@given(search=ANY_ID)
def test_a_stand_in_can_be_made_for_whatever_id_a_search_has(search: str) -> None:
    """Fault R9: one that ends in a dot or a dash, or is as long as an id may be."""
    marker = Marker(STAND_IN, search, "ada", "serve-1")

    job = job_of(marker)

    assert LABEL_VALUE.fullmatch(labels_of(job)[SEARCH_ID])
    assert said_by(job) == marker


@pytest.mark.parametrize(
    ("search", "shown"),
    [
        ("job-1", "r-job-1"),
        ("Job.A_b", "r-Job.A_b"),
        ("x" * 61, "r-" + "x" * 61),
        ("x" * 62, "r-" + key("x" * 62)),
        ("x" * 63, "r-" + key("x" * 63)),
        ("ends-", "r-" + key("ends-")),
        ("a b/ü", "r-" + key("a b/ü")),
    ],
)
def test_a_stand_in_has_an_id_of_its_own(search: str, shown: str) -> None:
    """Fault B19; clause: under an id of their own, ``r-<id>``."""
    assert marker_job.stand_in_id(search) == shown
    assert labels_of(job_of(Marker(STAND_IN, search)))[SEARCH_ID] == shown


def test_a_companion_has_the_id_that_the_search_is_seen_under() -> None:
    """Fault B2; clause: under the search's real id."""
    plain, renamed = Marker(COMPANION, "Job.1"), Marker(COMPANION, "s1", alias="Job-2")

    assert labels_of(job_of(plain, SUBMIT))[SEARCH_ID] == "Job.1"
    assert labels_of(job_of(renamed, SUBMIT))[SEARCH_ID] == "Job-2"


@given(one=ANY_ID, other=ANY_ID)
def test_no_two_markers_have_one_name(one: str, other: str) -> None:
    """Fault R9: searches that are alike in their last letters, or but for their case."""
    names = {
        job_name(Marker(kind, search), app)
        for search in (one, other, one.swapcase())
        for kind in MarkerKind
        for app in apps_of(kind)
    }

    assert len(names) == 3 * len({one, other, one.swapcase()})
    assert not any(name.startswith("elb-finalizer-") for name in names)


def test_a_marker_makes_no_pod_and_ends_by_itself() -> None:
    """Fault B16; clause: parallelism 0, a deadline of three days, a TTL after the end."""
    spec = job_of(Marker(STAND_IN, "s1"))["spec"]

    assert spec["parallelism"] == 0
    assert spec["completions"] == 1, "never complete, and not of the kind that peers take for ended"
    assert "completionMode" not in spec
    assert spec["activeDeadlineSeconds"] == 3 * 24 * 3600
    assert spec["ttlSecondsAfterFinished"] > 0


def test_peers_find_a_finalizer_and_a_submit_job_and_never_a_blast_job() -> None:
    """Clause: their finalizer waits for every ``app=blast`` Job of its id."""
    stand_in = [labels_of(job_of(Marker(STAND_IN, "s1"), app))["app"] for app in apps_of(STAND_IN)]
    companion = [
        labels_of(job_of(Marker(COMPANION, "s"), app))["app"] for app in apps_of(COMPANION)
    ]

    assert stand_in == ["finalizer", "submit"]
    assert companion == ["submit"]


def test_it_says_by_whose_right_it_was_made_and_only_its_finalizer_is_looked_at() -> None:
    marker = Marker(STAND_IN, "s1")
    finalizer = job_of(marker, holder="blastyard-s1-1", fence="uid-1/7")
    notes = finalizer["metadata"]["annotations"]

    assert notes["blastyard/holder"] == "blastyard-s1-1"
    assert notes["blastyard/fence"] == "uid-1/7"
    assert labels_of(finalizer)["blastyard/managed"] == "true"
    assert "blastyard/managed" not in labels_of(job_of(marker, SUBMIT))


def test_all_markers_of_a_search_are_found_by_one_label() -> None:
    jobs = [
        job_of(Marker(STAND_IN, "s1", alias="a")),
        job_of(Marker(COMPANION, "s1", alias="b"), SUBMIT),
    ]

    assert {labels_of(job)[marker_job.SEARCH] for job in jobs} == {key("s1")}
    assert key("s1") != key("S1")


# -- read ------------------------------------------------------------------------------------------


def test_a_job_without_the_label_is_no_marker_whatever_else_it_says() -> None:
    marker = Marker(STAND_IN, "s1")
    job = job_of(marker)
    labels = {name: text for name, text in labels_of(job).items() if name != marker_job.MARKER}

    assert read(labels, job["metadata"]["annotations"]) is None
    assert read({}, {}) is None


@pytest.mark.parametrize(
    ("labels", "search"),
    [
        ({"blastyard/marker": "stand-in", SEARCH_ID: "r-s1"}, "s1"),
        ({"blastyard/marker": "companion", SEARCH_ID: "s1"}, "s1"),
        ({"blastyard/marker": "companion", SEARCH_ID: "r-s1"}, "r-s1"),
        ({"blastyard/marker": "of a later version", SEARCH_ID: "r-s1"}, "s1"),
        ({"blastyard/marker": "stand-in"}, ""),
    ],
)
def test_a_marker_whose_notes_were_lost_still_names_its_search(
    labels: dict[str, str], search: str
) -> None:
    found = read(labels, {})

    assert found is not None
    assert (found.search, found.level, found.attempt, found.watched) == (search, 1, 1, False)


@pytest.mark.parametrize("text", ["", "-3", "many", "1.5", "²"])
def test_a_number_that_is_none_is_taken_for_one(text: str) -> None:
    found = read({"blastyard/marker": "stand-in"}, {"blastyard/attempt": text})

    assert found is not None
    assert found.attempt == 1


@given(marker=MARKERS)
def test_a_census_reads_it_back_as_a_marker(marker: Marker) -> None:
    """Fault B22."""
    job = job_of(marker, SUBMIT)
    served = {
        "uid": "u1",
        "resourceVersion": "7",
        "creationTimestamp": "2024-05-06T07:08:09Z",
        **job["metadata"],
    }
    seen = sight(msgspec.convert({"metadata": served, "spec": job["spec"]}, Job)).counted

    assert seen.marker == marker
    assert seen.is_live
    assert seen.deadline_seconds == 3 * 24 * 3600
    assert seen.app == SUBMIT
