"""Times as the API server reads and writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_MICRO: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[.,](\d{6})(Z|[+-](?:[01]\d|2[0-4]):[0-5]\d)"
)
_ZERO: Final = "0001-01-01T00:00:00.000000Z"


def whole(moment: datetime) -> str:
    """A ``Time``: whole seconds, which is less than what it was."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_whole(text: str) -> datetime:
    """The moment that a ``Time`` means. Raises ``ValueError``."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None or "T" not in text:
        raise ValueError(text)
    return found.astimezone(UTC)


def micro(text: str) -> str | None:
    """A ``MicroTime`` as it comes back; ``None`` for the zero time. Raises ``ValueError``.

    Exactly six fractional digits are read, after a point or a comma, and no zone but ``Z`` or an
    offset (Go's layout ``2006-01-02T15:04:05.000000Z07:00``).
    """
    found = _MICRO.fullmatch(text)
    if found is None:
        layout = "2006-01-02T15:04:05.000000Z07:00"
        raise ValueError(f'parsing time "{text}" as "{layout}": cannot parse it')
    seconds, fraction, zone = found.groups()
    local = datetime.fromisoformat(f"{seconds}.{fraction}")
    if zone != "Z":
        hours, minutes = zone[1:].split(":")
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        local = local - offset if zone[0] == "+" else local + offset
    written = f"{local:%m-%dT%H:%M:%S.%f}Z"
    whole_text = f"{local.year:04}-{written}"
    return None if whole_text == _ZERO else whole_text
