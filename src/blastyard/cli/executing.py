"""`exec`: any submit command behind both gates."""

from __future__ import annotations

import os
import re
from contextlib import AbstractContextManager, ExitStack, closing
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from blastyard.cli import option, report
from blastyard.cli.dropin.interrupt import Interrupts
from blastyard.cli.line import SilentLine, TerminalLine, elapsed_seconds, new_line
from blastyard.domain.errors import (
    PASSING,
    BlastyardError,
    CallerMistake,
    Misconfigured,
    Unavailable,
)
from blastyard.domain.search import Priority
from blastyard.service.entrance import Entrance, Patience, Stopped
from blastyard.settings import Settings, account_name, caller_environment, read_settings

if TYPE_CHECKING:
    from blastyard.admission.outcome import Waiting
    from blastyard.bootstrap.gate import OpenGate
    from blastyard.engine.command import Ending
    from blastyard.engine.guarded import GuardedCommand
    from blastyard.service.submitting import Submitting

REFUSED: Final = 120
TIMED_OUT: Final = 121
LEASE_LOST: Final = 122
UNAVAILABLE: Final = 123
INTERRUPTED: Final = 124
MISUSED: Final = 125

_CODES: Final = {
    "submit_slot_timeout": TIMED_OUT,
    "capacity_timeout": TIMED_OUT,
    "lease_lost": LEASE_LOST,
    "cluster_forbidden": REFUSED,
}
_ID: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,59}[A-Za-z0-9])?")
_SPAN: Final = re.compile(r"(\d+)\s*(s|m|h)?")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600}


def execute(
    context: typer.Context,
    user: option.User = "",
    priority: option.Priority = "normal",
    search_id: Annotated[
        str,
        typer.Option(
            "--search-id", metavar="ID", help="The id the command submits under; made if not given."
        ),
    ] = "",
    wait: Annotated[
        str, typer.Option("--wait", metavar="SPAN", help="How long to wait at most: 90s, 30m, 2h.")
    ] = "",
) -> int:
    """Run a submit command when its turn has come, and not beside another submission.

    The command stands after `--`. It finds its search's id in BLASTYARD_SEARCH_ID, and {id} in its
    words is replaced by it. Its input, output and exit code are its own; 120 refused, 121 waited
    too long, 122 the submit lease was lost and the command ended, 123 cluster unavailable, 124
    interrupted, 125 misused.
    """
    try:
        settings = read_settings()
        report.log_to_terminal(*report.log_style(settings), debug=settings.is_debug)
        return Execution(settings, Asked.read(context.obj, user, priority, search_id, wait)).run()
    except BlastyardError as error:
        report.fail(error, as_json=False)
        code = code_of(error)
        if code == TIMED_OUT:  # two limits end with it
            report.tell(f"  code: {error.code}")
        return code


def code_of(error: BlastyardError) -> int:
    """The exit code of `exec` for what kept the command from running."""
    if error.code in _CODES:
        return _CODES[error.code]
    if error.code in PASSING or isinstance(error, Unavailable):
        return UNAVAILABLE
    return MISUSED if isinstance(error, CallerMistake | Misconfigured) else UNAVAILABLE


class Asked:
    """The command line, checked."""

    def __init__(self, words: tuple[str, ...], user: str, level: int, search: str) -> None:
        self.words = words
        self.user = user
        self.level = level
        self.search = search
        self.wait: timedelta | None = None

    @classmethod
    def read(cls, words: object, user: str, priority: str, search_id: str, wait: str) -> Asked:
        """Raises ``CallerMistake`` for what cannot be meant."""
        if not isinstance(words, list) or not words:
            raise _wrong("there is no command", "write it after --: blastyard exec -- my-submit …")
        try:
            level = Priority(priority).level
        except ValueError:
            raise _wrong(f"{priority!r} is no priority", "low, normal or high") from None
        if search_id and not _ID.fullmatch(search_id):
            step = "up to 61 letters, digits, '.', '-' and '_', no punctuation at its ends"
            raise _wrong(f"{search_id!r} cannot be an id", step)
        search = search_id or f"job-{os.urandom(16).hex()}"
        asked = cls(tuple(word.replace("{id}", search) for word in words), user, level, search)
        asked.wait = _span(wait) if wait else None
        return asked


def _span(text: str) -> timedelta:
    match = _SPAN.fullmatch(text.strip())
    if match is None or not int(match[1]):
        raise _wrong(f"{text!r} is no span of time", "for example 90s, 30m or 2h")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2] or "s"])


def _wrong(message: str, step: str) -> CallerMistake:
    return CallerMistake("request_invalid", message, step)


class Execution:
    """One command behind both gates. Opens the gate by itself, unless a subclass does otherwise."""

    def __init__(self, settings: Settings, asked: Asked) -> None:
        self._settings = settings
        self._asked = asked
        self._user = asked.user or settings.user or account_name()

    def run(self) -> int:
        """Wait, run, tell; the exit code."""
        from blastyard.service.submitting import Fate  # noqa: PLC0415  (help needs none of it)

        interrupts = Interrupts()
        with ExitStack() as stack:
            line = new_line()
            stack.enter_context(line)
            try:
                passage, ending = self._admitted(stack, interrupts, line)
            except Stopped:
                report.tell("blastyard: interrupted while it waited; nothing was submitted")
                return INTERRUPTED
        result = passage.result
        fate = Fate.FAILED if result is None else result.fate
        if fate is Fate.LEASE_LOST:
            raise Unavailable(
                "lease_lost",
                "the submit lease was lost, so the command was ended; what it made is left alone",
                "look at what there is with `blastyard gate status`, then start it again",
            )
        if interrupts.caught is not None and not ending.by_itself:
            report.tell("blastyard: interrupted; what the command had made was deleted")
            return INTERRUPTED
        if fate is Fate.UNCONFIRMED:
            report.tell(
                "blastyard: submitted, though the ledger could not be told; it counts anyway"
            )
        return _exit_code(ending, self._settings)

    def _admitted(
        self, stack: ExitStack, interrupts: Interrupts, line: SilentLine | TerminalLine
    ) -> tuple[Submitting, Ending]:
        from blastyard.admission.ticket import Wish  # noqa: PLC0415
        from blastyard.service.submitting import Submitting  # noqa: PLC0415

        opened = stack.enter_context(self.gate())
        watch = stack.enter_context(closing(opened.documents.watch()))
        monotonic = opened.clock.monotonic
        entrance = Entrance(opened.gate, watch, monotonic, self._nothing, opened.tend)
        wish = Wish(self._asked.search, self._user, self._asked.level)
        passage = Submitting(
            entrance,
            wish,
            self._patience(),
            partial(_tell, line),
            limit=timedelta(seconds=self._settings.submit_exec_timeout_seconds),
            watched=self._settings.on_cluster,
            first=int.from_bytes(os.urandom(4)) * 1000,
        )
        interrupts.call(passage.stop)
        with passage:
            running = passage.admit(partial(self.start, line))
            stack.callback(running.close)
            ending = running.wait()
        if ending is None:
            raise RuntimeError("an admitted command has ended when its passage is over")
        return passage, ending

    def _patience(self) -> Patience:
        if self._asked.wait is not None:
            return Patience(self._asked.wait, self._asked.wait)
        return Patience(*self._settings.exec_waits)

    def _nothing(self) -> None:
        """There is no store here in which a dead process could have left a search."""

    def gate(self) -> AbstractContextManager[OpenGate]:
        """Admission, until the command has ended."""
        from blastyard.bootstrap.gate import leaving, open_gate, this_process  # noqa: PLC0415

        return leaving(open_gate(self._settings, this_process("exec")))

    def start(self, line: SilentLine | TerminalLine, deadline: float) -> GuardedCommand:
        from blastyard.engine.guarded import Command, GuardedCommand, NotStarted  # noqa: PLC0415

        line.show("")
        command = Command(
            argv=self._asked.words,
            environment={**caller_environment(), "BLASTYARD_SEARCH_ID": self._asked.search},
        )
        try:
            return GuardedCommand.start(command, deadline)
        except (NotStarted, OSError) as error:
            raise CallerMistake(
                "request_invalid",
                f"{self._asked.words[0]} cannot be started: {error}",
                "give the name of a program that is on PATH, or its whole path",
            ) from error


def _tell(line: SilentLine | TerminalLine, waiting: Waiting, seconds: float) -> None:
    place = f"place {waiting.position} · " if waiting.position else ""
    line.show(f"waiting {elapsed_seconds(seconds)} · {place}{waiting.detail}")


def _exit_code(ending: Ending, settings: Settings) -> int:
    if ending.exit_code is not None:
        return ending.exit_code
    if not ending.by_itself:
        seconds = settings.submit_exec_timeout_seconds
        report.tell(
            f"blastyard: the command was ended ({ending.ended_by}); it may take {seconds} s "
            "(SUBMIT_EXEC_TIMEOUT_SECONDS)"
        )
    return 128 + (ending.signal or 0)
