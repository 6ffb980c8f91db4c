"""BLAST+'s command line, read as far as admission needs it.

Source: the NCBI toolkit's argument rules as BLAST+ 2.12 shows them: ``-name value`` or
``-name=value``, exact names, no abbreviations; ``-version`` counts wherever it stands, ``-h`` and
``-help`` where a name may stand. What is wrong with a line is BLAST+'s to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

_TELLS: Final = frozenset({"h", "help", "xmlhelp", "dryrun"})
_SEARCHES: Final = frozenset({"db", "subject", "import_search_strategy"})
_NAME: Final = re.compile(r"-[A-Za-z]")
_DATABASE: Final = re.compile(r'"[^"]*"|[^\s"]+')


@dataclass(frozen=True, slots=True)
class Line:
    """One command line. ``values`` maps each name to the place of its value and the value."""

    program: str
    words: tuple[str, ...]
    """All after the program."""
    values: Mapping[str, tuple[int, str]]
    flags: frozenset[str]

    @classmethod
    def read(cls, program: str, words: tuple[str, ...]) -> Line:
        """Sort the words. A name whose next word looks like a name, too, is taken for a flag."""
        values: dict[str, tuple[int, str]] = {}
        flags: set[str] = set()
        at = 0
        while at < len(words):
            name, equals, value = words[at][1:].partition("=")
            following = words[at + 1] if at + 1 < len(words) else None
            if not _NAME.match(words[at]):
                pass  # a stray word
            elif equals:
                values[name] = (at, value)
            elif following is None or _NAME.match(following):
                flags.add(name)
            else:
                at += 1
                values[name] = (at, following)
            at += 1
        return cls(program, words, values, frozenset(flags))

    def get(self, name: str) -> str | None:
        """The value of an option; ``None`` when it is not given."""
        found = self.values.get(name)
        return None if found is None else found[1]

    def has(self, name: str) -> bool:
        """Whether the option is given, with or without a value."""
        return name in self.flags or name in self.values

    @property
    def searches(self) -> bool:
        """Whether BLAST+ would search: it is neither asked about itself nor left without a
        database."""
        tells = any(word.startswith("-version") for word in self.words)
        return not tells and not self.flags & _TELLS and any(map(self.has, _SEARCHES))

    @property
    def query(self) -> str:
        """The query file; ``-`` is standard input, as in BLAST+."""
        return self.get("query") or "-"

    @property
    def databases(self) -> tuple[str, ...]:
        """The names in ``-db``, without their quotation marks."""
        names = _DATABASE.findall(self.get("db") or "")
        return tuple(name.strip('"') for name in names)

    def with_databases(self, path_of: Callable[[str], str | None]) -> Line:
        """The line with each database replaced by its path; ``None`` leaves a name as it is."""
        given = self.values.get("db")
        paths = {name: path for name in self.databases if (path := path_of(name)) is not None}
        if given is None or not paths:
            return self
        at, value = given

        def replaced(found: re.Match[str]) -> str:
            path = paths.get(found[0].strip('"'))
            if path is None:
                return found[0]
            return f'"{path}"' if re.search(r"\s", path) else path

        text = _DATABASE.sub(replaced, value)
        word = f"-db={text}" if self.words[at].startswith("-db=") else text
        words = (*self.words[:at], word, *self.words[at + 1 :])
        return Line.read(self.program, words)
