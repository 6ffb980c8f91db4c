"""The description and the service agree, whatever is asked."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from blastyard.http.app import create_app

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


HOST = {"Host": "127.0.0.1"}
OPERATIONS = [
    "GET /api/v1/databases",
    "GET /api/v1/queue",
    "GET /api/v1/searches",
    "POST /api/v1/searches",
    "GET /api/v1/searches/{search_id}",
    "DELETE /api/v1/searches/{search_id}",
    "POST /api/v1/searches/{search_id}/cancel",
    "GET /api/v1/searches/{search_id}/events",
    "POST /api/v1/searches/{search_id}/rerun",
    "GET /api/v1/searches/{search_id}/results",
    "GET /healthz",
    "GET /readyz",
]


def test_all_operations_but_the_stream_are_tried(front: Any) -> None:
    paths = front.client.get("/openapi.json").json()["paths"]
    described = {f"{method.upper()} {path}" for path, each in paths.items() for method in each}

    assert described - set(OPERATIONS) == {"GET /api/v1/searches/{search_id}/stream"}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_is_as_described(idle: Any, gene: str, operation: str) -> None:
    for number in range(3):
        idle.submit(gene, title=f"t{number}", tags=["x"])
    schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(idle.yard), headers=HOST)
    method, path = operation.split()

    @hypothesis.given(case=schema[path][method].as_strategy())
    @hypothesis.settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    def agree(case: schemathesis.Case) -> None:
        case.call_and_validate(headers=HOST, checks=CHECKS)

    agree()


def test_every_object_has_exactly_the_fields_described(front: Any, gene: str) -> None:
    schemas = front.client.get("/openapi.json").json()["components"]["schemas"]
    search = front.ended(front.submit(gene)["id"])
    queue = front.client.get("/api/v1/queue").json()
    database = front.client.get("/api/v1/databases").json()["databases"][0]

    assert set(search) == set(schemas["SearchObject"]["properties"])
    assert set(search["result"]) == set(schemas["ResultFile"]["properties"])
    assert set(search["query"]) == set(schemas["QueryCounts"]["properties"])
    assert set(queue) == set(schemas["QueueObject"]["properties"])
    assert set(database) == set(schemas["DatabaseObject"]["properties"])
