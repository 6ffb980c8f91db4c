"""The result of a search, as one file: every batch of it proven there, unpacked, in order.

A file under its final name is whole: what is missing or damaged is a named failure, and never a
shorter result.
"""

from __future__ import annotations

import errno
import gzip
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from blastyard.domain.errors import Failure, Unavailable
from blastyard.domain.outfmt import OutputFormat
from blastyard.engine.attempt import Attempt
from blastyard.engine.elastic_blast import batch
from blastyard.engine.elastic_blast.batch import Expected, Found, Names
from blastyard.engine.elastic_blast.location import Location, reading
from blastyard.engine.elastic_blast.name import ClusterName
from blastyard.engine.elastic_blast.said import worded
from blastyard.engine.failure import in_words
from blastyard.engine.remote import EXACT, Collected

MERGED_BY_ELASTIC_BLAST: Final = "merged by elastic-blast"

_CHUNK: Final = 1 << 20
_LARGEST_RECORD: Final = 1 << 20
"""Bytes of a list or a note that are read; ElasticBLAST's are far smaller."""
_LINES: Final = frozenset({0, 1, 2, 3, 4, 6, 7, 10, 18})
"""Formats of which several files, one after another, are one again."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be collected."""

    name: ClusterName
    program: str
    output_format: str
    """The value of ``-outfmt``."""
    seen: int = 0
    """BLAST Jobs that were seen in the cluster; 0 when nobody counted them."""
    limit: int | None = None
    """Bytes of the unpacked result; ``None`` = no limit of ours."""


def collect(location: Location, wanted: Wanted, attempt: Attempt) -> Collected | Failure:
    """Publish the result of a search that has ended; the same answer when asked again.

    Two processes may do this at once. Raises ``Unavailable`` when the location or the disk does not
    do its part: then it is tried again.
    """
    if published := attempt.published():
        return Collected(published, _exactness(attempt).read_text(encoding="utf-8"))
    files = location.files()
    names = Names.of(files, wanted.name.id)
    expected = Expected(
        _record(location, names, batch.BATCH_LIST),
        _record(location, names, batch.JOB_COUNT),
        wanted.seen,
    )
    found = batch.assembled(names, wanted.program, expected)
    if isinstance(found, Found):
        found = _proven(location, names, wanted, found)
    if isinstance(found, Failure):
        return _explained(found, _record(location, names, batch.FAILURE))
    if failure := _unpack(location, names, wanted, found, attempt):
        return failure
    exactness = MERGED_BY_ELASTIC_BLAST if found.is_merged else EXACT
    _exactness(attempt).write_text(exactness, encoding="utf-8")
    return Collected(attempt.publish(), exactness)


def _exactness(attempt: Attempt) -> Path:
    """Where the attempt keeps what was done to its result; written before it is published."""
    return attempt.directory / "exactness"


def _proven(location: Location, names: Names, wanted: Wanted, found: Found) -> Found | Failure:
    """The same, unless BLAST failed in one of the batches, or they make no whole."""
    for file, number in found.runtimes.items():
        text = _record(location, names, file)
        if failure := batch.runtime_failure((text or "").encode(), number):
            return failure
    number = OutputFormat.parse(wanted.output_format).number
    if len(found.files) > 1 and number not in _LINES:
        return Failure(
            "result_unmerged",
            f"The query was searched in {len(found.files)} batches, and several files in format "
            f"{number} are not one when they stand one after another.",
            "Ask for tsv or csv; or have the whole query in one batch, by a larger `batch-len` in "
            "the template of elastic-blast's configuration file.",
        )
    return found


def _unpack(
    location: Location, names: Names, wanted: Wanted, found: Found, attempt: Attempt
) -> Failure | None:
    """Write the whole output, under a name of this process's until it is complete."""
    new = attempt.directory / f"output.{os.getpid()}"
    try:
        attempt.directory.mkdir(parents=True, exist_ok=True)
        with new.open("wb") as target:
            room = _Room(target, wanted.limit)
            for file in found.files:
                if failure := _append(location, names, file, room):
                    return failure
        new.replace(attempt.output)
    except OSError as error:
        raise _disk(new, error) from error
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)
    return None


class _Room:
    """A file that takes so many bytes."""

    def __init__(self, file: BinaryIO, limit: int | None) -> None:
        self._file = file
        self.left = limit
        self.limit = limit

    def write(self, data: bytes) -> bool:
        """Whether they had room."""
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                return False
        self._file.write(data)
        return True


def _append(location: Location, names: Names, file: str, room: _Room) -> Failure | None:
    with location.open(names.folder + file) as packed, gzip.GzipFile(fileobj=packed) as plain:
        while True:
            with reading(location.shown):
                data = _next(plain, file)
            if isinstance(data, Failure):
                return data
            if not data:
                return None
            if not room.write(data):
                return Failure(
                    "output_limit",
                    f"The output reached its size limit of {in_words(room.limit or 0)}.",
                    "Ask for fewer hits (-max_target_seqs, -max_hsps, -evalue), a shorter format "
                    "such as tsv, or raise the output limit.",
                )


def _next(plain: gzip.GzipFile, file: str) -> bytes | Failure:
    try:
        return plain.read(_CHUNK)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        return batch.damaged(file, str(error))


def _record(location: Location, names: Names, file: str) -> str | None:
    """The text of a small file, if it is there."""
    if file not in names.sizes:
        return None
    with reading(location.shown), location.open(names.folder + file) as opened:
        return opened.read(_LARGEST_RECORD).decode("utf-8", "replace")


def _explained(failure: Failure, note: str | None) -> Failure:
    """With what the cluster has noted of a failure, where it has."""
    words = worded(note or "")
    return replace(failure, message=f"{failure.message} {words}") if words else failure


def _disk(path: Path, error: OSError) -> Unavailable:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return Unavailable(
        "disk_full" if full else "internal", f"{path} cannot be written: {error}", "make room"
    )
