"""Searches are listed, looked at, cancelled, run again and deleted."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from blastyard.admission.ledger import Policy

API = "/api/v1/searches"


def test_a_search_runs_and_its_result_is_downloaded(front: Any, gene: str) -> None:
    search = front.ended(front.submit(gene, format="tsv")["id"])
    answer = front.client.get(f"{API}/{search['id']}/results")

    assert search["state"] == "completed"
    assert answer.status_code == 200
    assert answer.text.startswith("query1\tfam1_0\t")
    assert answer.headers["content-type"].startswith("text/tab-separated-values")
    name = f"blastn-{search['id'][:8]}.tsv"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert answer.headers["etag"] == f'"{hashlib.sha256(answer.content).hexdigest()}"'


def test_a_result_is_resumed_and_not_sent_twice(front: Any, gene: str) -> None:
    search = front.ended(front.submit(gene)["id"])
    url = f"{API}/{search['id']}/results"
    whole = front.client.get(url)
    size = len(whole.content)

    part = front.client.get(url, headers={"range": "bytes=5-9"})
    assert (part.status_code, part.content) == (206, whole.content[5:10])
    same = front.client.get(url, headers={"if-none-match": whole.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    other = front.client.get(url, headers={"range": "bytes=5-9", "if-range": '"other"'})
    assert other.status_code == 200
    beyond = front.client.get(url, headers={"range": f"bytes={size}-"})
    assert (beyond.status_code, beyond.json()["code"]) == (416, "range_unsatisfiable")
    assert beyond.headers["content-range"] == f"bytes */{size}"
    odd = front.client.get(url, headers={"range": "bytes=9-5"})
    assert (odd.status_code, odd.content) == (200, whole.content)
    head = front.client.head(url)
    assert (head.status_code, head.headers["content-length"]) == (200, str(size))


def test_a_result_that_is_not_there_yet_is_a_conflict(idle: Any, gene: str) -> None:
    search = idle.submit(gene)

    answer = idle.client.get(f"{API}/{search['id']}/results")

    assert (answer.status_code, answer.json()["code"]) == (409, "search_unfinished")


def test_a_deleted_result_is_gone(front: Any, gene: str) -> None:
    search = front.ended(front.submit(gene)["id"])
    front.yard.files.remove_result(search["id"], search["result"]["extension"])

    answer = front.client.get(f"{API}/{search['id']}/results")

    assert (answer.status_code, answer.json()["code"]) == (410, "result_gone")


def test_a_waiting_search_says_its_place_and_why(idle: Any, gene: str) -> None:
    idle.yard.gate.change_policy("test", ceiling=0)
    first, second = idle.submit(gene), idle.submit(gene)

    shown = idle.client.get(f"{API}/{second['id']}").json()
    queue = idle.client.get("/api/v1/queue").json()

    assert (shown["state"], shown["position"]) == ("queued", 2)
    assert "drained" in shown["reason"]
    assert [place["search"] for place in queue["waiting"]] == [first["id"], second["id"]]
    assert queue["ceiling"] == 0


def test_a_waiting_search_is_cancelled_at_once_and_again_without_error(
    idle: Any, gene: str
) -> None:
    search = idle.submit(gene)

    for _ in range(2):
        answer = idle.client.post(f"{API}/{search['id']}/cancel")
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    failed = idle.client.get(f"{API}/{search['id']}/results")
    assert (failed.status_code, failed.json()["code"]) == (409, "cancelled")


def test_only_an_ended_search_is_deleted(idle: Any, gene: str) -> None:
    search = idle.submit(gene)
    url = f"{API}/{search['id']}"

    refused = idle.client.delete(url)
    idle.client.post(f"{url}/cancel")
    deleted = idle.client.delete(url)

    assert (refused.status_code, refused.json()["code"]) == (409, "search_unfinished")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert idle.client.get(url).status_code == 404


def test_a_search_is_run_again_as_a_new_one(front: Any, gene: str) -> None:
    search = front.ended(front.submit(gene)["id"])

    answer = front.client.post(f"{API}/{search['id']}/rerun")

    assert answer.status_code == 201
    assert answer.json()["rerun_of"] == search["id"]
    assert front.ended(answer.json()["id"])["result"]["sha256"] == search["result"]["sha256"]


def test_events_tell_the_life_of_a_search(front: Any, gene: str) -> None:
    search = front.ended(front.submit(gene)["id"])

    events = front.client.get(f"{API}/{search['id']}/events").json()["events"]

    states = [event["state"] for event in events]
    assert states[0] == "queued"
    assert states[-3:] == ["running", "collecting", "completed"]


def test_a_list_goes_page_by_page_newest_first(idle: Any, gene: str) -> None:
    ids = [idle.submit(gene, tags=["x"], user=f"u{n % 2}")["id"] for n in range(5)]

    seen: list[str] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        page = idle.client.get(API, params=params).json()
        seen += [search["id"] for search in page["searches"]]
        if page["next"] is None:
            break
        params["before"] = page["next"]

    assert seen == ids[::-1]


def test_a_list_is_narrowed_by_state_user_and_tag(idle: Any, gene: str) -> None:
    mine = idle.submit(gene, tags=["x"], user="ada")
    idle.submit(gene, user="bob")
    idle.client.post(f"{API}/{mine['id']}/cancel")

    def ids(**params: Any) -> list[str]:
        page = idle.client.get(API, params=params).json()
        return [search["id"] for search in page["searches"]]

    assert ids(user="ada") == ids(tag="x") == ids(state="cancelled") == [mine["id"]]
    assert len(ids(state=["cancelled", "queued"])) == 2
    assert ids(tag="y") == []


@pytest.mark.parametrize(
    "params", [{"limit": 0}, {"limit": 501}, {"state": "sleeping"}, {"before": "x"}]
)
def test_a_list_with_a_wrong_parameter_is_a_problem(idle: Any, params: dict[str, Any]) -> None:
    answer = idle.client.get(API, params=params)

    assert (answer.status_code, answer.json()["code"]) == (422, "request_invalid")
    assert answer.json()["next_step"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_unknown_search_is_not_found(idle: Any, method: str) -> None:
    answer = idle.client.request(method, f"{API}/00000000-0000-4000-8000-000000000000")

    assert (answer.status_code, answer.json()["code"]) == (404, "search_unknown")


def test_databases_are_listed(front: Any) -> None:
    databases = front.client.get("/api/v1/databases").json()["databases"]

    assert [(each["name"], each["type"]) for each in databases] == [
        ("genes", "nucl"),
        ("proteins", "prot"),
    ]


def test_the_default_ceiling_is_shown(idle: Any) -> None:
    assert idle.client.get("/api/v1/queue").json()["ceiling"] == Policy().ceiling
