"""`db`: the databases that searches may name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blastyard.cli import option, report, table
from blastyard.cli.session import opened
from blastyard.domain.errors import BlastyardError, CallerMistake
from blastyard.domain.program import SequenceType

if TYPE_CHECKING:
    from blastyard.bootstrap.yard import Yard
    from blastyard.domain.search import Database
    from blastyard.service.view import Shape

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name searches use.")]
Type = Annotated[
    SequenceType | None, typer.Option("--type", help="What the sequences are: nucl or prot.")
]


def add(  # noqa: PLR0913, PLR0917  (the options a person may give)
    name: Name,
    fasta: Annotated[
        Path | None, typer.Argument(metavar="[FASTA]", help="FASTA file to build it from.")
    ] = None,
    sequence_type: Type = None,
    title: Annotated[str, typer.Option("--title", help="A longer name for people.")] = "",
    path: Annotated[
        Path | None,
        typer.Option("--path", metavar="PREFIX", help="Absolute prefix of existing files."),
    ] = None,
    copying: Annotated[
        bool, typer.Option("--copying", help="The files are still arriving: searches wait.")
    ] = False,
    as_json: option.AsJson = False,
) -> int:
    """Register a database: built from a FASTA file, or used where it stands with --path."""
    if (fasta is None) == (path is None):
        raise _invalid("name a FASTA file to build from, or --path PREFIX, not both")
    if path is not None and title:
        raise _invalid("a database that stands somewhere has its title; leave --title out")
    if path is None and copying:
        raise _invalid("--copying is for files that arrive at a --path; leave it out")
    with opened() as yard:
        if path is not None:
            added = yard.databases.add_path(name, path, sequence_type, copying=copying)
            notices: tuple[str, ...] = ()
        else:
            added, notices = _build(yard, name, fasta or Path(), (sequence_type, title))
    for notice in notices:
        report.tell(f"note: {notice}")
    return _tell(added, as_json=as_json)


def _invalid(message: str) -> CallerMistake:
    return CallerMistake("database_invalid", message, "blastyard db add --help")


def _build(
    yard: Yard, name: str, fasta: Path, what: tuple[SequenceType | None, str]
) -> tuple[Database, tuple[str, ...]]:
    sequence_type, title = what
    if sequence_type is None:
        raise CallerMistake(
            "database_invalid",
            "a FASTA file does not tell for certain what its letters are",
            "say so: --type nucl or --type prot",
        )
    return yard.databases.add_fasta(name, fasta, sequence_type, title)


def _tell(database: Database, *, as_json: bool) -> int:
    shape = _shape(database)
    if as_json:
        report.print_json(shape)
    else:
        print(f"{shape['name']}: {_size(shape)}")
    return 0


def list_(as_json: option.AsJson = False) -> int:
    """List the registered databases."""
    with opened() as yard:
        shapes = [_shape(database) for database in yard.databases.list()]
    if as_json:
        report.print_json({"databases": shapes})
    elif shapes:
        rows = [
            [each["name"], each["type"], each["state"], _size(each), each["title"]]
            for each in shapes
        ]
        table.print_table(["NAME", "TYPE", "STATE", "SIZE", "TITLE"], rows)
    else:
        report.tell("no database yet: `blastyard db add NAME FASTA --type nucl`")
    return 0


def show(name: Name, as_json: option.AsJson = False) -> int:
    """Show what is known of one database."""
    with opened() as yard:
        shape = _shape(yard.databases.get(name))
    if as_json:
        report.print_json(shape)
        return 0
    table.print_facts(
        [
            ("name", shape["name"]),
            ("title", shape["title"]),
            ("type", shape["type"]),
            ("state", shape["state"]),
            ("size", _size(shape)),
            ("files", f"{shape['size']:,} bytes at {shape['path']}"),
            ("built here", "yes" if shape["built"] else "no"),
            ("added", table.at(shape["created_at"])),
        ]
    )
    return 0


def check(
    name: Name,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every sequence; minutes for large databases.")
    ] = False,
    as_json: option.AsJson = False,
) -> int:
    """Look for missing, truncated or damaged files of a database."""
    with opened() as yard:
        yard.databases.refresh(name)  # what was being copied may have arrived
        problems = yard.databases.check(name, deep=deep)
        shape = _shape(yard.databases.get(name))
    if as_json:
        told = [{"file": each.file, "message": each.message} for each in problems]
        report.print_json({**shape, "problems": told})
    if not problems:
        if not as_json:
            print(f"{name}: {shape['state']}, nothing wrong was found")
        return 0
    message = "; ".join(problem.message for problem in problems)
    step = "restore the files, or `blastyard db remove` it and add it anew"
    error = BlastyardError("database_broken", f"{name} is damaged: {message}", step)
    return report.fail(error, as_json=as_json, shown=True)


def remove(name: Name, as_json: option.AsJson = False) -> int:
    """Forget a database; its files go only if blastyard built them. Refused while in use."""
    with opened() as yard:
        yard.databases.remove(name)
    if as_json:
        report.print_json({"name": name, "removed": True})
    else:
        print(f"{name} removed")
    return 0


def _shape(database: Database) -> Shape:
    from blastyard.service.view import database_shape  # noqa: PLC0415  (help needs none of it)

    return database_shape(database)


def _size(shape: Shape) -> str:
    return (
        f"{table.count(shape['sequences'], 'sequence')}, {table.count(shape['letters'], 'letter')}"
    )
