"""Tables and instants for people: aligned text, no frames, the same on a terminal and a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

WIDE = 10_000
"""Columns of a pipe: nothing is cut there, or wrapped."""


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on standard output; the last column takes what room is left."""
    print("\n".join(table_lines(heads, rows)))


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table, as wide as standard output where that is a terminal."""
    from rich.console import Console  # noqa: PLC0415  (JSON does without)
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, no_wrap=head != heads[-1], overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console = Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Names and values, one a line; what is empty is left out."""
    for line in fact_lines(facts):
        print(line)


def fact_lines(facts: Iterable[tuple[str, object]]) -> list[str]:
    """The lines of names and values; what is empty is left out."""
    known = [(name, _cell(value)) for name, value in facts if value not in (None, "", [], ())]
    width = max((len(name) for name, _ in known), default=0)
    return [f"{name:<{width}}  {value}" for name, value in known]


def at(instant: str | None) -> str:
    """An RFC 3339 instant, to the second."""
    return instant[:19].replace("T", " ") + " UTC" if instant else ""


def count(number: int, noun: str) -> str:
    """``1 sequence``, ``2,000 sequences``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return ", ".join(str(each) for each in value)
    return str(value)
