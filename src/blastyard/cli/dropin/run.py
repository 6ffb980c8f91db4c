"""One drop-in command from its command line to its exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Final

from blastyard.admission.outcome import Waiting
from blastyard.admission.port import Watch
from blastyard.admission.ticket import Wish
from blastyard.bootstrap.gate import Home, OpenGate, leaving, open_gate, this_process
from blastyard.cli.dropin import review
from blastyard.cli.dropin.database import located
from blastyard.cli.dropin.interrupt import Interrupts, die_of
from blastyard.cli.dropin.line import Line
from blastyard.cli.dropin.straight import (
    NOTE,
    become,
    is_refused,
    leaves_the_machine,
    refuse_nested,
)
from blastyard.domain.errors import (
    BlastyardError,
    CallerMistake,
    Unavailable,
)
from blastyard.domain.search import Priority
from blastyard.engine.guarded import Command, Ending, GuardedCommand, NotStarted
from blastyard.engine.toolchain import Toolchain
from blastyard.service.entrance import Entrance, Patience, Stopped
from blastyard.service.passage import FLOOR, Passage
from blastyard.settings import Settings, account_name, caller_environment, read_settings
from blastyard.store.catalogue import SqliteCatalogue

STDIN: Final = 0
STDERR: Final = 2
REFUSES_WITHIN: Final = 1.0
"""Seconds in which BLAST+ refuses what it does not take."""
TOLD_AFTER: Final = 1.0
"""Seconds of waiting before the person at the terminal is told why."""

_LOCAL: Final = {
    # no report of the search to anybody
    "BLAST_USAGE_REPORT": "false",
    # no sequence fetched by its accession, wherever in the input the accession stands
    "NCBI_CONFIG__BLAST__DATA_LOADERS": "none",
}


class _Wrong(Exception):
    """BLAST+ will refuse the command line: no reason to wait for its turn."""


def main(argv: list[str]) -> int:
    """Run ``argv``, whose first word is the program; the exit code.

    Where BLAST+ would not search, this process becomes BLAST+; where BLAST+ dies of a signal, it
    dies of the same one.
    """
    try:
        return _run(argv[0], tuple(argv[1:]))
    except BlastyardError as error:
        return _fail(error)
    except KeyboardInterrupt:  # before there was anything to end
        return die_of(signal.SIGINT)


def _run(program: str, words: tuple[str, ...]) -> int:
    settings = read_settings()
    environment = caller_environment() | _LOCAL
    Toolchain(settings.path).program(program)
    if words == ("--help",):
        print(NOTE.format(program=program), end="", flush=True)
        words = ("-help",)
    line = Line.read(program, words)
    if line.has("remote"):
        raise leaves_the_machine()
    if not line.searches:
        become(line, environment)
    refuse_nested(program, environment)
    review.require_sequence(line, STDIN)
    try:
        return Dropin(settings, environment, line).run()
    except _Wrong:
        become(line, environment)


@dataclass(slots=True)
class _Reviewed:
    """The review is made once: while waiting if there is time, else while BLAST+ runs."""

    line: Line
    done: bool = False

    def query(self) -> None:
        if not self.done:
            self.done = True
            _warn(review.query_remarks(self.line, STDIN))

    def options(self, running: GuardedCommand) -> None:
        """Silent about values that BLAST+ refuses itself, which it does at once."""
        found = review.option_remarks(self.line)
        if found:
            ending = running.wait(REFUSES_WITHIN)
            if ending is None or ending.exit_code != 1:
                _warn(found)


class Dropin:
    """One admitted BLAST+ command."""

    def __init__(self, settings: Settings, environment: dict[str, str], line: Line) -> None:
        self._settings = settings
        self._environment = environment
        self._line = line
        self._search = f"{line.program}-{os.urandom(8).hex()}"
        self._reviewed = _Reviewed(line)
        self._passages: list[Passage] = []
        self._waits = False
        self._shown = False
        self._terminal = sys.stderr.isatty()

    def run(self) -> int:
        """Wait, run, and end as BLAST+ ended."""
        with ExitStack() as stack:
            stdin = self._strict(stack) if self._settings.is_strict else None
            self._interrupts = Interrupts()
            try:
                ending = self._admitted(stdin)
            except Stopped:
                return die_of(self._interrupts.caught or 0)
        return self._code(ending)

    def _admitted(self, stdin: int | None) -> Ending:
        with ExitStack() as stack:
            stack.callback(self._clear)
            opened = stack.enter_context(leaving(self._gate()))
            watch = stack.enter_context(closing(opened.documents.watch()))
            entrance = Entrance(
                opened.gate, watch, opened.clock.monotonic, partial(self._sweep, opened)
            )
            passage = Passage(entrance, self._wish(), Patience(*self._settings.waits), self._told)
            self._passages.append(passage)
            self._interrupts.call(passage.stop)
            catalogue = SqliteCatalogue(Home(self._settings.directory).database)
            line = located(self._line, catalogue, partial(self._pause, watch))
            with passage:
                running = passage.admit(partial(self._start, line, stdin))
                stack.callback(running.close)
                self._clear()
                if not self._settings.is_strict:
                    self._reviewed.query()
                    self._reviewed.options(running)
                return _ended(running)

    def _gate(self) -> OpenGate:
        return open_gate(
            self._settings,
            this_process("command"),
            lambda: [claim for each in self._passages for claim in each.claims()],
        )

    def _wish(self) -> Wish:
        user = self._settings.user or account_name()
        return Wish(self._search, user, Priority.NORMAL.level)

    def _start(self, line: Line, stdin: int | None, deadline: float) -> GuardedCommand:
        command = Command(
            argv=(line.program, *line.words),
            environment={**self._environment, "BLASTYARD_SEARCH_ID": self._search},
            stdin=stdin,
            nice=self._settings.nice,
            memory_bytes=self._settings.search_memory_mb << 20 or None,
            cpu_seconds=self._settings.search_cpu_seconds or None,
        )
        try:
            return GuardedCommand.start(command, deadline)
        except (NotStarted, OSError) as error:
            raise Unavailable(
                "blast_missing",
                f"{line.program} cannot be started: {error}",
                "Install BLAST+ again.",
            ) from error

    # -- while waiting -------------------------------------------------------------------------

    def _told(self, waiting: Waiting, seconds: float) -> None:
        if not self._waits:
            self._waits = True
            if is_refused(self._line, self._environment):
                raise _Wrong
            self._reviewed.query()
        if seconds > TOLD_AFTER:
            place = f"position {waiting.position}, " if waiting.position else ""
            self._show(f"waiting {int(seconds)} s: {place}{waiting.detail}")

    def _pause(self, watch: Watch, reason: str) -> None:
        if self._interrupts.caught is not None:
            raise Stopped
        self._show(f"waiting: {reason}")
        watch.wait(FLOOR)

    def _show(self, text: str) -> None:
        if self._terminal:
            self._shown = True
            text = f"blastyard: {text}"[: (os.get_terminal_size(STDERR).columns or 80) - 1]
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def _clear(self) -> None:
        if self._shown:
            self._shown = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _sweep(self, opened: OpenGate) -> None:
        from blastyard.bootstrap.sweep import sweep_once  # noqa: PLC0415  (brings the ORM)

        sweep_once(self._settings, opened)

    # -- strict --------------------------------------------------------------------------------

    def _strict(self, stack: ExitStack) -> int | None:
        """Refuse what would only be warned of; the file standard input was kept in, if any."""
        import tempfile  # noqa: PLC0415  (only the strict need it)

        self._reviewed.done = True
        kept = None
        if self._line.query == "-" and not review.is_regular(STDIN):
            kept = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            while chunk := os.read(STDIN, 1 << 20):
                kept.write(chunk)
            kept.seek(0)
        descriptor = STDIN if kept is None else kept.fileno()
        found = review.option_remarks(self._line)
        found += review.query_remarks(self._line, descriptor, None)
        for remark in found[1:]:
            _say(f"blastyard: {_sentences(remark)}")
        if found:
            raise CallerMistake(found[0].code, found[0].message, found[0].next_step)
        return None if kept is None else kept.fileno()

    # -- the end -------------------------------------------------------------------------------

    def _code(self, ending: Ending) -> int:
        if self._interrupts.caught is not None and not ending.by_itself:
            return die_of(self._interrupts.caught)
        if not ending.by_itself:
            raise Unavailable(
                "interrupted",
                f"{self._line.program} was ended from outside ({ending.ended_by})",
                "Look for a lack of memory in the kernel's log (dmesg), then start it again.",
            )
        if ending.exit_code is None:
            return die_of(ending.signal or 0)
        return ending.exit_code


def _ended(running: GuardedCommand) -> Ending:
    while (ending := running.wait()) is None:
        pass  # its guardian was killed, and something of the command has yet to vanish
    return ending


def _warn(found: Sequence[review.Remark]) -> None:
    for remark in found:
        _say(f"blastyard: warning: {_sentences(remark)}")


def _sentences(remark: review.Remark) -> str:
    message = remark.message.rstrip(".")
    return f"{message}. {remark.next_step}".rstrip()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _fail(error: BlastyardError) -> int:
    from blastyard.cli import report  # noqa: PLC0415  (a rare case)

    return report.fail(error, as_json=False)
