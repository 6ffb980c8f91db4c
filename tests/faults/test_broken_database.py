"""Databases that are damaged, and processes that die while they add or remove one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest

from blastyard.domain.errors import CallerMistake, Unavailable
from blastyard.domain.program import SequenceType
from blastyard.engine.database import DatabaseFiles
from blastyard.engine.toolchain import Toolchain
from blastyard.service.databases import Databases
from blastyard.store.memory import MemorySearchStore
from blastyard.store.sql import SqlSearchStore
from blastyard.testing.faulty import Fault, FaultySearchStore

NOW = datetime(2024, 5, 6, tzinfo=UTC)
NCBI_DATA = Path("/usr/share/ncbi/data")

# Whatever BLAST+ does not look at before the search that needs it: offsets of its id index.
UNSEEN = {"nog", "pog"}


class SampleDatabases(Protocol):
    """The fixture of that name."""

    nucl: Path
    prot: Path


@pytest.fixture
def files(blast: Path) -> DatabaseFiles:
    return DatabaseFiles(Toolchain(str(blast)))


@pytest.fixture(params=["nucl", "prot", "old"])
def copy(request: pytest.FixtureRequest, sample_databases: SampleDatabases, tmp_path: Path) -> Path:
    """The prefix of a database that may be damaged."""
    source = {
        "nucl": sample_databases.nucl,
        "prot": sample_databases.prot,
        "old": NCBI_DATA / "16SCore",
    }[request.param]
    if request.param == "old" and not source.with_suffix(".nin").exists():
        pytest.skip("ncbi-data is not installed")
    for path in source.parent.glob(f"{source.name}.[np][a-z][a-z]"):
        shutil.copy(path, tmp_path)
    return tmp_path / source.name


def refusal(files: DatabaseFiles, prefix: Path) -> str | None:
    """What is said of a database that is to be registered."""
    try:
        files.inspect(prefix)
    except CallerMistake as mistake:
        return f"{mistake.code}: {mistake.message}"
    return None


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_a_file_cut_short_is_named_when_the_database_is_registered(
    files: DatabaseFiles, copy: Path, share: float
) -> None:
    assert refusal(files, copy) is None
    for path in sorted(copy.parent.glob(f"{copy.name}.*")):
        if path.suffix[1:] in UNSEEN:
            continue
        whole = path.read_bytes()
        path.write_bytes(whole[: int(len(whole) * share)])
        said = refusal(files, copy)
        path.write_bytes(whole)

        assert said is not None, path
        assert said.startswith("database_invalid: ")
        assert path.name in said


def test_a_missing_file_that_searches_need_is_named_when_the_database_is_registered(
    files: DatabaseFiles, copy: Path
) -> None:
    for path in sorted(copy.parent.glob(f"{copy.name}.*")):
        if path.suffix[2:] not in {"hr", "sq", "db"}:
            continue
        whole = path.read_bytes()
        path.unlink()
        said = refusal(files, copy)
        path.write_bytes(whole)

        assert f"{path.name} is missing" in str(said)


def test_rubbish_in_place_of_an_index_is_no_database(files: DatabaseFiles, copy: Path) -> None:
    [index] = copy.parent.glob(f"{copy.name}.?in")
    index.write_bytes(b"\xff" * index.stat().st_size)

    assert f"{index.name} is cut short, or no index" in str(refusal(files, copy))


def test_blast_crashing_on_a_database_is_a_damaged_database(
    files: DatabaseFiles, copy: Path, blast: Path, tmp_path: Path
) -> None:
    crashing = tmp_path / "bin"
    crashing.mkdir()
    (crashing / "blastdbcmd").write_text("#!/bin/sh\nkill -SEGV $$\n")
    (crashing / "blastdbcmd").chmod(0o755)

    said = refusal(DatabaseFiles(Toolchain(f"{crashing}:{blast}")), copy)

    assert "signal 11" in str(said)
    assert str(copy) in str(said)


def test_a_full_disk_is_named_and_nothing_is_left(home: Path, blast: Path) -> None:
    full = home / "bin"
    full.mkdir()
    words = "BLAST Database creation error: mdb_txn_commit: No space left on device"
    (full / "makeblastdb").write_text(f"#!/bin/sh\ncat >part.nsq\necho '{words}' >&2\nexit 1\n")
    (full / "makeblastdb").chmod(0o755)
    fasta = home / "in.fa"
    fasta.write_text(">a\nACGTACGTACGT\n")
    toolchain = Toolchain(f"{full}:{blast}:/usr/bin:/bin")
    store = MemorySearchStore(lambda: NOW)
    databases = Databases(store, DatabaseFiles(toolchain), home / "databases", lambda: NOW)

    with pytest.raises(Unavailable, match=r"disk of .* is full") as caught:
        databases.add_fasta("genes", fasta, SequenceType.NUCL)

    assert caught.value.code == "disk_full"
    assert list((home / "databases").iterdir()) == []
    assert list(databases.list()) == []


STEP = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from blastyard.domain.program import SequenceType
from blastyard.engine.database import DatabaseFiles
from blastyard.engine.toolchain import Toolchain
from blastyard.service.databases import Databases
from blastyard.store.sql import SqlSearchStore
from blastyard.testing.faulty import FaultySearchStore
home, blast, death, step = Path(sys.argv[1]), *sys.argv[2:]
def checkpoint(at):
    if at == death:
        os.kill(os.getpid(), 9)
store = FaultySearchStore(SqlSearchStore(home / "blastyard.db"), checkpoint=checkpoint)
files = DatabaseFiles(Toolchain(blast))
databases = Databases(store, files, home / "databases", lambda: datetime.now(UTC))
if step == "add":
    databases.add_fasta("genes", home / "in.fa", SequenceType.NUCL)
else:
    databases.remove("genes")
"""


@pytest.fixture
def step(home: Path, blast: Path) -> Callable[[str, str], int]:
    """``step("add" | "remove", death)`` in a process of its own, killed at that checkpoint."""
    (home / "in.fa").write_text(">a\nACGTACGTACGT\n")

    def taking(name: str, death: str) -> int:
        command = [sys.executable, "-c", STEP, home, blast, death, name]
        return subprocess.run(command, check=False).returncode

    return taking


@pytest.fixture
def survivor(home: Path, blast: Path) -> Databases:
    store = SqlSearchStore(home / "blastyard.db")
    files = DatabaseFiles(Toolchain(str(blast)))
    return Databases(store, files, home / "databases", lambda: NOW)


@pytest.mark.parametrize(
    ("name", "death", "registered"),
    [
        ("add", "before:get_database:genes", False),
        ("add", "before:add_database:genes", False),
        ("add", "after:add_database:genes", True),
        ("remove", "before:remove_database:genes", True),
        ("remove", "after:remove_database:genes", False),
    ],
)
def test_a_kill_at_any_write_leaves_a_whole_database_or_none(
    step: Callable[[str, str], int],
    survivor: Databases,
    home: Path,
    name: str,
    death: str,
    registered: bool,
) -> None:
    if name == "remove":
        assert step("add", "never") == 0

    assert step(name, death) == -9

    assert [database.name for database in survivor.list()] == (["genes"] if registered else [])
    survivor.add_fasta("more", home / "in.fa", SequenceType.NUCL)
    left = {path.name for path in (home / "databases").iterdir()}
    assert left == ({"genes", "more"} if registered else {"more"})
    if registered:
        assert survivor.ready("genes").sequences == 1
        assert survivor.check("genes", deep=True) == []
    else:
        survivor.add_fasta("genes", home / "in.fa", SequenceType.NUCL)


@pytest.mark.parametrize(
    ("fault", "registered"), [(Fault.LOST_REQUEST, False), (Fault.LOST_ANSWER, True)]
)
@pytest.mark.parametrize("operation", ["add_database", "remove_database"])
def test_a_lost_answer_of_the_store_loses_no_files_that_are_registered(
    home: Path, blast: Path, operation: str, fault: Fault, registered: bool
) -> None:
    (home / "in.fa").write_text(">a\nACGTACGTACGT\n")
    faults = {operation: fault}
    inner = MemorySearchStore(lambda: NOW)
    store = FaultySearchStore(inner, lambda called, _: faults.pop(called, Fault.OK))
    files = DatabaseFiles(Toolchain(str(blast)))
    databases = Databases(store, files, home / "databases", lambda: NOW)

    def add_and_remove() -> None:
        databases.add_fasta("genes", home / "in.fa", SequenceType.NUCL)
        databases.remove("genes")

    with pytest.raises(Unavailable):
        add_and_remove()
    databases.add_fasta("more", home / "in.fa", SequenceType.NUCL)

    there = registered if operation == "add_database" else not registered
    names = {"genes", "more"} if there else {"more"}
    assert {database.name for database in databases.list()} == names
    assert {path.name for path in (home / "databases").iterdir()} == names
    for name in names:
        assert databases.ready(name)
