"""Who may ask, what every answer says to a browser, and what an error looks like."""

from __future__ import annotations

from typing import Any

import pytest

from blastyard.domain.errors import CODES
from blastyard.http.app import create_app


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost", "LOCALHOST:1", "[::1]:8642"])
def test_the_names_of_this_machine_are_answered(front: Any, host: str) -> None:
    assert front.client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "0.0.0.0"])
def test_a_foreign_name_is_refused_so_that_it_cannot_be_rebound(front: Any, host: str) -> None:
    answer = front.client.get("/healthz", headers={"host": host})

    assert (answer.status_code, answer.json()["code"]) == (403, "origin_refused")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://["},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/searches", "/api/v1/searches", "/searches/abcd/cancel"])
def test_another_site_cannot_change_anything(
    front: Any, headers: dict[str, str], path: str
) -> None:
    answer = front.client.post(path, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (403, "origin_refused")


def test_our_own_page_may_change_things(front: Any) -> None:
    headers = {"origin": "http://127.0.0.1:8642", "sec-fetch-site": "same-origin"}

    answer = front.client.post("/api/v1/searches/nosuchsearch/cancel", headers=headers)

    assert answer.json()["code"] == "search_unknown"


@pytest.mark.parametrize("path", ["/", "/healthz", "/nothing", "/static/page.js", "/docs"])
def test_every_answer_forbids_what_a_page_does_not_need(front: Any, path: str) -> None:
    headers = front.client.get(path).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/nothing", 404, "route_unknown"),
        ("GET", "/static/nothing.js", 404, "route_unknown"),
        ("GET", "/static/../app.py", 404, "route_unknown"),
        ("PUT", "/api/v1/searches", 405, "method_unknown"),
        ("DELETE", "/api/v1/queue", 405, "method_unknown"),
        ("GET", "/api/v1/searches/nosuchsearch", 404, "search_unknown"),
    ],
)
def test_an_error_is_a_problem_with_all_its_fields(
    front: Any, method: str, path: str, status: int, code: str
) -> None:
    answer = front.client.request(method, path)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == f"/docs#{code}"
    assert problem["title"] == CODES[code].title
    assert problem["status"] == status
    assert problem["code"] == code
    assert problem["detail"]
    assert problem["next_step"]


def test_a_405_names_the_methods(front: Any) -> None:
    assert front.client.put("/api/v1/queue").headers["allow"] == "GET"


def test_a_person_gets_an_error_as_a_page(browser: Any) -> None:
    answer = browser.get("/searches/nosuchsearch")

    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "search_unknown" in answer.text


class _Broken:
    """An installation whose databases cannot be listed."""

    def __init__(self, yard: Any) -> None:
        self._yard = yard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._yard, name)

    @property
    def databases(self) -> Any:
        return None


def test_a_fault_of_ours_is_a_problem_that_tells_nothing_else(front: Any, client_of: Any) -> None:
    client = client_of(create_app(_Broken(front.yard)))

    answer = client.get("/api/v1/databases")

    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "NoneType" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_ready_says_the_version_and_when_the_worker_has_ended(front: Any, client_of: Any) -> None:
    assert front.client.get("/readyz").json()["blast_version"].endswith("+")
    app = create_app(front.yard, is_working=lambda: False)

    answer = client_of(app).get("/readyz")

    assert (answer.status_code, answer.json()["code"]) == (503, "worker_stopped")
    assert answer.headers["retry-after"]


def test_the_reference_needs_nothing_from_elsewhere(front: Any) -> None:
    page = front.client.get("/docs").text

    assert "/api/v1/searches/{search_id}/results" in page
    assert "https://" not in page
    assert all(f'id="{code}"' in page for code in CODES)
    assert front.client.get("/openapi.json").json()["openapi"].startswith("3.1")


def test_the_reference_shows_the_address_it_is_read_at(front: Any) -> None:
    page = front.client.get("/docs", headers={"host": "localhost:18711"}).text

    assert "http://localhost:18711/api/v1/searches?program=blastn" in page
