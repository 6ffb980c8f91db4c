"""A result is published whole, or the search says what is missing of it."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NoReturn, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blastyard.domain.errors import Failure, Misconfigured, Unavailable
from blastyard.engine.attempt import Attempt
from blastyard.engine.elastic_blast.batch import Expected, Found, Names, assembled
from blastyard.engine.elastic_blast.collection import MERGED_BY_ELASTIC_BLAST, Wanted, collect
from blastyard.engine.elastic_blast.location import Directory, Location, location
from blastyard.engine.elastic_blast.name import cluster_name
from blastyard.engine.remote import Collected

NAME = cluster_name("5b0c3a52-3a35-4f6e-8a1b-6c2b7d4d9f10", "1")
WANTED = Wanted(NAME, "blastn", "6")


class Bucket(Protocol):
    """A results location, and how files come into it."""

    address: str

    def put(self, name: str, data: bytes) -> None: ...

    def take(self, name: str) -> None: ...


class DirectoryBucket:
    def __init__(self, folder: Path, address: str) -> None:
        self._folder = folder
        self.address = address

    def put(self, name: str, data: bytes) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def take(self, name: str) -> None:
        (self._folder / name).unlink()


class MemoryBucket:
    def __init__(self) -> None:
        import fsspec  # type: ignore[import-untyped]  # noqa: PLC0415

        self._files = fsspec.filesystem("memory")
        self.address = f"memory://results-{os.urandom(4).hex()}/{NAME.id}"

    def put(self, name: str, data: bytes) -> None:
        self._files.pipe_file(f"{self.address}/{name}", data)

    def take(self, name: str) -> None:
        self._files.rm_file(f"{self.address}/{name}")

    def close(self) -> None:
        self._files.rm(self.address.rpartition("/")[0], recursive=True)


@pytest.fixture(params=["directory", "file", "memory"])
def bucket(
    request: pytest.FixtureRequest, tmp_path: Path, missing: Callable[[str], NoReturn]
) -> Iterator[Bucket]:
    folder = tmp_path / "results with %41" / NAME.id
    if request.param == "memory":
        if "fsspec" not in installed():
            missing("the Python package fsspec")
        memory = MemoryBucket()
        memory.put("note", b"")
        yield memory
        memory.close()
    else:
        folder.parent.mkdir()
        plain = str(folder)
        yield DirectoryBucket(folder, plain if request.param == "directory" else folder.as_uri())


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    return Attempt(tmp_path / "attempt-1", tmp_path / "result.tsv")


def fill(bucket: Bucket, batches: int, *, below: str = "", program: str = "blastn") -> None:
    """What ElasticBLAST leaves of a search in so many batches."""
    for number in range(batches):
        bucket.put(f"{below}query_batches/batch_{number:03d}.fa", b">q\nA\n")
        name = f"{below}batch_{number:03d}-{program}-core_nt.out.gz"
        bucket.put(name, gzip.compress(f"hit {number}\n".encode()))
    bucket.put(f"{below}metadata/SUCCESS.txt", b"")


def lines(batches: int) -> bytes:
    return b"".join(f"hit {number}\n".encode() for number in range(batches))


def collected(bucket: Bucket, attempt: Attempt, wanted: Wanted = WANTED) -> Collected | Failure:
    return collect(location(bucket.address), wanted, attempt)


def published(bucket: Bucket, attempt: Attempt, wanted: Wanted = WANTED) -> bytes:
    found = collected(bucket, attempt, wanted)
    assert isinstance(found, Collected)
    data = found.output.path.read_bytes()
    assert found.output.size == len(data)
    assert found.output.sha256 == hashlib.sha256(data).hexdigest()
    return data


def failed(bucket: Bucket, attempt: Attempt, wanted: Wanted = WANTED) -> Failure:
    found = collected(bucket, attempt, wanted)
    assert isinstance(found, Failure)
    assert not attempt.result.exists()
    assert not attempt.output.exists()
    return found


# -- the whole -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batches", [1, 12, 1002])
def test_batches_are_put_together_in_the_order_of_the_query(
    bucket: Bucket, attempt: Attempt, batches: int
) -> None:
    fill(bucket, batches)

    assert published(bucket, attempt) == lines(batches)


def test_results_below_the_id_are_found(bucket: Bucket, attempt: Attempt) -> None:
    fill(bucket, 2, below=f"{NAME.id}/")

    assert published(bucket, attempt) == lines(2)


def test_a_list_of_batches_stands_for_the_batches(bucket: Bucket, attempt: Attempt) -> None:
    fill(bucket, 2)
    for number in range(2):
        bucket.take(f"query_batches/batch_{number:03d}.fa")
    bucket.put("metadata/batch_list.txt", b"gs://b/q/batch_000.fa\r\ngs://b/q/batch_001.fa\n\n")

    assert published(bucket, attempt) == lines(2)


def test_a_result_without_hits_is_a_result(bucket: Bucket, attempt: Attempt) -> None:
    fill(bucket, 1)
    bucket.put("batch_000-blastn-core_nt.out.gz", gzip.compress(b""))

    assert published(bucket, attempt) == b""


def test_asked_again_it_gives_the_same_even_when_the_location_is_gone(
    bucket: Bucket, attempt: Attempt
) -> None:
    fill(bucket, 1)
    first = collected(bucket, attempt)
    bucket.take("batch_000-blastn-core_nt.out.gz")

    assert collected(bucket, attempt) == first


def test_a_file_that_was_written_half_way_by_a_dead_process_is_no_result(
    bucket: Bucket, attempt: Attempt
) -> None:
    """Fault R4."""
    attempt.directory.mkdir()
    (attempt.directory / "output.1").write_bytes(b"half")
    fill(bucket, 2)

    assert published(bucket, attempt) == lines(2)


# -- what is missing -------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_missing_batch_is_a_named_failure_and_never_a_shorter_result(
    bucket: Bucket, attempt: Attempt, missing: int
) -> None:
    """Fault R3."""
    fill(bucket, 3)
    bucket.take(f"batch_{missing:03d}-blastn-core_nt.out.gz")
    bucket.put("metadata/FAILURE.txt", b"Error: mdb_env_open\n")

    failure = failed(bucket, attempt)

    assert failure.code == "result_incomplete"
    assert f"1 of 3 results are missing: batch_{missing:03d}." in failure.message
    assert failure.message.endswith("Error: mdb_env_open")


def test_without_a_record_of_its_batches_nothing_is_proven(
    bucket: Bucket, attempt: Attempt
) -> None:
    """Fault R3."""
    fill(bucket, 1)
    bucket.take("query_batches/batch_000.fa")

    assert "nobody can tell" in failed(bucket, attempt).message


def test_an_empty_location_is_a_missing_result(bucket: Bucket, attempt: Attempt) -> None:
    assert failed(bucket, attempt).code == "result_incomplete"


def test_fewer_results_than_jobs_were_submitted_or_seen(bucket: Bucket, attempt: Attempt) -> None:
    """Fault R3."""
    fill(bucket, 2)

    assert "3 BLAST Jobs were seen" in failed(bucket, attempt, replace(WANTED, seen=3)).message
    bucket.put("metadata/num_jobs_submitted.txt", b"3\n")
    assert "num_jobs_submitted.txt says 3" in failed(bucket, attempt).message


def test_results_of_another_program_do_not_count(bucket: Bucket, attempt: Attempt) -> None:
    """Fault R12."""
    fill(bucket, 1, program="blastp")

    assert "missing" in failed(bucket, attempt).message


def test_results_of_no_batch_of_the_search_are_suspicious(bucket: Bucket, attempt: Attempt) -> None:
    """Fault R12."""
    fill(bucket, 1)
    bucket.put("batch_007-blastn-core_nt.out.gz", gzip.compress(b"x"))

    assert "of no batch of this search: batch_007" in failed(bucket, attempt).message


def test_two_results_of_one_batch_are_suspicious(bucket: Bucket, attempt: Attempt) -> None:
    """Fault R12."""
    fill(bucket, 1)
    bucket.put("batch_000-blastn-nt.out.gz", gzip.compress(b"x"))

    assert "more than one result of the same batch" in failed(bucket, attempt).message


PACKED = gzip.compress(os.urandom(5000))


@pytest.mark.parametrize(
    "data",
    [b"", PACKED[:-9], PACKED[:3000], PACKED[:2000] + b"\0" + PACKED[2001:], b"no gzip at all"],
)
def test_a_damaged_batch_is_named(bucket: Bucket, attempt: Attempt, data: bytes) -> None:
    """Fault R4."""
    fill(bucket, 3)
    bucket.put("batch_001-blastn-core_nt.out.gz", data)

    failure = failed(bucket, attempt)

    assert failure.code == "result_incomplete"
    assert "batch_001-blastn-core_nt.out.gz" in failure.message


def test_what_a_failed_blast_had_written_by_then_is_no_result(
    bucket: Bucket, attempt: Attempt
) -> None:
    """Fault R5."""
    fill(bucket, 2)
    bucket.put("logs/BLAST_RUNTIME-000.out", b"1 run exitCode 000 0\n1 run end 000\n")
    bucket.put("logs/BLAST_RUNTIME-001.out", b"1 run exitCode 001 0\n2 run exitCode 001 4\n")

    failure = failed(bucket, attempt)

    assert failure.code == "blast_failed"
    assert "exit code 4 in batch 001" in failure.message


def test_a_batch_that_was_tried_again_and_ended_well_is_well(
    bucket: Bucket, attempt: Attempt
) -> None:
    """Fault R2."""
    fill(bucket, 1)
    bucket.put("logs/BLAST_RUNTIME-000.out", b"1 run exitCode 000 4\n2 run exitCode 000 0\n")
    bucket.put("metadata/FAILURE.txt", b"of the first try")

    assert published(bucket, attempt) == lines(1)


def test_a_result_larger_than_its_limit_is_not_published(bucket: Bucket, attempt: Attempt) -> None:
    fill(bucket, 3)

    assert failed(bucket, attempt, replace(WANTED, limit=17)).code == "output_limit"
    assert published(bucket, attempt, replace(WANTED, limit=18)) == lines(3)


# -- what makes no whole ---------------------------------------------------------------------------


@pytest.mark.parametrize("output_format", ["5", "15", "16", "17", "11"])
def test_documents_put_one_after_another_are_none(
    bucket: Bucket, attempt: Attempt, output_format: str
) -> None:
    fill(bucket, 2)

    failure = failed(bucket, attempt, replace(WANTED, output_format=output_format))

    assert failure.code == "result_unmerged"
    assert "batch-len" in failure.next_step


@pytest.mark.parametrize("output_format", ["5", "15"])
def test_one_document_is_one(bucket: Bucket, attempt: Attempt, output_format: str) -> None:
    fill(bucket, 1)

    assert published(bucket, attempt, replace(WANTED, output_format=output_format)) == lines(1)


@pytest.mark.parametrize("part", ["shard_{:02d}/", "part_{:02d}/"])
def test_parts_of_a_database_are_no_result_until_they_are_merged(
    bucket: Bucket, attempt: Attempt, part: str
) -> None:
    fill(bucket, 2)
    for number in range(2):
        bucket.take(f"batch_{number:03d}-blastn-core_nt.out.gz")
        for batch in range(2):
            name = f"{part.format(number)}batch_{batch:03d}-blastn-nt.out.gz"
            bucket.put(name, gzip.compress(b"x"))

    assert failed(bucket, attempt).code == "result_unmerged"

    bucket.put("merged_results.out.gz", gzip.compress(b"merged\n"))
    found = collected(bucket, attempt)
    assert isinstance(found, Collected)
    assert found.exactness == MERGED_BY_ELASTIC_BLAST
    assert collected(bucket, attempt) == found
    assert found.output.path.read_bytes() == b"merged\n"


def test_a_merged_result_needs_every_batch_of_every_part(bucket: Bucket, attempt: Attempt) -> None:
    """Fault R3."""
    for batch in range(2):
        bucket.put(f"query_batches/batch_{batch:03d}.fa", b">q\nA\n")
        bucket.put(f"shard_00/batch_{batch:03d}-blastn-nt.out.gz", gzip.compress(b"x"))
    bucket.put("shard_01/batch_001-blastn-nt.out.gz", gzip.compress(b"x"))
    bucket.put("merged_results.out.gz", gzip.compress(b"merged\n"))

    assert "missing: shard_01/batch_000" in failed(bucket, attempt).message


@given(st.sets(st.integers(0, 40), max_size=12), st.sets(st.integers(0, 40), max_size=12))
def test_a_result_is_whole_exactly_when_each_batch_has_one(
    wanted: set[int], there: set[int]
) -> None:
    """Fault R3."""
    sizes = {f"query_batches/batch_{number:03d}.fa": 1 for number in wanted}
    sizes |= {f"batch_{number:03d}-blastn-nt.out.gz": 1 for number in there}

    found = assembled(Names.of(sizes, NAME.id), "blastn", Expected())

    assert isinstance(found, Found) == (wanted == there and bool(wanted))
    if isinstance(found, Found):
        assert [int(name[6:9]) for name in found.files] == sorted(wanted)


# -- locations -------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["results", "./r", "", "nowhere://x/y", "file://other/r"])
def test_what_is_no_location_is_refused(address: str) -> None:
    with pytest.raises(Misconfigured):
        location(address)


@pytest.mark.parametrize(
    ("address", "package"),
    [
        ("s3://bucket/results", "s3fs"),
        ("gs://bucket/results", "gcsfs"),
        ("abfs://container/results", "adlfs"),
        ("https://stg.blob.core.windows.net/results/x", "adlfs"),
    ],
)
def test_a_missing_package_is_named(address: str, package: str) -> None:
    if package in installed():
        pytest.skip(f"{package} is here")

    with pytest.raises(Misconfigured) as caught:
        location(address)

    assert caught.value.code == "dependency_missing"
    assert caught.value.next_step == f"pip install {package}"


def installed() -> set[str]:
    from importlib.metadata import distributions  # noqa: PLC0415

    return {each.metadata["Name"] for each in distributions()}


@pytest.mark.parametrize("bucket", ["memory"], indirect=True)
def test_whatever_a_vendors_package_raises_is_no_answer(
    bucket: Bucket, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault R6."""
    fill(bucket, 1)
    there = location(bucket.address)
    with monkeypatch.context() as patch:
        patch.setattr("fsspec.implementations.memory.MemoryFileSystem.find", _broken)
        with pytest.raises(Unavailable, match="KeyError: 'token'"):
            collect(there, WANTED, attempt)

    assert published(bucket, attempt) == lines(1)


def _broken(*_: object, **__: object) -> NoReturn:
    raise KeyError("token")


def test_a_share_that_is_not_mounted_is_no_missing_result(tmp_path: Path, attempt: Attempt) -> None:
    """Fault R6."""
    with pytest.raises(Unavailable) as caught:
        collect(location(str(tmp_path / "mount" / NAME.id)), WANTED, attempt)

    assert caught.value.code == "results_unavailable"


def test_a_link_does_not_lead_out_of_the_location(tmp_path: Path, attempt: Attempt) -> None:
    folder = tmp_path / "r" / NAME.id
    bucket = DirectoryBucket(folder, str(folder))
    fill(bucket, 1)
    result = folder / "batch_000-blastn-core_nt.out.gz"
    result.rename(tmp_path / "elsewhere")
    result.symlink_to(tmp_path / "elsewhere")

    assert "missing: batch_000" in failed(bucket, attempt).message


class Flaky:
    """A location that breaks while it is read."""

    def __init__(self, inner: Location, breaks: Callable[[str], Exception | None]) -> None:
        self._inner = inner
        self._breaks = breaks
        self.shown = inner.shown
        self.files = inner.files

    def open(self, name: str) -> BinaryIO:
        if (error := self._breaks(name)) is not None:
            raise error
        return self._inner.open(name)


@pytest.mark.parametrize("name", ["batch_001-blastn-core_nt.out.gz", "metadata/batch_list.txt"])
def test_a_location_that_breaks_is_asked_again_and_nothing_is_published(
    tmp_path: Path, attempt: Attempt, name: str
) -> None:
    """Fault R6."""
    folder = tmp_path / "r" / NAME.id
    bucket = DirectoryBucket(folder, str(folder))
    fill(bucket, 2)
    bucket.put("metadata/batch_list.txt", b"")
    error = Unavailable("results_unavailable", "gone")
    flaky = Flaky(Directory(folder), lambda asked: error if asked == name else None)

    with pytest.raises(Unavailable):
        collect(flaky, WANTED, attempt)

    assert not attempt.result.exists()
    assert published(bucket, attempt) == lines(2)


def test_a_large_result_takes_little_time(tmp_path: Path, attempt: Attempt) -> None:
    folder = tmp_path / "r" / NAME.id
    bucket = DirectoryBucket(folder, str(folder))
    fill(bucket, 1)
    data = b"q1\ts1\t99.1\t100\n" * 1_000_000
    bucket.put("batch_000-blastn-core_nt.out.gz", gzip.compress(data, 1))

    assert published(bucket, attempt) == data
