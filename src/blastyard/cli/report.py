"""How an error is told: a sentence and the next step on standard error, and an exit code."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from typing import TYPE_CHECKING, Any, Final

from blastyard.domain.errors import CODES, UNKNOWN, BlastyardError
from blastyard.logline import JsonLines

if TYPE_CHECKING:
    from blastyard.service.searches import Submitted
    from blastyard.settings import Settings

MISUSED: Final = CODES["request_invalid"].exit_code
BROKEN_PIPE: Final = 141
"""What a shell shows for a program that ended because nobody read on."""


def error_shape(error: BlastyardError) -> dict[str, Any]:
    """An error, as every front shows it."""
    return {"code": error.code, "message": error.message, "next_step": error.next_step}


def tell(message: str) -> None:
    """Say something to the person at the terminal; never part of the output."""
    print(message, file=sys.stderr, flush=True)


def tell_accepted(submitted: Submitted) -> None:
    """What an accepted search is not as its asker may think: the result depends on it."""
    for notice in submitted.search.query.notices:
        tell(f"note: {notice}")
    if not submitted.created:
        tell(f"note: the key was used before, for search {submitted.search.id}")


def print_json(value: Any) -> None:
    """One JSON document on standard output, in UTF-8.

    A file's name may have bytes that are not UTF-8, and stands in JSON's own escapes then.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print(text.encode(errors="backslashreplace").decode(), flush=True)


def fail(error: BlastyardError, *, as_json: bool, shown: bool = False) -> int:
    """Tell what is wrong and what to do; the exit code. ``shown``: the JSON was printed before."""
    tell(f"blastyard: {error.message}")
    if error.next_step:
        tell(f"  next: {error.next_step}")
    if as_json and not shown:
        print_json({"error": error_shape(error)})
    return error.meaning.exit_code


def fail_unexpectedly(error: BaseException, *, as_json: bool, debug: bool) -> int:
    """Tell of a fault of the program."""
    if debug:
        traceback.print_exception(error)
    message = f"something unexpected happened: {type(error).__name__}: {error}"
    step = "" if debug else "set BLASTYARD_DEBUG=1 and try again for the details"
    fail(BlastyardError("internal", message, step), as_json=as_json)
    return UNKNOWN


def is_known(code: str) -> bool:
    """Whether this blastyard knows an error code; a newer one may have stored others."""
    return code in CODES


def interrupted(message: str, next_step: str = "") -> BlastyardError:
    """What Ctrl-C comes to."""
    return BlastyardError("interrupted", message, next_step)


class _Plain(logging.Formatter):
    def __init__(self, *, debug: bool) -> None:
        super().__init__("blastyard: %(message)s")
        self._debug = debug

    def formatException(self, ei: Any) -> str:  # noqa: N802  (the name logging has for it)
        return super().formatException(ei) if self._debug else f"  {ei[0].__name__}: {ei[1]}"


def log_style(settings: Settings) -> tuple[str, str]:
    """Level and format of the log lines of a command: a person wants warnings only, if nothing
    else was said; a program reads all of them."""
    level, form = settings.log_level, settings.log_format
    return ("warning" if level == "info" and form == "text" else level), form


def log_to_terminal(level: str, form: str = "text", *, debug: bool) -> None:
    """Send log lines of this process to standard error; tracebacks only when ``debug``, or in
    ``json``."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else _Plain(debug=debug))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
