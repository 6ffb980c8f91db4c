"""What `search` and `submit` are both asked: one parameter of theirs, an option for each field."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, Final, get_type_hints

from blastyard.cli import option

if TYPE_CHECKING:
    from blastyard.service.draft import Draft

PARAMETER: Final = "wanted"
STANDARD_INPUT: Final = "-"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options that say what is to be searched, and for whom."""

    program: option.Program
    database: option.Database
    output_format: option.Format = "tsv"
    title: option.Title = ""
    tags: option.Tags = None
    user: option.User = ""
    priority: option.Priority = "normal"
    key: option.Key = None

    def draft(self, blast_options: list[str] | None, file: str) -> Draft:
        """The search of the queries in ``file``, with the BLAST+ options given after ``--``."""
        from blastyard.service.draft import Draft  # noqa: PLC0415  (help needs none of it)

        return Draft(
            self.program,
            self.database,
            self.output_format,
            tuple(blast_options or ()),
            self.user,
            self.priority,
            self.title,
            tuple(self.tags or ()),
            self.key,
            "standard input" if file == STANDARD_INPUT else file,
        )


def spread(command: Callable[..., int]) -> Callable[..., int]:
    """``command`` as Typer can read it: an option for each field of its parameter ``wanted``.

    Typer makes options from a function's signature and knows no parameter that is several of them.
    """
    own = _fields()

    @functools.wraps(command)
    def called(**given: Any) -> int:
        wanted = Wanted(**{each.name: given.pop(each.name) for each in own})
        return command(**given, wanted=wanted)

    shown: list[Parameter] = []
    for each in signature(command, eval_str=True).parameters.values():
        alone = each.replace(kind=Parameter.KEYWORD_ONLY)
        shown += own if each.name == PARAMETER else [alone]
    shown.sort(key=lambda each: each.default is not Parameter.empty)  # help: the required first
    called.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    return called


def _fields() -> list[Parameter]:
    hints = get_type_hints(Wanted, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(Wanted)
    ]
