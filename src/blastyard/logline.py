"""Log lines: for people as words, for programs as one JSON object a line.

An *event* is a line with a name to grep for and fields. As words it reads
``k8s_gate_deny search=s1 rule=capacity ceiling=3``; in JSON the fields stand beside ``event``.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

_FIELDS: Final = "blastyard_fields"
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/+@()")


def note(log: logging.Logger, level: int, event: str, /, **fields: object) -> None:
    """Log an event. Fields that are ``None`` are left out of the words, and ``null`` in JSON."""
    if log.isEnabledFor(level):
        said = {"event": event, **fields}
        log.log(level, "%s", _Words(event, fields), extra={_FIELDS: said})


class _Words:
    """The event as one line; made only when a handler wants it."""

    def __init__(self, event: str, fields: Mapping[str, object]) -> None:
        self._event = event
        self._fields = fields

    def __str__(self) -> str:
        told = (
            f"{name}={_word(value)}"
            for name, value in self._fields.items()
            if value is not None and value != ""
        )
        return " ".join([self._event, *told])


def _word(value: object) -> str:
    text = _plain(value)
    is_plain = isinstance(text, str) and text and _PLAIN.issuperset(text)
    return text if is_plain else json.dumps(text)


def _plain(value: object) -> Any:
    """What JSON knows; moments as RFC 3339 in UTC, everything else as text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, str):
        return str(value)
    return value if isinstance(value, int | float | bool) or value is None else str(value)


class JsonLines(logging.Formatter):
    """One JSON object for each record, on one line: ``at``, ``level``, ``logger`` and ``message``,
    an event's fields, and ``exception`` where there is a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """See ``logging``. Whatever a line is about, it stays one line of UTF-8."""
        line: dict[str, object] = {
            "at": _plain(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields: Mapping[str, object] = getattr(record, _FIELDS, {})
        line |= {name: _plain(value) for name, value in fields.items() if name not in line}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


def log_to_stderr(level: str, form: str = "text") -> None:
    """One line for each event; the web server's own only when something is wrong."""
    handler = logging.StreamHandler(sys.stderr)
    words = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if form == "json" else words)
    logging.basicConfig(level=level.upper(), handlers=[handler])
    for chatty in ("uvicorn", "alembic", "httpx2", "kombu", "celery", "azure"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
