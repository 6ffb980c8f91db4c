"""The API server as a foreign program asks it: JSON documents of one namespace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from blastyard.domain.errors import Unavailable
from blastyard.kube.wire import Call, Wire

Document = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"


class Forbidden(Exception):
    """The credential may not do that. The message names verb, resource and namespace."""


class Unanswered(Exception):
    """It cannot be told what came of a request. ``retry_after`` in seconds, where one was told."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Api:
    """One namespace, over one wire."""

    def __init__(self, wire: Wire, namespace: str) -> None:
        self._wire = wire
        self.namespace = namespace

    def ask(
        self,
        verb: str,
        resource: str,
        document: Document | None = None,
        *,
        query: Mapping[str, str] | None = None,
        kind: str = "application/json",
    ) -> tuple[int, Document]:
        """One request; its status and document. ``resource`` is like ``batch/v1/jobs/name``.

        Raises :class:`Forbidden` for 401 and 403, :class:`Unanswered` for 429, 5xx, what is no
        JSON, and what never was an answer.
        """
        group, version, rest = resource.split("/", 2)
        root = "/api" if group == "core" else f"/apis/{group}"
        path = f"{root}/{version}/namespaces/{self.namespace}/{rest}"
        body = None if document is None else json.dumps(document).encode()
        try:
            answer = self._wire.send(Call(verb, path, query or {}, body, kind))
        except Unavailable as error:
            raise Unanswered(error.message) from error
        what = f"{verb} {resource} in {self.namespace}"
        if answer.status in (401, 403):
            raise Forbidden(f"{what}: HTTP {answer.status}; its Role must allow it")
        if answer.status == 429 or answer.status >= 500:
            raise Unanswered(f"{what}: HTTP {answer.status}", answer.retry_after)
        try:
            found = json.loads(answer.body)
        except ValueError as error:
            raise Unanswered(f"{what}: no JSON in the answer") from error
        if not isinstance(found, dict):
            raise Unanswered(f"{what}: no object in the answer")
        return answer.status, found
