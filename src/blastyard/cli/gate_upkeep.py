"""`gate forget` and `gate sweep`: putting right what the gates cannot know, or have not yet."""

from __future__ import annotations

import sys
import uuid
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blastyard.cli import option, report
from blastyard.cli.gate_change import changes
from blastyard.cli.gate_scene import REBUILD, Scene, on_cluster, refuse_on_machine, scene
from blastyard.cli.session import settings_of_command
from blastyard.domain.errors import CallerMistake

if TYPE_CHECKING:
    from blastyard.service.view import Shape


def forget(
    search_id: Annotated[
        str, typer.Argument(metavar="ID", help="As `gate status` shows it, or its beginning.")
    ],
    hold: Annotated[
        bool, typer.Option("--hold", help="It is a hold of the ledger, and its search has ended.")
    ] = False,
    as_json: option.AsJson = False,
) -> int:
    """Count something no more that occupies a run slot though nothing stands behind it.

    A finalizer that is alone counts until it has been so for two hours; this is the word of
    somebody who knows better. With `--hold`, a hold ends whose search has ended without a word.
    """
    settings = settings_of_command()
    refuse_on_machine(settings, "`gate forget`")
    from blastyard.service.operating import Operating  # noqa: PLC0415  (help needs none of it)

    with on_cluster(settings) as seen:
        operating = Operating(seen.gate, seen.documents, seen.where)
        search = operating.end_hold(search_id) if hold else operating.forget(search_id)
    if as_json:
        report.print_json({"id": search, "hold": hold})
    elif hold:
        print(f"{search} has no run slot any more")
    else:
        print(f"{search} counts no more; its finalizer is still there")
    return 0


def sweep(
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Begin a new ledger first; the old is unreadable.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before --rebuild.")] = False,
    as_json: option.AsJson = False,
) -> int:
    """Do at once what every live process does now and then, and say what it was.

    Slots of searches that have ended are freed, what silent submitters left is cleared, markers
    are put up, extended or removed. Nobody is admitted by it.
    """
    with scene(settings_of_command()) as seen:
        rebuilt = _rebuild(seen, yes=yes) if rebuild else None
        before = seen.shape()
        done = seen.sweep()
        after = seen.shape()
    happened = changes(before, after)
    if as_json:
        shape = {"rebuilt": rebuilt, "done": done, "changes": happened, "ledger": after["ledger"]}
        report.print_json(shape)
        return 0
    if rebuilt:
        print(f"a new ledger was begun, with the ceiling {rebuilt['ceiling']} {rebuilt['source']}")
    for line in [*done, *happened] or ["nothing had to be done"]:
        print(line)
    _tell_waited_for(after)
    return 0


def _tell_waited_for(shape: Shape) -> None:
    for each in shape["waited_for"]:
        report.tell(f"note: the ledger is not whole before {each} has brought back its claims")


def _rebuild(seen: Scene, *, yes: bool) -> dict[str, Any]:
    from blastyard.service.operating import Operating  # noqa: PLC0415

    operating = Operating(seen.gate, seen.documents, seen.where)
    operating.refuse_readable()
    _confirm(yes)
    found = operating.rebuild(seen.seed, uuid.uuid4().hex)
    source = "that a submitter remembers" if found.remembered else "of BLAST_MAX_RUN_CONCURRENCY"
    return {
        "ceiling": found.policy.ceiling,
        "user_cap": found.policy.user_cap,
        "remembered": found.remembered,
        "source": source,
    }


def _confirm(yes: bool) -> None:
    """Raise ``CallerMistake`` unless somebody wants it."""
    if yes:
        return
    report.tell(f"blastyard: {REBUILD}.")
    report.tell("  The text of the old one is lost; keep a copy first if it may be mended.")
    if not sys.stdin.isatty():
        raise CallerMistake(
            "request_invalid",
            "nobody was asked whether the unreadable ledger may go",
            "say --yes where there is no terminal",
        )
    if not typer.confirm("Begin a new ledger?", err=True):
        raise CallerMistake("request_invalid", "nothing was changed")
