"""Which files of a results location are the result of a search, and whether all are there. Pure.

ElasticBLAST splits a query into batches (``query_batches/batch_000.fa``; a list of them, where the
cluster splits, in ``metadata/batch_list.txt``), and each BLAST Job writes
``batch_000-<program>-<db>.out.gz``: also one that failed, with what it had by then. How BLAST ended
stands in ``logs/BLAST_RUNTIME-000.out``. Azure's puts all that one folder deeper, under the id, and
a database in parts makes a folder ``shard_00`` or ``part_00`` for each, and one merged file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from blastyard.domain.errors import Failure

BATCH_LIST: Final = "metadata/batch_list.txt"
JOB_COUNT: Final = "metadata/num_jobs_submitted.txt"
FAILURE: Final = "metadata/FAILURE.txt"
MERGED: Final = "merged_results.out.gz"

_QUERY: Final = re.compile(r"query_batches/batch_(\d+)\.fa(?:\.gz)?")
_QUERY_NAME: Final = re.compile(r"(?:.*/)?batch_(\d+)\.fa(?:\.gz)?")
_RESULT: Final = re.compile(
    r"(?P<part>(?:shard|part)_\d+/)?batch_(?P<number>\d+)-(?P<program>[a-z]+)-.+\.out\.gz"
)
_RUNTIME: Final = "logs/BLAST_RUNTIME-{number:03d}.out"
_EXIT: Final = re.compile(rb"run exitCode (\d+) (\d+)")
_SHOWN: Final = 5
Key = tuple[str, int]
"""The folder of a database's part, and the number of a batch."""
_AGAIN: Final = "Run the search again; see the logs of its Jobs for why."


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a result, in the order of the query."""

    files: tuple[str, ...]
    runtimes: Mapping[str, int]
    """Files that say how BLAST ended, each with the number of its batch."""
    is_merged: bool = False
    """Whether ElasticBLAST has put a database's parts together; the numbers in it are then those
    of the parts, and what it keeps of each query is its own decision."""


@dataclass(frozen=True, slots=True)
class Names:
    """The files of a search, below the folder that has its results."""

    folder: str
    """``""``, or a name with ``/``, to be put before theirs."""
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, files: Mapping[str, int], name: str) -> Names:
        """Those of a search with this id in its own location."""
        folder = f"{name}/"
        below = {
            file.removeprefix(folder): size
            for file, size in files.items()
            if file.startswith(folder)
        }
        return cls(folder, below) if below else cls("", files)

    @property
    def parts(self) -> tuple[str, ...]:
        """Folders of a database's parts; ``("",)`` for a database that is whole."""
        found = {match["part"] or "" for match in map(_RESULT.fullmatch, self.sizes) if match}
        return tuple(sorted(found)) or ("",)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a search's own records say of it."""

    batch_list: str | None = None
    """The content of :data:`BATCH_LIST`."""
    job_count: str | None = None
    """The content of :data:`JOB_COUNT`."""
    seen: int = 0
    """BLAST Jobs that were seen in the cluster."""

    def batches(self, names: Iterable[str]) -> frozenset[int]:
        """The batches there must be, from the queries that were written for them."""
        found = {int(match[1]) for match in map(_QUERY.fullmatch, names) if match}
        listed = map(_QUERY_NAME.fullmatch, map(str.strip, (self.batch_list or "").splitlines()))
        return frozenset(found | {int(match[1]) for match in listed if match})


def assembled(names: Names, program: str, expected: Expected) -> Found | Failure:
    """The files of the result, if each part of it is there; what is missing otherwise."""
    batches = expected.batches(names.sizes)
    results, doubles = _results(names, program)
    wanted = [(part, number) for part in names.parts for number in sorted(batches)]
    problems = _problems(names, results, wanted, expected)
    if doubles:
        return _incomplete(f"there is more than one result of the same batch: {_some(doubles)}")
    if problem := next(problems, ""):
        return _incomplete(problem)
    return _ordered(names, [results[key] for key in wanted], batches)


def _problems(
    names: Names, results: Mapping[Key, str], wanted: Sequence[Key], expected: Expected
) -> Iterator[str]:
    """What keeps these results from being what is wanted."""
    if not wanted:
        yield (
            "nothing there says how many batches it has (neither query_batches/ nor "
            f"{BATCH_LIST}), so nobody can tell whether all are there"
        )
    if missing := [_name(key) for key in wanted if key not in results]:
        yield f"{len(missing)} of {len(wanted)} results are missing: {_some(missing)}"
    if odd := [results[key] for key in sorted(set(results) - set(wanted))]:
        yield f"there are results of no batch of this search: {_some(odd)}"
    said = (expected.job_count or "").strip()
    if said.isdecimal() and int(said) != len(wanted):
        yield f"{len(wanted)} results are there, and {JOB_COUNT} says {said}"
    if expected.seen > len(wanted):
        yield f"{len(wanted)} results are there, and {expected.seen} BLAST Jobs were seen"
    if empty := [file for file in results.values() if not names.sizes[file]]:
        yield f"empty, which no compressed file can be: {_some(empty)}"


def runtime_failure(text: bytes, batch: int) -> Failure | None:
    """What a runtime file says of how BLAST ended; ``None`` when well, or when it does not say."""
    ends = _EXIT.findall(text)
    if not ends or int(ends[-1][1]) == 0:
        return None
    code = int(ends[-1][1])
    return Failure(
        "blast_failed",
        f"BLAST+ ended with exit code {code} in batch {batch:03d}; what it had written by then is "
        "no result.",
        _AGAIN,
    )


def damaged(file: str, why: str) -> Failure:
    """The failure of a search with a file that cannot be unpacked."""
    return _incomplete(f"{file} is damaged: {why}")


def _ordered(names: Names, files: Sequence[str], batches: Iterable[int]) -> Found | Failure:
    runtimes = {_RUNTIME.format(number=number): number for number in sorted(batches)}
    there = {
        f"{part}{file}": number
        for part in names.parts
        for file, number in runtimes.items()
        if f"{part}{file}" in names.sizes
    }
    if names.parts == ("",):
        return Found(tuple(files), there)
    if names.sizes.get(MERGED):
        return Found((MERGED,), there, is_merged=True)
    return Failure(
        "result_unmerged",
        f"The database was searched in {len(names.parts)} parts, and there is no {MERGED}; put one "
        "after another, the parts would be no result.",
        "Search without `db-partitions`; the parts stay in the results location.",
    )


def _results(names: Names, program: str) -> tuple[dict[Key, str], list[str]]:
    found: dict[Key, str] = {}
    doubles: list[str] = []
    for name in sorted(names.sizes):
        match = _RESULT.fullmatch(name)
        if match is None or match["program"] != program:
            continue
        key = (match["part"] or "", int(match["number"]))
        if key in found:
            doubles += [found[key], name]
        found[key] = name
    return found, doubles


def _name(key: Key) -> str:
    return f"{key[0]}batch_{key[1]:03d}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _incomplete(why: str) -> Failure:
    return Failure("result_incomplete", f"The result is not whole: {why}.", _AGAIN)
