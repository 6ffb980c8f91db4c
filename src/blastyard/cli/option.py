"""Options that several commands share, worded once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SearchId = Annotated[
    str, typer.Argument(metavar="ID", help="A search's id, or the beginning of it.")
]
Program = Annotated[
    str,
    typer.Option(
        "-p",
        "--program",
        metavar="PROGRAM",
        help="blastn, blastp, blastx, tblastn or tblastx.",
    ),
]
Database = Annotated[
    str, typer.Option("-d", "--database", metavar="NAME", help="A database of `blastyard db list`.")
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="tsv, tsv-comments, csv, xml, json, sam, pairwise, or what BLAST+'s -outfmt takes, "
        'such as "6 qseqid sseqid evalue".',
    ),
]
Title = Annotated[str, typer.Option("--title", help="What you call the search.")]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="A word to find it by; may be repeated."),
]
User = Annotated[
    str, typer.Option("--user", help="On whose behalf. The account's name if not given.")
]
Priority = Annotated[
    str, typer.Option("--priority", metavar="PRIORITY", help="low, normal or high.")
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        help="Idempotency key: the same key and question is the same search, however often sent.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Where the result goes; - or none: printed."
    ),
]
