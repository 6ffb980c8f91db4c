"""What the command says on its standard output, and with which exit code it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any, Final, NoReturn

from blastyard.testing.elastic_blast.plan import Run

DEPENDENCY: Final = 7
_CATEGORIES: Final = {1: "invalid", 7: "permanent", 10: "capacity", 255: "internal"}
"""The category that comes with an exit code when a plan says none; all others are ``transient``."""


class Failure(Exception):
    """The command ends with an error."""

    def __init__(
        self, code: int, message: str, category: str = "", retry_after: float | str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.category = category or _CATEGORIES.get(code, "transient")
        self.retry_after = retry_after

    @classmethod
    def planned(cls, run: Run) -> Failure:
        """The one of a plan."""
        code = run.exit_code or 3
        message = run.message or f"planned to end with {code}"
        return cls(code, message, run.category, run.retry_after)


class Voice:
    """Standard output: progress with escape codes, and the answer in the way of the plan."""

    def __init__(self, run: Run, *, as_json: bool) -> None:
        self._run = run
        self._as_json = as_json

    def progress(self) -> None:
        """What nobody but a person reads."""
        for number in range(self._run.progress):
            step = f"\x1b[33m[{number + 1}/{self._run.progress}] Writing configuration\x1b[0m\n"
            _write(step if number % 2 == 0 else f"{number} %\r{number + 1} %\r\n")

    def failed(self, failure: Failure) -> int:
        """The answer to an error; the exit code."""
        sys.stderr.write(f"ERROR: {failure.message}\n")
        self._answer(
            {
                "kind": "error",
                "category": failure.category,
                "message": failure.message,
                "retry_after_seconds": failure.retry_after,
                "details": {},
                "correlation_id": None,
            }
        )
        return failure.code

    def submitted(self, key: str, *, decision: str = "", terminal: str = "") -> int:
        """The answer to what went well; the exit code."""
        details = {"terminal": terminal} if terminal else {}
        self._answer(
            {
                "kind": "submit_result",
                "decision": decision or self._run.decision,
                "correlation_id": key,
                "cluster_name": "stand-in",
                "message": self._run.message or "submission accepted",
                "retry_after_seconds": self._run.retry_after,
                "queue_position": None,
                "details": details,
            }
        )
        return self._run.exit_code

    def _answer(self, said: dict[str, Any]) -> None:
        if not self._as_json or self._run.answer == "none":
            return
        line = json.dumps(said, separators=(",", ":"), sort_keys=True)
        match self._run.answer:
            case "crlf":
                _write(f"{line}\r\n")
            case "twice":
                _write(f'{{"kind":"error","category":"transient"}}\n{line}\n')
            case "followed":
                _write(f'{line}\n{{"id":"/subscriptions/1"}}\n\x1b[0m\n')
            case "truncated":
                _write(line[: len(line) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                _write(f"{line}\n")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def refuse(message: str) -> NoReturn:
    """End as ElasticBLAST's own parser of arguments does."""
    sys.stderr.write(f"elastic-blast: error: {message}\n")
    sys.exit(1)
