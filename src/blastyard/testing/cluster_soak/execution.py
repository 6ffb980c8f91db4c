"""`blastyard exec` that tells its deeds: ``… execution --who X --search-id ID … -- COMMAND``.

It is the command's own code; only the constants of the protocol are others, and who is told.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from blastyard.bootstrap.gate import OpenGate, leaving
from blastyard.cli.executing import Asked, Execution, code_of
from blastyard.cli.line import SilentLine, TerminalLine
from blastyard.domain.errors import BlastyardError, Unavailable
from blastyard.engine.guarded import GuardedCommand
from blastyard.settings import read_settings
from blastyard.testing.cluster_soak.deeds import Teller, ToldCommand
from blastyard.testing.cluster_soak.site import Site, open_site, timings_of


class ToldExecution(Execution):
    """The command, with its gate and its submission told."""

    def __init__(self, asked: Asked, options: argparse.Namespace) -> None:
        super().__init__(read_settings(), asked)
        self._timings = timings_of(options)
        self._tell = Teller(options.who)
        self._site: Site | None = None

    @contextmanager
    def gate(self) -> Iterator[OpenGate]:
        """See the command."""
        self._site = open_site(self._settings, self._timings, self._tell)
        with leaving(self._site.opened) as opened:
            with suppress(Unavailable):  # it does so again before it queues
                opened.gate.beat()
            yield opened

    def start(self, line: SilentLine | TerminalLine, deadline: float) -> GuardedCommand:
        """See the command."""
        holder = self._site.told.inside if self._site else ""
        search = self._asked.search
        self._tell("submitting", search, holder=holder, gate=True, ids=[search])
        running = super().start(line, deadline)
        return ToldCommand(running, self._tell, search, holder)  # type: ignore[return-value]

    def accepted(self) -> None:
        """It is asked for."""
        asked = self._asked
        self._tell("accepted", asked.search, user=asked.user, level=asked.level)

    def ended(self, code: int) -> None:
        """The command line has ended; whatever it submitted goes on only when that succeeded."""
        if code:
            self._tell("ended", self._asked.search, outcome=f"exit {code}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--who", required=True)
    parser.add_argument("--search-id", required=True)
    parser.add_argument("--user", required=True)
    parser.add_argument("--priority", default="normal")
    parser.add_argument("--real-timings", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    options = _parser().parse_args(arguments)
    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    asked = Asked.read(words, options.user, options.priority, options.search_id, "")
    execution = ToldExecution(asked, options)
    execution.accepted()
    try:
        code = execution.run()
    except BlastyardError as error:
        sys.stderr.write(f"{error.code}: {error.message}\n")
        code = code_of(error)
    execution.ended(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
