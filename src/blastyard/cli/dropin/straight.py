"""The ways of a command line that do not lead through the gates."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from blastyard.cli.dropin.line import Line
from blastyard.domain.errors import CallerMistake, Misconfigured
from blastyard.engine.process import MARK, Process

NOTE: Final = """\
blastyard {program}: BLAST+'s own {program}, which first waits for its turn on this machine.

  Options, standard input and output, files and exit codes are those of {program}. Besides:
  -db NAME      may be a database registered with `blastyard db add` (`blastyard db list`);
                anything else is looked for as BLAST+ does.
  -remote       is refused: nothing leaves this machine.
  an accession  as the query or subject is refused for the same reason: give the sequence.

  What BLAST+ would accept silently and answer wrongly is said on standard error;
  BLASTYARD_STRICT=1 refuses it. `blastyard gate status` shows who waits and who runs.

What follows is BLAST+'s own help.

"""


def become(line: Line, environment: Mapping[str, str]) -> NoReturn:
    """Turn this process into BLAST+."""
    sys.stdout.flush()
    os.execvpe(line.program, [line.program, *line.words], dict(environment))  # noqa: S606


def refuse_nested(program: str, environment: Mapping[str, str]) -> None:
    """A command of ours that waits for its own slot would wait for ever."""
    pid, _, started = environment.get(MARK, "").partition(".")
    if pid.isdigit() and started.isdigit() and Process(int(pid), int(started)).is_alive():
        raise Misconfigured(
            "settings_invalid",
            f"blastyard {program} was started by a command that blastyard itself had started",
            f"if {program} on the PATH is a script that calls blastyard, put BLAST+'s before it",
        )


def leaves_the_machine() -> CallerMistake:
    """The refusal of ``-remote``."""
    return CallerMistake(
        "option_forbidden",
        "-remote sends the query to NCBI; blastyard searches on this machine only.",
        "Leave -remote out and name a database that is here, or call BLAST+ itself.",
    )


def is_refused(line: Line, environment: Mapping[str, str]) -> bool:
    """Whether BLAST+ refuses the arguments: asked without running the search."""
    import subprocess  # noqa: PLC0415  (only those who wait need it)

    argv: Sequence[str] = [line.program, *line.words, "-dryrun"]
    done = subprocess.run(
        argv, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return done.returncode == 1 and b'"dryrun"' not in done.stderr
