"""The configuration file of one search, as ElasticBLAST 1.5 reads it.

It is an INI file for Python's ``configparser`` with interpolation, so ``%`` is doubled; ``queries``
is split at white space, ``options`` as a shell would split it. Keys: ``elastic_blast/constants.py``
of ElasticBLAST, names ``CFG_*``.

What an installation needs beside (cloud account, machine types, time limits) stands in a template
of its operator, an INI file too. In its values ``{id}``, ``{db}`` and ``{program}`` stand for those
of the search.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator, Mapping
from configparser import ConfigParser, InterpolationError
from configparser import Error as ConfigError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from blastyard.domain.errors import Misconfigured
from blastyard.engine.elastic_blast.name import ClusterName

BLAST: Final = "blast"
CLUSTER: Final = "cluster"

_OWN: Final = ("program", "queries", "options")
"""Keys of ``[blast]`` that are each search's own."""
_NEXT: Final = "correct the template of elastic-blast's configuration file"
_TRUE: Final = frozenset({"1", "yes", "true", "on"})
_LATIN: Final = re.compile(r"[\x21-\xff]+")
"""What ElasticBLAST takes on its command line, without the white space at which it splits paths."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to submit."""

    name: ClusterName
    program: str
    database: str
    options: tuple[str, ...]
    output_format: str
    """The value of ``-outfmt``."""
    query: Path
    results: str
    """The location of this search's results alone; it has the id in it."""


@dataclass(frozen=True, slots=True)
class Template:
    """What the operator says for every search: sections, and in each its keys."""

    sections: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Template:
        """That of a file. Raises as :meth:`parse`, and when there is none."""
        try:
            return cls.parse(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            message = f"the template {path} cannot be read: {error}"
            raise Misconfigured("settings_invalid", message, _NEXT) from error

    @classmethod
    def parse(cls, text: str, source: str) -> Template:
        """Raises ``Misconfigured`` that names every problem; ``source`` is the file's name."""
        parser = ConfigParser(interpolation=None)
        try:
            parser.read_string(text, source)
        except ConfigError as error:
            said = " ".join(str(error).split())
            raise Misconfigured("settings_invalid", f"{source}: {said}", _NEXT) from error
        found = cls({name: dict(parser[name]) for name in parser.sections()})
        if problems := [f"{source}: {problem}" for problem in _problems(found)]:
            raise Misconfigured("settings_invalid", "; ".join(problems), _NEXT)
        return found

    @property
    def results(self) -> str:
        """Below which location the operator wants results; empty when it is not said."""
        return self.sections.get(BLAST, {}).get("results", "")

    def filled(self, order: Order) -> dict[str, dict[str, str]]:
        """Its sections for one search."""
        database = order.database.rstrip("/").rpartition("/")[2]
        words = {
            "{id}": order.name.id,
            "{db}": database.replace("%", "%%"),
            "{program}": order.program,
        }
        return {
            section: {key: _filled(value, words) for key, value in keys.items()}
            for section, keys in self.sections.items()
        }


def results_of(base: str, name: ClusterName) -> str:
    """The location of one search's results below that of all: no two share a path."""
    return f"{base.rstrip('/')}/{name.id}"


def configuration(order: Order, template: Template = Template()) -> str:
    """The text of the file. Raises ``Misconfigured`` for what ElasticBLAST would misread."""
    _check(order)
    sections = template.filled(order)
    blast = sections.setdefault(BLAST, {})
    blast.setdefault("db", order.database.replace("%", "%%"))
    words = (*order.options, "-outfmt", order.output_format)
    own = {
        "program": order.program,
        "queries": str(order.query),
        "results": order.results,
        "options": shlex.join(words),
    }
    blast |= {key: value.replace("%", "%%") for key, value in own.items()}
    return f"; search {order.name.id}\n{_written(sections)}"


def _written(sections: Mapping[str, Mapping[str, str]]) -> str:
    parser = ConfigParser(interpolation=None)
    parser.read_dict(sections)
    text = io.StringIO()
    parser.write(text)
    return text.getvalue()


def _check(order: Order) -> None:
    """Raise for what would be read as something else, or not at all."""
    if order.name.id not in order.results.split("/"):
        raise ValueError(f"{order.results!r} is not the results location of {order.name.id}")
    if not _LATIN.fullmatch(str(order.query)):
        raise Misconfigured(
            "settings_invalid",
            f"elastic-blast cannot read the query {order.query}: it splits paths at white space "
            "and takes Latin letters only",
            "set BLASTYARD_HOME to a path without them",
        )
    told = (*order.options, order.output_format, order.database, order.results)
    if any(not text.isprintable() for text in told):
        raise ValueError("a configuration file takes printable text only")


def _filled(value: str, words: Mapping[str, str]) -> str:
    for word, text in words.items():
        value = value.replace(word, text)
    return value


def _problems(template: Template) -> Iterator[str]:
    blast = template.sections.get(BLAST, {})
    for key in _OWN:
        if key in blast:
            yield f"[{BLAST}] {key} is each search's own"
    if template.sections.get(CLUSTER, {}).get("dry-run", "").lower() in _TRUE:
        yield f"[{CLUSTER}] dry-run would submit nothing"
    if "?" in template.results:
        yield f"[{BLAST}] results has a '?': put no access token into an address"
    reader = ConfigParser()
    reader.read_string(_written(template.sections))
    for section in reader.sections():
        for key in reader[section]:
            try:
                reader.get(section, key)
            except InterpolationError:
                yield f"[{section}] {key} has a '%', which must be written '%%'"
