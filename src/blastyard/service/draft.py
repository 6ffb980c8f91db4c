"""A search as a person or program asks for it, before anything was checked."""

from __future__ import annotations

from dataclasses import dataclass

from blastyard.domain.search import Priority, Request


@dataclass(frozen=True, slots=True)
class Draft:
    """What is asked, in the asker's words.

    ``options`` are BLAST+ arguments, ``output_format`` an alias or an ``-outfmt`` value, ``source``
    what the query is called in messages.
    """

    program: str
    database: str
    output_format: str = "tsv"
    options: tuple[str, ...] = ()
    user: str = ""
    priority: str = Priority.NORMAL
    title: str = ""
    tags: tuple[str, ...] = ()
    key: str | None = None
    source: str = "standard input"

    @classmethod
    def again(cls, request: Request, source: str) -> Draft:
        """The same question, to be asked anew."""
        return cls(
            request.program,
            request.database,
            request.output_format,
            request.options,
            request.user,
            request.priority,
            request.title,
            request.tags,
            None,
            source,
        )
