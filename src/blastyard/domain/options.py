"""BLAST+ options as a submitter gives them: read, checked, put in one order.

``-name value`` and ``-name=value`` are BLAST+'s two spellings; names are exact. Values stay
byte for byte what was given and become argv elements, never parts of a string.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blastyard.domain.errors import CallerMistake
from blastyard.domain.fasta import QuerySummary, least_letters
from blastyard.domain.option_relation import check_relations
from blastyard.domain.option_table import ALLOWED, BANNED, Kind
from blastyard.domain.option_value import check_value, mistake, parse_range, parse_taxids
from blastyard.domain.outfmt import OutputFormat
from blastyard.domain.program import Program


@dataclass(frozen=True, slots=True)
class OptionSet:
    """Checked options of one search. ``values`` are sorted by name; a flag's value is None."""

    program: Program
    values: tuple[tuple[str, str | None], ...] = ()

    def get(self, name: str) -> str | None:
        """The value given for ``name`` (without its dash); None when it was not given."""
        return dict(self.values).get(name)

    @property
    def argv(self) -> tuple[str, ...]:
        """The arguments for BLAST+; the same options in another order give the same tuple."""
        arguments: list[str] = []
        for name, value in self.values:
            arguments += [f"-{name}"] if value is None else [f"-{name}", value]
        return tuple(arguments)

    @property
    def task(self) -> str:
        """The task that runs, named or default."""
        return self.get("task") or self.program.default_task

    @property
    def word_size(self) -> int | None:
        """The word size asked for; None leaves it to the task."""
        value = self.get("word_size")
        return int(value) if value else None

    @property
    def taxids(self) -> tuple[int, ...]:
        """Taxonomy ids the search is restricted to; empty: it is not."""
        return parse_taxids(self.get("taxids") or "")

    @property
    def negative_taxids(self) -> tuple[int, ...]:
        """Taxonomy ids left out of the search."""
        return parse_taxids(self.get("negative_taxids") or "")

    @property
    def query_range(self) -> tuple[int, int] | None:
        """First and last letter of each query to search with, counted from 1."""
        return parse_range(self.get("query_loc") or "")


def parse_options(program: Program, argv: Sequence[str], *, outfmt: OutputFormat) -> OptionSet:
    """Check the options of one search.

    Raises :class:`CallerMistake`: ``option_unknown``, ``option_forbidden``, ``option_value``, or
    ``format_unknown`` where ``program`` does not write ``outfmt``.
    """
    outfmt.require(program)
    values: dict[str, str | None] = {}
    rest = list(argv)
    while rest:
        name, value = _take(program, rest)
        if name in values:
            raise mistake(name, value or "", "the option is given twice.", "Give it once.")
        values[name] = value
    check_relations(program, values, outfmt)
    return OptionSet(program, tuple(sorted(values.items())))


def require_query_range(options: OptionSet, summary: QuerySummary) -> None:
    """Refuse a ``-query_loc`` that BLAST+ would cut short, or that leaves too little.

    Raises :class:`CallerMistake` (``option_value``).
    """
    span = options.query_range
    if span is None:
        return
    value = options.get("query_loc") or ""
    if span[1] > summary.shortest:
        reason = f"the query at line {summary.shortest_line} has only {summary.shortest:,} letters."
        raise mistake("query_loc", value, reason, "End the range inside every query.")
    least = least_letters(options.program, options.task, options.word_size)
    if span[1] - span[0] + 1 < least:
        reason = f"the range is shorter than {least} letters, so nothing can be found."
        raise mistake("query_loc", value, reason, "Give a longer range.")


def _take(program: Program, rest: list[str]) -> tuple[str, str | None]:
    """Take one option with its value off the front of ``rest``."""
    word = rest.pop(0)
    name, equals, value = word[1:].partition("=")
    rule = ALLOWED[program].get(name) if word.startswith("-") else None
    if rule is None:
        raise _not_allowed(program, word, name)
    if rule.kind is Kind.FLAG:
        if equals:
            check_value(name, rule, value)
        return name, None
    if not equals:
        if not rest or _is_option(program, rest[0]):
            step = f"Write -{name} and its value: {rule.range_text()}."
            raise mistake(name, "", "the option needs a value.", step)
        value = rest.pop(0)
    check_value(name, rule, value)
    return name, value


def _is_option(program: Program, word: str) -> bool:
    name = word[1:].partition("=")[0]
    return word.startswith("-") and (name in ALLOWED[program] or name in BANNED)


def _not_allowed(program: Program, word: str, name: str) -> CallerMistake:
    if not word.startswith("-"):
        return CallerMistake(
            "option_unknown",
            f"{word!r} is not an option of {program}.",
            "Each option is -name value; a value with blanks needs quotes.",
        )
    ban = BANNED.get(name)
    if ban is not None:
        message = f"-{name} cannot be given here: {ban.reason}."
        return CallerMistake("option_forbidden", message, ban.instead)
    known: Mapping[str, object] = ALLOWED[program]
    plain = name.lstrip("-").lower().replace("-", "_")
    near = [plain] if plain in known else difflib.get_close_matches(plain, [*known, *BANNED], 1)
    having = [other for other in Program if name in ALLOWED[other]]
    if having:
        message = f"{program} has no option -{name}; it belongs to {', '.join(having)}."
    else:
        message = f"{program} has no option {word.partition('=')[0]}."
    hint = f"Did you mean -{near[0]}?" if near else f"'{program} -help' lists the options."
    return CallerMistake("option_unknown", message, hint)
