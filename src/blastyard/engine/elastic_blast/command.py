"""The words of the submit command. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from blastyard.domain.errors import Misconfigured

SETTING: Final = "BLASTYARD_SUBMIT_COMMAND"
DEFAULT: Final = "elastic-blast submit --cfg {cfg} --json --idempotency-key {id}"

_NEEDED: Final = ("cfg", "id")
_KNOWN: Final = (*_NEEDED, "context", "namespace")
_PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass(frozen=True, slots=True)
class SubmitCommand:
    """Words in which ``{id}`` and ``{cfg}`` stand for the search's id and configuration file.

    ``{context}`` and ``{namespace}`` may stand for what its kubeconfig says anyway. Braces that are
    meant are doubled. No shell is asked: a word stays a word whatever is put into it.
    """

    words: tuple[str, ...]

    @classmethod
    def parse(cls, text: str = DEFAULT) -> SubmitCommand:
        """Raises ``Misconfigured`` that names every problem."""
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise _wrong([f"a quotation mark is missing ({error})"]) from error
        if problems := _problems(words):
            raise _wrong(problems)
        return cls(words)

    @property
    def program(self) -> str:
        """The name or path of the executable."""
        return self.words[0]

    @property
    def is_default(self) -> bool:
        """Whether it is ElasticBLAST's own command, whose abilities can be asked for."""
        return self.words == tuple(shlex.split(DEFAULT))

    def argv(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """The words for one search; ``values`` has one for each placeholder, without braces."""

        def value(match: re.Match[str]) -> str:
            name = match[1]
            return match[0][0] if name is None else values[name]

        return tuple(_PLACEHOLDER.sub(value, word) for word in self.words)


def _problems(words: Sequence[str]) -> list[str]:
    if not words:
        return ["it is empty"]
    found = [match for word in words for match in _PLACEHOLDER.finditer(word)]
    names = [match[1] for match in found if match[1] is not None]
    problems = [f"there is no {{{name}}} in it" for name in _NEEDED if name not in names]
    known = ", ".join(f"{{{name}}}" for name in _KNOWN)
    problems += [
        f"{{{name}}} is not known; known are {known}" for name in names if name not in _KNOWN
    ]
    if any(match[0] in ("{", "}") for match in found):
        problems.append("a brace is alone; write {{ or }} for one that is meant")
    if _PLACEHOLDER.search(words[0]):
        problems.append("its first word is the program's name, and has a brace")
    return problems


def _wrong(problems: Sequence[str]) -> Misconfigured:
    return Misconfigured(
        "settings_invalid",
        f"{SETTING}: {'; '.join(problems)}",
        f"for example {SETTING}='{DEFAULT}'",
    )
