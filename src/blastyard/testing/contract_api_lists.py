"""What an API server does when it is asked for many objects at once."""

from __future__ import annotations

import pytest

from blastyard.testing.contract_api import ApiContract, ApiUnderTest, Caller, job, lease
from blastyard.testing.contract_api_jobs import NOT_OURS

_LABELS = {
    "blast": {"app": "blast", "elb-job-id": "one"},
    "finalizer": {"app": "finalizer", "elb-job-id": "one"},
    "other": {"app": "other"},
    "plain": {},
    "submit": {"app": "submit", "elb-job-id": "two"},
}


class ListContract(ApiContract):
    """Lists: what is in them, page by page, all of one moment."""

    @pytest.fixture
    def seven(self, api: ApiUnderTest) -> Caller:
        """Seven Leases."""
        seven = Caller(api, "leases")
        for name in "gfedcba":
            labels = {"is": name, "odd": "yes" if name in "bdf" else "no"}
            seven.post(lease(name, {"holderIdentity": "1"}, labels=labels))
        return seven

    @pytest.fixture
    def five(self, api: ApiUnderTest) -> Caller:
        """Five Jobs."""
        five = Caller(api, "jobs")
        for name, labels in _LABELS.items():
            five.post(job(name, labels, managedBy=NOT_OURS))
        return five

    def test_a_list_is_in_the_order_of_names_and_tells_its_version(self, seven: Caller) -> None:
        said = seven.list()

        versions = [int(one["metadata"]["resourceVersion"]) for one in said.document["items"]]
        assert (said.status, said.names) == (200, list("abcdefg"))
        assert said.document["kind"] == "LeaseList"
        assert int(said.version) >= max(versions)
        assert not any(one.keys() & {"kind", "apiVersion"} for one in said.document["items"])

    @pytest.mark.parametrize(
        ("selector", "names"),
        [
            ("app=blast", ["blast"]),
            ("app==blast", ["blast"]),
            ("app in (finalizer,blast,submit)", ["blast", "finalizer", "submit"]),
            ("app in ( finalizer , blast )", ["blast", "finalizer"]),
            ("app notin (blast,other)", ["finalizer", "plain", "submit"]),
            ("app!=blast", ["finalizer", "other", "plain", "submit"]),
            ("elb-job-id", ["blast", "finalizer", "submit"]),
            ("!elb-job-id", ["other", "plain"]),
            ("app,!elb-job-id", ["other"]),
            ("app in (blast,submit),elb-job-id=two", ["submit"]),
            ("app=", []),
            ("app=nothing", []),
        ],
    )
    def test_labels_select(self, five: Caller, selector: str, names: list[str]) -> None:
        assert five.list(labelSelector=selector).names == names

    @pytest.mark.parametrize("selector", ["app in (", "a b", "app=b c", "=x", "app in blast"])
    def test_a_label_selector_that_is_none_is_refused(self, five: Caller, selector: str) -> None:
        assert five.list(labelSelector=selector).outcome == (400, "BadRequest")

    def test_fields_select(self, api: ApiUnderTest, five: Caller) -> None:
        api.complete("blast")
        api.fail("submit")

        live = five.list(fieldSelector="status.successful=0")
        ended = five.list(fieldSelector="status.successful!=0")
        one = five.list(fieldSelector="metadata.name=submit,status.successful=0")

        assert live.names == ["finalizer", "other", "plain", "submit"]
        assert (ended.names, one.names) == (["blast"], ["submit"])

    def test_a_field_that_cannot_be_selected_by_is_refused(
        self, seven: Caller, five: Caller
    ) -> None:
        assert five.list(fieldSelector="status.failed=0").outcome == (400, "BadRequest")
        assert seven.list(fieldSelector="status.successful=0").outcome == (400, "BadRequest")

    def test_pages_are_of_one_moment(self, seven: Caller) -> None:
        first = seven.list(limit="3")
        seven.delete("e")
        seven.post(lease("dd", {}))
        seven.patch("f", {"spec": {"holderIdentity": "2"}})
        second = seven.list(limit="3", continue_=first.document["metadata"]["continue"])
        third = seven.list(limit="3", continue_=second.document["metadata"]["continue"])

        assert [first.names, second.names, third.names] == [list("abc"), list("def"), ["g"]]
        assert first.version == second.version == third.version
        assert second.document["items"][2]["spec"] == {"holderIdentity": "1"}
        assert "continue" not in third.document["metadata"]

    def test_pages_count_what_is_selected(self, seven: Caller) -> None:
        first = seven.list(limit="2", labelSelector="odd=yes")
        token = first.document["metadata"]["continue"]
        second = seven.list(limit="2", labelSelector="odd=yes", continue_=token)

        assert [first.names, second.names] == [["b", "d"], ["f"]]

    def test_a_page_tells_what_remains_unless_something_was_selected(self, seven: Caller) -> None:
        plain = seven.list(limit="3").document["metadata"]
        selected = seven.list(limit="3", labelSelector="is").document["metadata"]

        assert plain["remainingItemCount"] == 4
        assert "remainingItemCount" not in selected

    @pytest.mark.parametrize("limit", ["0", "7", "8", "-1"])
    def test_a_limit_that_is_not_reached_is_none(self, seven: Caller, limit: str) -> None:
        said = seven.list(limit=limit)

        assert said.names == list("abcdefg")
        assert "continue" not in said.document["metadata"]

    def test_what_cannot_be_continued_is_refused(self, seven: Caller) -> None:
        token = seven.list(limit="3").document["metadata"]["continue"]

        assert seven.list(limit="3", continue_="nonsense").outcome == (400, "BadRequest")
        version = seven.list().version
        both = seven.list(limit="3", continue_=token, resourceVersion=version)
        assert both.outcome == (400, "BadRequest")
        assert seven.list(limit="many").outcome == (400, "BadRequest")

    def test_a_list_of_any_version_has_no_pages(self, seven: Caller) -> None:
        said = seven.list(limit="3", resourceVersion="0")

        assert (said.status, "continue" in said.document["metadata"]) == (200, False)

    def test_a_list_not_older_than_a_version_waits_for_it_in_vain(self, seven: Caller) -> None:
        now = seven.list()

        there = seven.list(resourceVersion=now.version)
        never = seven.list(resourceVersion=str(int(now.version) + 1_000_000))

        assert there.names == now.names
        assert never.outcome == (504, "Timeout")

    def test_a_collection_is_deleted_as_selected(self, five: Caller) -> None:
        five.delete_some("app in (blast,submit)", propagationPolicy="Background")

        assert five.list().names == ["finalizer", "other", "plain"]


class HistoryContract(ApiContract):
    """What an API server says when it has forgotten what is asked for."""

    def test_a_list_cannot_be_continued_once_its_moment_is_forgotten(
        self, api: ApiUnderTest
    ) -> None:
        leases = Caller(api, "leases")
        for name in "abc":
            leases.post(lease(name, {}))
        first = leases.list(limit="1")
        leases.delete("b")
        api.forget()

        said = leases.list(limit="1", continue_=first.document["metadata"]["continue"])

        assert said.outcome == (410, "Expired")
        anew = said.document["metadata"]["continue"]
        assert leases.list(limit="1", continue_=anew).names == ["c"]
