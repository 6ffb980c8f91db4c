"""The files of a BLAST database, through all its aliases.

Alias files are those of the BLAST+ user manual, "Building a BLAST database": a line ``DBLIST``
names databases, other lines name lists that filter them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from blastyard.domain.program import SequenceType
from blastyard.engine.integrity import Problem, beside, shared_problems, volume_problems

_LISTS: Final = {"GILIST", "SEQIDLIST", "TAXIDLIST", "OIDLIST", "TILIST", "SILIST", "MASKLIST"}
_TOKEN: Final = re.compile(r'"([^"]*)"|(\S+)')
_LETTERS: Final = {SequenceType.NUCL: "n", SequenceType.PROT: "p"}


@dataclass(slots=True)
class Layout:
    """All files of a database, and what is wrong with them."""

    files: dict[Path, int] = field(default_factory=dict)
    volumes: list[Path] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def types_at(prefix: Path) -> list[SequenceType]:
    """What kinds of database stand at ``prefix``; both may."""
    return [
        kind
        for kind, letter in _LETTERS.items()
        if any(beside(prefix, f"{letter}{end}").exists() for end in ("al", "in"))
    ]


def layout(prefix: Path, kind: SequenceType, search_path: Sequence[Path] = ()) -> Layout:
    """The files of the database at ``prefix``, through all its aliases.

    ``search_path`` is where BLAST+ looks for what an alias names and does not find beside it.
    """
    found = Layout()
    _collect(prefix, _LETTERS[kind], search_path, found)
    shared: dict[Path, None] = {}
    for volume in found.volumes:
        problems, lmdb = volume_problems(volume, _LETTERS[kind])
        found.problems += problems
        if lmdb is not None:
            shared[lmdb] = None
    for lmdb in shared:
        found.problems += shared_problems(lmdb, _LETTERS[kind])
    return found


def has_seqids(volumes: Sequence[Path], kind: SequenceType) -> bool:
    """Whether all volumes were built with parsed ids, so that they can be asked for by id."""
    letter = _LETTERS[kind]
    return bool(volumes) and all(
        any(beside(volume, f"{letter}{end}").exists() for end in ("og", "si")) for volume in volumes
    )


def _collect(prefix: Path, letter: str, search_path: Sequence[Path], found: Layout) -> None:
    if prefix in found.volumes or beside(prefix, f"{letter}al") in found.files:
        return
    pattern = re.compile(re.escape(prefix.name) + rf"\.{letter}[a-z]{{2}}")
    if prefix.parent.is_dir():
        for path in sorted(prefix.parent.iterdir()):
            if pattern.fullmatch(path.name) and path.is_file():
                found.files[path] = path.stat().st_size
    alias = beside(prefix, f"{letter}al")
    if alias not in found.files:
        found.volumes.append(prefix)
        return
    for name in _alias_lists(alias, found):
        _note(name, alias, found)
    for name in _alias_entries(alias, "DBLIST"):
        target = _resolve(name, alias, letter, search_path)
        if target is None:
            message = f"{alias.name} names the database {name}, which is not there"
            found.problems.append(Problem(str(alias), message))
        elif target == prefix:
            found.volumes.append(prefix)
        else:
            _collect(target, letter, search_path, found)


def _alias_lists(alias: Path, found: Layout) -> Iterator[str]:
    for keyword in sorted(_LISTS):
        for name in _alias_entries(alias, keyword):
            if (alias.parent / name).is_file():
                yield name
            else:
                message = f"{alias.name} names the list {name}, which is not there"
                found.problems.append(Problem(str(alias), message))


def _note(name: str, alias: Path, found: Layout) -> None:
    path = alias.parent / name
    found.files[path] = path.stat().st_size


def _alias_entries(alias: Path, keyword: str) -> list[str]:
    for line in alias.read_text("utf-8", "replace").splitlines():
        first, _, rest = line.strip().partition(" ")
        if first == keyword:
            return [quoted or plain for quoted, plain in _TOKEN.findall(rest)]
    return []


def _resolve(name: str, alias: Path, letter: str, search_path: Sequence[Path]) -> Path | None:
    for folder in (alias.parent, *search_path):
        target = folder / name
        if any(beside(target, f"{letter}{end}").exists() for end in ("al", "in")):
            return target
    return None
