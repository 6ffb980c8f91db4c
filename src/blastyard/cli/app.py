"""The commands, their help and their examples; how a command line becomes one of them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import typer
from typer._completion_classes import completion_init
from typer.exceptions import TyperException
from typer.main import get_command

from blastyard.cli import (
    asking,
    changing,
    completion,
    databases,
    executing,
    gate_cluster,
    gate_status,
    gate_upkeep,
    gate_watch,
    gating,
    installation,
    looking,
    report,
    working,
)
from blastyard.domain.errors import BlastyardError, CallerMistake
from blastyard.settings import read_settings

OPTIONS_FOLLOW: Final = frozenset({"search", "submit"})
"""Commands that take BLAST+ options after ``--``."""
WORDS_FOLLOW: Final = OPTIONS_FOLLOW | {"exec"}
"""Commands whose own options end at ``--``."""

Command = Callable[..., int]

COMMANDS: Final[Sequence[tuple[str, Command, str]]] = (
    (
        "search",
        asking.search,
        "search -p blastn -d genomes -q query.fa -o hits.tsv -- -evalue 1e-5",
    ),
    ("submit", asking.submit, "submit -p blastn -d genomes -q query.fa more.fa --tag plate-7"),
    ("status", looking.status, "status 3f2a91c7"),
    ("wait", looking.wait, "wait --tag plate-7"),
    ("list", looking.list_, "list --state completed --limit 5"),
    ("events", looking.events, "events 3f2a91c7"),
    ("results", looking.results, "results 3f2a91c7 -o hits.tsv"),
    ("cancel", changing.cancel, "cancel 3f2a91c7"),
    ("rerun", asking.rerun, "rerun 3f2a91c7"),
    ("delete", changing.delete, "delete 3f2a91c7"),
    (
        "exec",
        executing.execute,
        "exec --wait 30m -- elastic-blast submit --cfg my.ini --idempotency-key {id}",
    ),
    ("serve", installation.serve, "serve --port 8642"),
    ("worker", working.worker, "worker"),
    ("beat", working.beat, "beat"),
    ("doctor", installation.doctor, "doctor"),
    ("version", installation.version, "version --json"),
    ("completion", completion.completion, "completion bash"),
)
DATABASE_COMMANDS: Final[Sequence[tuple[str, Command, str]]] = (
    ("add", databases.add, 'db add genomes genomes.fa --type nucl --title "Our genomes"'),
    ("list", databases.list_, "db list"),
    ("show", databases.show, "db show genomes"),
    ("check", databases.check, "db check genomes --deep"),
    ("remove", databases.remove, "db remove genomes"),
)
GATE_COMMANDS: Final[Sequence[tuple[str, Command, str]]] = (
    ("status", gate_status.status, "gate status"),
    ("watch", gate_watch.watch, "gate watch"),
    ("ceiling", gating.ceiling, "gate ceiling 4"),
    ("user-cap", gating.user_cap, "gate user-cap 2"),
    ("park", gating.park, "gate park 3f2a91c7"),
    ("unpark", gating.unpark, "gate unpark 3f2a91c7"),
    ("forget", gate_upkeep.forget, "gate forget job-7d1f0b"),
    ("sweep", gate_upkeep.sweep, "gate sweep"),
    ("install", gate_cluster.install, "gate install --dry-run"),
    ("check", gate_cluster.check, "gate check"),
)

EPILOG: Final = (
    "BLAST+'s own command line works too, admitted like any search: "
    "blastyard blastn -query q.fa -db genomes -outfmt 6 (also blastp, blastx, tblastn, tblastx)."
)


def build() -> typer.Typer:
    """The command line as Typer sees it."""
    app = _group("One front door for BLAST searches on a shared machine.", EPILOG)
    _fill(app, COMMANDS)
    for name, commands, text in (
        ("db", DATABASE_COMMANDS, "The databases that searches may name."),
        ("gate", GATE_COMMANDS, "Who runs, who waits and why; what an operator decides."),
    ):
        group = _group(text, None)
        _fill(group, commands)
        app.add_typer(group, name=name)
    return app


def _group(text: str, epilog: str | None) -> typer.Typer:
    return typer.Typer(
        help=text,
        epilog=epilog,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _fill(group: typer.Typer, commands: Sequence[tuple[str, Command, str]]) -> None:
    for name, command, example in commands:
        text = _unwrapped(command.__doc__ or "")
        group.command(name, help=text, epilog=f"Example: blastyard {example}")(_reached(command))


class _NobodyReads(Exception):
    """Standard output was closed by who read it."""


def _reached(command: Command) -> Command:
    """The command; what Typer would make something else of passes through it."""

    @functools.wraps(command)
    def called(*arguments: Any, **options: Any) -> int:
        try:
            return command(*arguments, **options)
        except BrokenPipeError as error:
            raise _NobodyReads from error
        except KeyboardInterrupt:
            raise report.interrupted("interrupted") from None

    return called


def _unwrapped(text: str) -> str:
    """Paragraphs on one line each: the terminal decides where they break."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def run(argv: Sequence[str]) -> int:
    """Run a command line; its exit code. Errors are told, none are raised."""
    arguments, options = split(argv)
    as_json = "--json" in arguments
    try:
        return _invoke(arguments, options)
    except TyperException as error:
        if not error.format_message():  # no command: the help has been shown
            return report.MISUSED
        return report.fail(_misused(error), as_json=as_json)
    except (BlastyardError, UnicodeEncodeError) as error:
        return report.fail(_told(error), as_json=as_json)
    except (_NobodyReads, BrokenPipeError):
        return _nobody_reads()
    except Exception as error:  # the last place where it can be told
        return report.fail_unexpectedly(error, as_json=as_json, debug=_is_debug())


def split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our arguments, and the BLAST+ options after ``--`` where the command takes some."""
    words = list(argv)
    if not words or words[0] not in WORDS_FOLLOW or "--" not in words:
        return words, []
    border = words.index("--")
    return words[:border], words[border + 1 :]


def _invoke(arguments: list[str], options: list[str]) -> int:
    completion_init()  # the shells ask through the same entry
    command = get_command(build())
    code = command.main(arguments, prog_name="blastyard", standalone_mode=False, obj=options)
    sys.stdout.flush()
    return int(code or 0)


def _misused(error: TyperException) -> BlastyardError:
    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context else "blastyard"
    step = f"{path} --help"
    if path.rpartition(" ")[2] in OPTIONS_FOLLOW:
        step += " (BLAST+ options stand after --)"
    message = error.format_message().replace("Value error, ", "")  # pydantic's, for nobody here
    return CallerMistake("request_invalid", message, step)


def _told(error: BlastyardError | UnicodeEncodeError) -> BlastyardError:
    """Bytes that are not UTF-8 reach Python as lone surrogates, which no store takes."""
    if isinstance(error, BlastyardError):
        return error
    message = f"{error.object!r} is not UTF-8 text"
    step = "write names, tags and users in UTF-8; only files may be called otherwise"
    return CallerMistake("request_invalid", message, step)


def _nobody_reads() -> int:
    """Standard output was closed: end without a word, and keep the interpreter quiet too."""
    import os  # noqa: PLC0415

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return report.BROKEN_PIPE


def _is_debug() -> bool:
    try:
        return read_settings().is_debug
    except BlastyardError:
        return False
