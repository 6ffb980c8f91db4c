"""What a submit command said, read from the end of its output. Pure.

ElasticBLAST writes progress with escape codes, and last a JSON object on one line: a
``submit_result`` with a decision, or an ``error`` with a category. Between them stands whatever the
tools that it runs have written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec

from blastyard.engine.elastic_blast.name import is_cluster_id
from blastyard.engine.failure import last_line

SHORTEST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 3600.0
"""Bounds of what a command may ask for with ``retry_after``."""

_ESCAPE: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours and cursor
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles and links
    r"|[ -/]*[0-~])"
)
_LINE_END: Final = re.compile(r"[\r\n]+")
_SECRET: Final = re.compile(
    r"(?i)\b(sig|sas|token|secret|password|(?:account[-_]?)?key)(\s*[=:]\s*)[^\s&;,'\"]+"
)
_LONGEST_WORDS: Final = 300
_OBJECT: Final = msgspec.json.Decoder(dict[str, Any])
_SIGNS: Final = ("decision", "category", "elb_job_id", "job_id", "ids")
"""An object with one of these is an answer; others are what some tool has printed."""
_IDS: Final = ("elb_job_id", "job_id", "correlation_id")
_WAITS: Final = ("retry_after_seconds", "retry_after")


@dataclass(frozen=True, slots=True)
class Said:
    """The JSON object that is the answer, each field as far as it is what it should be."""

    kind: str = ""
    decision: str = ""
    category: str = ""
    message: str = ""
    terminal: str = ""
    """``SUCCESS`` or ``FAILURE`` of a search that has ended before."""
    ids: tuple[str, ...] = ()
    retry_after: object = None


def said_last(out: bytes) -> Said | None:
    """The answer in the end of a standard output; ``None`` when there is none.

    Other lines may follow it; one that was cut off is no answer.
    """
    for line in _lines_from_the_end(out):
        if found := _answer(line):
            return _read(found)
    return None


def plain_last_line(text: str) -> str:
    """The last words of an output, for a person: without escape codes and secrets, bounded."""
    return worded(last_line(_ESCAPE.sub("", text).replace("\r", "\n")))


def worded(text: str) -> str:
    """A program's words, fit to be stored and shown."""
    plain = "".join(letter if letter.isprintable() else " " for letter in _ESCAPE.sub("", text))
    plain = _SECRET.sub(r"\1\2…", " ".join(plain.split()))
    return plain if len(plain) <= _LONGEST_WORDS else f"{plain[:_LONGEST_WORDS]}…"


def seconds_to_wait(told: object, now: datetime) -> float | None:
    """A ``retry_after`` in seconds from ``now``, within bounds; ``None`` when it says nothing.

    A number of seconds, as a number or as text, or a date (RFC 9110, ``Retry-After``).
    """
    seconds = _number(told)
    if seconds is None and isinstance(told, str):
        seconds = _seconds_until(told, now)
    if seconds is None or math.isnan(seconds):
        return None
    return min(max(seconds, SHORTEST_SECONDS), LONGEST_SECONDS)


def _lines_from_the_end(out: bytes) -> Iterator[str]:
    text = _ESCAPE.sub("", out.decode("utf-8", "replace"))
    for line in reversed(_LINE_END.split(text)):
        if plain := line.strip():
            yield plain


def _answer(line: str) -> dict[str, Any] | None:
    if not (line.startswith("{") and line.endswith("}")):
        return None
    try:
        found = _OBJECT.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return found if any(sign in found for sign in _SIGNS) else None


def _read(found: Mapping[str, Any]) -> Said:
    details = found.get("details")
    details = details if isinstance(details, dict) else {}
    return Said(
        kind=_word(found, "kind"),
        decision=_word(found, "decision"),
        category=_word(found, "category"),
        message=worded(_text(found, "message") or _text(found, "error")),
        terminal=_word(details, "terminal").upper() or _word(found, "terminal").upper(),
        ids=tuple(dict.fromkeys(_ids(found))),
        retry_after=next(
            (told for place in (found, details) for key in _WAITS if (told := place.get(key))), None
        ),
    )


def _ids(found: Mapping[str, Any]) -> Iterator[str]:
    many = found.get("ids")
    for each in many if isinstance(many, list) else ():
        if isinstance(each, str) and is_cluster_id(each):
            yield each
    for key in _IDS:
        if is_cluster_id(text := _text(found, key)):
            yield text


def _text(found: Mapping[str, Any], key: str) -> str:
    text = found.get(key)
    return text if isinstance(text, str) else ""


def _word(found: Mapping[str, Any], key: str) -> str:
    return _text(found, key).strip().lower()


def _number(told: object) -> float | None:
    if isinstance(told, bool) or not isinstance(told, int | float | str):
        return None
    try:
        return float(told)
    except (ValueError, OverflowError):
        return None


def _seconds_until(text: str, now: datetime) -> float | None:
    try:
        at = parsedate_to_datetime(text)
        return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
