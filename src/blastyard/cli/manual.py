"""docs/cli.md, written from the commands themselves: ``python -m blastyard.cli.manual``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from blastyard.cli.app import COMMANDS, DATABASE_COMMANDS, GATE_COMMANDS, build
from blastyard.domain import errors

HEAD = """\
# The command line

Every command has `--help`, and `--json` for programs. Its exit code is 0 only when it did what was
asked; errors are a sentence and the next step on standard error, and with `--json` also
`{"error": {"code", "message", "next_step"}}` on standard output. Ids may be abbreviated. Ctrl-C,
SIGTERM and a closed terminal detach from a search and never lose it: where a service runs it, it
goes on there; where the interrupted process ran it, it goes back to its place in the queue.

BLAST+'s own command line works as well: `blastyard blastn -query q.fa -db genomes -outfmt 6`, the
same for `blastp`, `blastx`, `tblastn` and `tblastx`; see `blastyard blastn --help`.
"""

EXIT_CODES = (
    (0, "it did what was asked"),
    (errors.INPUT, "the input or the request is wrong; nothing was queued"),
    (errors.DATABASE, "the database is unknown, in use, unsuitable or damaged"),
    (errors.ENGINE, "BLAST+ failed"),
    (errors.MEMORY, "there is not enough memory"),
    (errors.TIMEOUT, "it waited, or ran, too long"),
    (errors.PERMISSION, "this account may not do that"),
    (errors.DEPENDENCY, "something is not installed"),
    (errors.CLUSTER, "the cluster did not answer, or cannot be used as it is set up"),
    (errors.INTERRUPTED, "interrupted or cancelled"),
    (errors.NOT_READY, "the store, the result or the service is not ready"),
    (141, "nobody read the output to its end"),
    (errors.UNKNOWN, "something unexpected; `BLASTYARD_DEBUG=1` shows the traceback"),
)


def examples() -> dict[str, str]:
    """The example of each command, by the command's words."""
    found = {name: example for name, _, example in COMMANDS}
    found |= {f"db {name}": example for name, _, example in DATABASE_COMMANDS}
    return found | {f"gate {name}": example for name, _, example in GATE_COMMANDS}


def render() -> str:
    """The page."""
    root: Any = get_command(build())
    sections = [HEAD]
    for words in examples():
        command = root
        for word in words.split():
            command = command.commands[word]
        sections.append("\n".join(_section(words, command)))
    return "\n".join([*sections, *_exit_codes()])


def _section(words: str, command: Any) -> Iterator[str]:
    yield f"## blastyard {words}\n"
    yield f"{command.help}\n"
    yield f"```sh\nblastyard {examples()[words]}\n```\n"
    yield "| | |\n|---|---|"
    for parameter in command.params:
        if parameter.name != "help":
            yield f"| `{_names(parameter)}` | {_help(parameter)} |"
    yield ""


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    takes = "" if parameter.is_flag else f" {parameter.metavar or 'TEXT'}"
    return ", ".join(parameter.opts) + takes


def _help(parameter: Any) -> str:
    text = (parameter.help or "").replace("|", "\\|")
    default = parameter.default
    shown = isinstance(default, (str, int)) and not isinstance(default, bool) and default != ""
    return f"{text} Default: {default}." if shown else text


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield "| Code | Meaning |\n|---|---|"
    for code, meaning in EXIT_CODES:
        yield f"| {code} | {meaning} |"
    yield ""


if __name__ == "__main__":
    print(render(), end="")
