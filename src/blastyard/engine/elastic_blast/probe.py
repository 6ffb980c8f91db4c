"""Whether the installed ElasticBLAST can be told under which id to submit.

The one on PyPI cannot: it knows neither ``--json`` nor ``--idempotency-key``. Its help is asked
once for each executable, known by its path, time of change and size, so that an upgrade is noticed.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final

from blastyard.domain.errors import Misconfigured, Unavailable
from blastyard.engine.command import Command, Ending
from blastyard.engine.elastic_blast.command import SETTING
from blastyard.engine.elastic_blast.execution import Execution, Start
from blastyard.engine.elastic_blast.said import plain_last_line
from blastyard.engine.guarded import NotStarted

NEEDED: Final = ("--json", "--idempotency-key")
_SECONDS: Final = 60.0
_NO_PROGRAM: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENOEXEC})
_WORD: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*")

Identity = tuple[str, int, int]


class Probe:
    """Asks, and remembers. Thread-safe. ``monotonic`` is the system's clock."""

    def __init__(self, monotonic: Callable[[], float], start: Start = Execution.start) -> None:
        self._monotonic = monotonic
        self._start = start
        self._known: dict[Identity, frozenset[str]] = {}
        self._lock = Lock()

    def require(self, program: str, environment: Mapping[str, str]) -> None:
        """Return when ``program submit`` has the options that are needed.

        Raises ``Misconfigured('dependency_missing')`` when it has not, or is not there, and
        ``Unavailable('terminal_exec_unavailable')`` when it does not say.
        """
        path = found_program(program, environment)
        identity = _identity(path)
        with self._lock:
            options = self._known.get(identity)
            if options is None:
                options = self._known[identity] = self._ask(path, environment)
        if missing := [option for option in NEEDED if option not in options]:
            raise Misconfigured(
                "dependency_missing",
                f"{path} has no {' and no '.join(missing)}, so it cannot be told under which id to "
                "submit, and what it submits could not be found again",
                "install an elastic-blast that has them, or set "
                f"{SETTING} to a command with {{id}} and {{cfg}} in it",
            )

    def _ask(self, path: str, environment: Mapping[str, str]) -> frozenset[str]:
        command = Command((path, "submit", "--help"), environment, cwd="/")
        try:
            with self._start(command, self._monotonic() + _SECONDS) as execution:
                ending = execution.wait()
                out = execution.out().decode("utf-8", "replace")
        except (NotStarted, OSError) as error:
            raise not_started(path, error) from error
        if ending is None or ending.exit_code != 0:
            raise _silent(path, ending)
        return frozenset(_WORD.findall(out + ending.stderr))


def found_program(program: str, environment: Mapping[str, str]) -> str:
    """The path of an executable. Raises ``Misconfigured('dependency_missing')``."""
    path = shutil.which(program, path=environment.get("PATH", ""))
    if path is None:
        raise Misconfigured(
            "dependency_missing",
            f"the submit command {program} is not on the PATH ({environment.get('PATH', '')})",
            f"install elastic-blast, or set {SETTING} to the command that submits here",
        )
    return os.path.abspath(path)  # noqa: PTH100  (a link to a virtual environment must stay one)


def not_started(program: str, error: NotStarted | OSError) -> Misconfigured | Unavailable:
    """What to tell when a command certainly did not run."""
    number = error.number if isinstance(error, NotStarted) else error.errno
    if isinstance(error, NotStarted) and error.stage == "exec" and number in _NO_PROGRAM:
        return Misconfigured(
            "dependency_missing",
            f"{program} cannot be run: {error}",
            f"install elastic-blast again, or set {SETTING} to the command that submits here",
        )
    return Unavailable(
        "terminal_exec_unavailable",
        f"{program} could not be started: {error}",
        "look whether this machine has processes, files and memory left",
    )


def _identity(path: str) -> Identity:
    seen = os.stat(path)  # noqa: PTH116  (follows links, as running it does)
    return (path, seen.st_mtime_ns, seen.st_size)


def _silent(path: str, ending: Ending | None) -> Unavailable:
    how = "was ended" if ending is None or not ending.by_itself else f"gave {ending.shell_code}"
    said = plain_last_line(ending.stderr) if ending else ""
    return Unavailable(
        "terminal_exec_unavailable",
        f"`{path} submit --help` {how}" + (f": {said}" if said else ""),
        f"run it by hand; or set {SETTING} to the command that submits here",
    )
