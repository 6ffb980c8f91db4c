"""How an error is told: a sentence and the next step on standard error, and an exit code."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterable
from typing import Any, Final

from blastyard.domain.errors import CODES, UNKNOWN, BlastyardError

MISUSED: Final = CODES["request_invalid"].exit_code
BROKEN_PIPE: Final = 141
"""What a shell shows for a program that ended because nobody read on."""


def error_shape(error: BlastyardError) -> dict[str, Any]:
    """An error, as every front shows it."""
    return {"code": error.code, "message": error.message, "next_step": error.next_step}


def tell(message: str) -> None:
    """Say something to the person at the terminal; never part of the output."""
    print(message, file=sys.stderr, flush=True)


def tell_notices(notices: Iterable[str]) -> None:
    """Repairs made and oddities kept in a query: said, because the result depends on them."""
    for notice in notices:
        tell(f"note: {notice}")


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False), flush=True)


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


def log_to_terminal(level: str, *, debug: bool) -> None:
    """Send log lines of this process to standard error; tracebacks only when ``debug``."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Plain(debug=debug))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
