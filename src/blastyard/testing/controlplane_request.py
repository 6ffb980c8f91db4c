"""Requests to a test's API server, with the standard library only."""

from __future__ import annotations

import http.client
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec

MERGE_PATCH: Final = "application/merge-patch+json"
"""Content type of a patch that names only the fields it changes (RFC 7396)."""

TIMEOUT_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said; ``document`` is its JSON, or ``{}`` where there was none."""

    status: int
    document: dict[str, Any]

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def expect(self, *statuses: int) -> dict[str, Any]:
        """The document, if the status is one of these. Raises ``AssertionError`` otherwise."""
        if self.status not in statuses:
            raise AssertionError(f"HTTP {self.status} from the API server: {self.document}")
        return self.document


@dataclass(frozen=True, slots=True)
class Requests:
    """Who asks which server. Every request is a connection of its own and is sent once."""

    port: int
    address: str
    ca_file: Path
    token: str
    timeout: float = TIMEOUT_SECONDS

    def send(self, method: str, path: str, document: object = None, *, kind: str = "") -> Answer:
        """Send one request, and the document as JSON with it. Raises ``OSError`` if none answers.

        ``kind`` is the document's content type where that is not plain JSON, as for a patch.
        """
        context = ssl.create_default_context(cafile=str(self.ca_file))
        connection = http.client.HTTPSConnection(
            self.address, self.port, timeout=self.timeout, context=context
        )
        headers = {"Accept": "application/json", "Authorization": f"Bearer {self.token}"}
        body = None
        if document is not None:
            body = msgspec.json.encode(document)
            headers["Content-Type"] = kind or "application/json"
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, _document(response.read()))
        except http.client.HTTPException as error:
            raise ConnectionError(f"no HTTP answer to {method} {path}: {error!r}") from error
        finally:
            connection.close()

    def finds(self, path: str) -> bool:
        """Whether the server is there and answers this GET with 200; no exception either way."""
        try:
            return self.send("GET", path).status == HTTPStatus.OK
        except OSError:
            return False

    def is_ready(self) -> bool:
        """Whether the server says it is ready to serve."""
        return self.finds("/readyz")


def _document(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:  # health checks answer in plain text
        return {}
