"""Whether two requests under one idempotency key ask the same."""

from __future__ import annotations

import hashlib
import json

from blastyard.domain.errors import Conflict
from blastyard.domain.search import Search


def require_same(stored: Search, asked: Search) -> None:
    """Raise ``Conflict('key_conflict')`` unless both ask the same."""
    if fingerprint(stored) != fingerprint(asked):
        raise Conflict(
            "key_conflict",
            f"the key {asked.request.key!r} was used for search {stored.id}, which asks "
            "something else",
            "use another key, or ask exactly the same again",
        )


def fingerprint(search: Search) -> str:
    """What makes two requests the same: all of the question, nothing of the asking."""
    request = search.request
    parts = [
        request.program,
        request.database,
        request.options,
        request.output_format,
        search.query.sha256,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
