"""What ElasticBLAST leaves in a results location that is a directory.

A result has a line for each record of the query, with its title's first word: so a test sees whose
query a result answers.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from blastyard.testing.elastic_blast.plan import Run


@dataclass(frozen=True, slots=True)
class Search:
    """What the configuration file says of a search."""

    key: str
    program: str
    database: str
    queries: str
    results: str


def split(search: Search, batches: int) -> list[list[str]]:
    """The titles of the query's records, in so many batches, or in one for each record."""
    text = Path(search.queries).read_text(encoding="utf-8", errors="replace")
    titles = [line[1:].split(maxsplit=1)[:1] for line in text.splitlines() if line[:1] == ">"]
    words = [title[0] if title else "" for title in titles]
    number = max(1, min(batches, len(words)))
    size = -(-len(words) // number)
    return [words[start : start + size] for start in range(0, len(words), size)] or [[]]


def text_of(titles: list[str]) -> bytes:
    """A batch's result."""
    return "".join(f"{title}\tstand-in\t100.000\n" for title in titles).encode()


def write(search: Search, run: Run) -> None:
    """All that is there when every Job has run as the plan says. Nothing for another location."""
    folder = _folder(search.results)
    if folder is None:
        return
    if run.layout == "id":
        folder /= search.key
    name = search.database.rstrip("/").rpartition("/")[2]
    batches = split(search, run.blast_jobs)
    for number, titles in enumerate(batches):
        _put(folder / "query_batches" / f"batch_{number:03d}.fa", b">q\nA\n")
        packed = gzip.compress(text_of(titles), mtime=0)
        packed = packed[: len(packed) // 2] if number in run.damaged else packed
        if number not in run.lost:
            _put(folder / f"batch_{number:03d}-{search.program}-{name}.out.gz", packed)
    _put(folder / "metadata" / "num_jobs_submitted.txt", str(len(batches)).encode())
    _put(folder / "metadata" / "SUCCESS.txt", b"SUCCESS\n")


def has_ended(search: Search) -> str:
    """``SUCCESS`` or ``FAILURE`` when the results say that this search has ended before."""
    folder = _folder(search.results)
    if folder is None:
        return ""
    ends = ("SUCCESS", "FAILURE")
    found = [end for end in ends if (folder / search.key / "metadata" / f"{end}.txt").exists()]
    return found[0] if found else ""


def _folder(address: str) -> Path | None:
    if address.startswith("/"):
        return Path(address)
    return Path(unquote(urlsplit(address).path)) if address.startswith("file://") else None


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
