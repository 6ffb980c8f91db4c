"""Whether the files of a BLAST database are whole.

BLAST+ maps these files into memory and believes their index. A volume cut short is a wrong result
without a word, or a crash without a name; so the sizes that the index promises are compared here.
Layouts are those of BLAST+'s ``seqdb_reader`` (database versions 4 and 5) and of LMDB.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

_LMDB_MAGIC: Final = 0xBEEFC0DE


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a database: the file it is about, and a sentence."""

    file: str
    message: str


def beside(prefix: Path, extension: str) -> Path:
    """The file of that extension: a prefix may have dots of its own."""
    return prefix.with_name(f"{prefix.name}.{extension}")


@dataclass(frozen=True, slots=True)
class _Index:
    """What the index of a volume says: the sizes of its files, and the name of its LMDB file."""

    size: int
    headers_size: int
    sequences_size: int
    lmdb: str


def volume_problems(volume: Path, letter: str) -> tuple[list[Problem], Path | None]:
    """What is missing of a volume, or not of the size that its index promises; its LMDB file."""
    path = beside(volume, f"{letter}in")
    if not path.exists():
        return [Problem(str(path), f"{path.name} is missing")], None
    index = _read_index(path, is_protein=letter == "p")
    if index is None:
        message = f"{path.name} is cut short, or no index of a BLAST database"
        return [Problem(str(path), message)], None
    promised = {"in": index.size, "hr": index.headers_size, "sq": index.sequences_size}
    problems = [
        problem
        for end, size in promised.items()
        if (problem := _size_problem(beside(volume, f"{letter}{end}"), size)) is not None
    ]
    return problems, volume.with_name(index.lmdb) if index.lmdb else None


def shared_problems(lmdb: Path, letter: str) -> list[Problem]:
    """What is wrong with the files that all volumes of version 5 share.

    Ids and taxa by sequence (``os``, ``ot``): a count, where each entry ends, the entries, of 1
    and 4 bytes a unit. Sequences by taxon (``to``): runs of numbers, each after its length.
    """
    stem = lmdb.with_suffix("")
    problems = _lmdb_problems(lmdb)
    taxa = beside(stem, f"{letter}tf")
    problems += _lmdb_problems(taxa) if taxa.exists() else []
    for end, measure in (("os", _ids_size), ("ot", _taxids_size), ("to", _runs_size)):
        path = beside(stem, f"{letter}{end}")
        if not path.exists():
            continue
        try:
            with path.open("rb") as file:
                problem = _size_problem(path, measure(file))
        except (struct.error, OSError):
            problem = Problem(str(path), f"{path.name} is cut short or damaged")
        problems += [problem] if problem is not None else []
    return problems


def _ids_size(file: BinaryIO) -> int:
    return _entries_size(file, 1)


def _taxids_size(file: BinaryIO) -> int:
    return _entries_size(file, 4)


def _entries_size(file: BinaryIO, unit: int) -> int:
    (count,) = struct.unpack("<Q", file.read(8))
    if count == 0:
        return 8
    file.seek(8 * count)
    (end,) = struct.unpack("<Q", file.read(8))
    return int(8 + 8 * count + unit * end)


def _runs_size(file: BinaryIO) -> int:
    at, size = 0, max(file.seek(0, 2), 1)
    while at < size:
        file.seek(at)
        (count,) = struct.unpack("<I", file.read(4))
        at += 4 + 4 * count
    return at


def _size_problem(path: Path, promised: int) -> Problem | None:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return Problem(str(path), f"{path.name} is missing")
    if size == promised:
        return None
    word = "cut short" if size < promised else "too long"
    return Problem(str(path), f"{path.name} is {word}: {size:,} bytes where {promised:,} belong")


def _read_index(path: Path, *, is_protein: bool) -> _Index | None:
    """Read the index's head and the last offsets; ``None`` when it makes no sense.

    Numbers are big-endian, the count of letters excepted; text has its length before it. Version 5
    adds the number of the volume and the name of the LMDB file. Then follow the offsets of
    headers, of sequences and, for nucleotides, of ambiguities, one more than there are sequences.
    """
    try:
        with path.open("rb") as file:
            head = file.read(65_536)
            reader = _Reader(head)
            version, code = reader.number(), reader.number()
            if version not in (4, 5) or code != is_protein:
                return None
            if version == 5:
                reader.number()
            reader.text()
            lmdb = reader.text() if version == 5 else ""
            reader.text()
            sequences = reader.number()
            start = reader.at + 12
            arrays = 2 if is_protein else 3
            last = [start + 4 * (sequences + 1) * (array + 1) - 4 for array in range(2)]
            ends = []
            for position in last:
                file.seek(position)
                ends.append(struct.unpack(">I", file.read(4))[0])
    except (struct.error, OSError):
        return None
    return _Index(start + 4 * (sequences + 1) * arrays, ends[0], ends[1], lmdb)


class _Reader:
    """Numbers and texts from the start of an index."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self.at = 0

    def number(self) -> int:
        (number,) = struct.unpack_from(">I", self._head, self.at)
        self.at += 4
        return int(number)

    def text(self) -> str:
        length = self.number()
        if self.at + length > len(self._head):
            raise struct.error("text beyond the end")
        text = self._head[self.at : self.at + length]
        self.at += length
        return text.rstrip(b"\0").decode("utf-8", "replace")


def _lmdb_problems(path: Path) -> list[Problem]:
    """An LMDB file is as long as the newer of its two meta pages says, or BLAST+ dies of SIGBUS."""
    try:
        with path.open("rb") as file:
            first = _lmdb_meta(file.read(152))
            file.seek(first[0])
            second = _lmdb_meta(file.read(152))
        size = path.stat().st_size
    except FileNotFoundError:
        return [Problem(str(path), f"{path.name} is missing")]
    except (struct.error, ValueError, OSError):
        return [Problem(str(path), f"{path.name} is cut short or damaged")]
    page, last_page, _ = max(first, second, key=lambda meta: meta[2])
    needed = page * (last_page + 1)
    if size >= needed:
        return []
    message = f"{path.name} is cut short: {size:,} bytes where {needed:,} belong"
    return [Problem(str(path), message)]


def _lmdb_meta(page: bytes) -> tuple[int, int, int]:
    """Page size, last page used and transaction number of a meta page."""
    (magic,) = struct.unpack_from("=I", page, 16)
    (page_size,) = struct.unpack_from("=I", page, 40)
    last_page, transaction = struct.unpack_from("=QQ", page, 136)
    if magic != _LMDB_MAGIC:
        raise ValueError("not LMDB")
    return page_size, last_page, transaction
