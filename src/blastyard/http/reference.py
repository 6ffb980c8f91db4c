"""The reference of the HTTP API as one plain page, made from the OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from blastyard.domain.errors import CODES
from blastyard.http.template import render

_METHODS: Final = ("get", "post", "delete")


def add_reference(app: FastAPI) -> None:
    """Serve ``/docs``; it needs no script and nothing from elsewhere."""

    def reference(request: Request) -> Response:
        schema = app.openapi()
        return render(
            "reference.html",
            title=schema["info"]["title"],
            version=schema["info"]["version"],
            address=request.base_url,
            operations=list(_operations(schema)),
            schemas=schema["components"]["schemas"],
            codes=CODES,
        )

    app.add_route("/docs", reference, include_in_schema=False)


def _operations(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path, methods in schema["paths"].items():
        for method in _METHODS:
            if method in methods:
                operation = methods[method]
                yield {
                    "method": method.upper(),
                    "path": path,
                    "text": operation.get("description", ""),
                    "parameters": operation.get("parameters", []),
                    "body": list(operation.get("requestBody", {}).get("content", {})),
                    "body_text": operation.get("requestBody", {}).get("description", ""),
                    "responses": {
                        status: (answer["description"], _schema_name(answer))
                        for status, answer in operation["responses"].items()
                    },
                }


def _schema_name(answer: dict[str, Any]) -> str:
    for content in answer.get("content", {}).values():
        reference = content.get("schema", {}).get("$ref", "")
        if reference:
            return str(reference.rpartition("/")[2])
    return ""
