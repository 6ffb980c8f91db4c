"""A look at what BLAST+ would accept silently and answer wrongly; nothing is changed by it.

Only regular files are looked at, without moving their position. What comes through a pipe passes
by untouched, unless it was kept in a file first.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from blastyard.cli.dropin.line import Line
from blastyard.domain.errors import CallerMistake

LOOKED_AT: Final = 16 << 20
"""Of a query of any size so many bytes are looked at where a look must cost no time."""
_CHUNK: Final = 1 << 18
_HEAD: Final = 4096
_FIRST_LINE: Final = re.compile(rb"(?:\s*(?:[#!;][^\n]*)?\n)*\s*([^\r\n]+?)\s*(?:[\r\n]|\Z)")


@dataclass(frozen=True, slots=True)
class Remark:
    """Something a submission would be refused for. ``code`` is a key of the error codes."""

    code: str
    message: str
    next_step: str


def require_sequence(line: Line, descriptor: int) -> None:
    """Refuse a query whose first line is an accession: BLAST+ would fetch it from NCBI.

    Raises ``CallerMistake('query_accession')``.
    """
    with _opened(line, descriptor) as query:
        head = b"" if query is None else os.pread(query, _HEAD, _position(query))
    found = _FIRST_LINE.match(head)
    if found is None or found[1].startswith(b">"):
        return
    from blastyard.domain.query_mistake import headless  # noqa: PLC0415  (a rare case)

    mistake = headless(found[1], legal=False)
    if mistake.code == "query_accession":
        raise CallerMistake(mistake.code, f"{_name(line)}: {mistake.what}", mistake.next_step)


def query_remarks(line: Line, descriptor: int, most: int | None = LOOKED_AT) -> list[Remark]:
    """What a submission would refuse or repair in the query because BLAST+ misreads it.

    ``descriptor`` is standard input, or a file it was kept in; ``most`` bytes of the query are
    looked at (``None`` = all).
    """
    from blastyard.domain.fasta import FastaCheck, FastaLimits  # noqa: PLC0415  (40 ms)
    from blastyard.domain.outfmt import OutputFormat  # noqa: PLC0415
    from blastyard.domain.program import Program  # noqa: PLC0415

    program = Program(line.program)
    task = line.get("task") if line.get("task") in program.tasks else None
    words = line.get("word_size") or ""
    outfmt = None
    with suppress(CallerMistake):
        outfmt = OutputFormat.parse(line.get("outfmt") or "0")
    with _opened(line, descriptor) as query:
        if query is None:
            return []
        check = FastaCheck(
            program,
            task=task,
            source=line.query,
            word_size=int(words) if words.isascii() and words.isdigit() else None,
            limits=FastaLimits(1 << 62, 1 << 62),
        )
        found = check.findings(_chunks(query, most), outfmt)
    return [
        Remark(finding.code, finding.message, finding.next_step)
        for finding in found
        if finding.refused or finding.misread
    ]


def option_remarks(line: Line) -> list[Remark]:
    """An E-value that is none, columns that are not there; BLAST+ refuses some of them itself."""
    from blastyard.domain.option_table import ALLOWED  # noqa: PLC0415  (30 ms)
    from blastyard.domain.option_value import check_value  # noqa: PLC0415
    from blastyard.domain.outfmt import OutputFormat  # noqa: PLC0415
    from blastyard.domain.program import Program  # noqa: PLC0415

    program = Program(line.program)
    evalue, outfmt = line.get("evalue"), line.get("outfmt")
    found: list[Remark] = []
    try:
        if evalue is not None:
            check_value("evalue", ALLOWED[program]["evalue"], evalue)
    except CallerMistake as mistake:
        found.append(Remark(mistake.code, mistake.message, mistake.next_step))
    try:
        if outfmt is not None and outfmt.split()[:1] in (["6"], ["7"], ["10"]):
            OutputFormat.parse(outfmt, program)
    except CallerMistake as mistake:
        found.append(Remark(mistake.code, mistake.message, mistake.next_step))
    return found


@contextmanager
def _opened(line: Line, descriptor: int) -> Iterator[int | None]:
    """A descriptor of the query where it is a regular file that can be read; else ``None``."""
    own = line.query != "-"
    if own:
        # not a FIFO: opening one would wake its writer before BLAST+ is there to read
        try:
            if not stat.S_ISREG(os.stat(line.query).st_mode):  # noqa: PTH116
                own, descriptor = False, -1
            else:
                descriptor = os.open(line.query, os.O_RDONLY | os.O_CLOEXEC)
        except (OSError, ValueError):
            own, descriptor = False, -1
    try:
        yield descriptor if is_regular(descriptor) else None
    finally:
        if own:
            os.close(descriptor)


def is_regular(descriptor: int) -> bool:
    """Whether the descriptor is that of a regular file."""
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def _position(descriptor: int) -> int:
    return os.lseek(descriptor, 0, os.SEEK_CUR)


def _chunks(descriptor: int, most: int | None) -> Iterator[bytes]:
    at = _position(descriptor)
    end = None if most is None else at + most
    while end is None or at < end:
        with suppress(OSError):
            chunk = os.pread(descriptor, _CHUNK, at)
            if chunk:
                at += len(chunk)
                yield chunk
                continue
        return


def _name(line: Line) -> str:
    return "standard input" if line.query == "-" else line.query
