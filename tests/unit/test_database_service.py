"""The registry of databases, with real BLAST+ and a store in memory."""

from __future__ import annotations

import gzip
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import pytest

from blastyard.domain.errors import CallerMistake, Conflict, Misconfigured, NotFound
from blastyard.domain.job import State
from blastyard.domain.program import Program, SequenceType
from blastyard.domain.search import Database, DatabaseState, Event, Query, Request, Search
from blastyard.engine.database import DatabaseFiles
from blastyard.engine.toolchain import Toolchain
from blastyard.service.databases import Databases, require_suitable
from blastyard.store.memory import MemorySearchStore


class SampleDatabases(Protocol):
    """The fixture of that name."""

    nucl: Path
    prot: Path


NOW = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.fixture
def store() -> MemorySearchStore:
    return MemorySearchStore(lambda: NOW)


@pytest.fixture
def files(blast: Path) -> DatabaseFiles:
    return DatabaseFiles(Toolchain(str(blast)))


@pytest.fixture
def databases(store: MemorySearchStore, files: DatabaseFiles, home: Path) -> Databases:
    return Databases(store, files, home / "databases", lambda: NOW)


@pytest.fixture
def fasta(tmp_path: Path) -> Path:
    chance = random.Random(7)
    path = tmp_path / "genes.fa"
    path.write_text(
        "".join(f">gene{i} number {i}\n{''.join(chance.choices('ACGT', k=90))}\n" for i in range(9))
    )
    return path


def database(kind: str) -> Database:
    return Database("sample", kind, "/data/sample", "", 1, 1, built=False, created_at=NOW)


def test_a_database_built_from_fasta_is_listed_with_its_counts(
    databases: Databases, fasta: Path, home: Path
) -> None:
    added, notices = databases.add_fasta("genes", fasta, SequenceType.NUCL, "My genes")

    assert (added.title, added.sequences, added.letters) == ("My genes", 9, 810)
    assert added.built
    assert added.created_at == NOW
    assert added.blast_version.endswith("+")
    assert notices == ()
    assert list(databases.list()) == [added]
    assert databases.get("genes") == databases.ready("genes") == added
    names = {path.name for path in (home / "databases" / "genes").iterdir()}
    assert names == set(added.files)


def test_a_built_database_finds_its_sequences_by_id(
    databases: Databases, fasta: Path, blast: Path
) -> None:
    added, _ = databases.add_fasta("genes", fasta, SequenceType.NUCL)

    done = subprocess.run(
        [blast / "blastdbcmd", "-db", added.path, "-entry", "gene3", "-outfmt", "%a %l"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "gene3 90\n"


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".hidden", "-x", "ä", "a b", "x" * 64, "a\n"])
def test_a_name_that_cannot_be_a_file_name_is_refused_with_what_is_allowed(
    databases: Databases, fasta: Path, name: str
) -> None:
    with pytest.raises(CallerMistake, match="cannot be the name") as caught:
        databases.add_fasta(name, fasta, SequenceType.NUCL)

    assert "1 to 63 letters" in caught.value.next_step


@pytest.mark.parametrize("name", ["n", "nt-2024.v1_b", "0", "x" * 63])
def test_names_of_letters_digits_dots_underscores_and_hyphens_are_taken(
    databases: Databases, fasta: Path, name: str
) -> None:
    added, _ = databases.add_fasta(name, fasta, SequenceType.NUCL)

    assert databases.ready(name) == added


def test_a_taken_name_is_refused_before_any_work(databases: Databases, fasta: Path) -> None:
    databases.add_fasta("genes", fasta, SequenceType.NUCL)

    with pytest.raises(Conflict) as caught:
        databases.add_fasta("genes", fasta.with_name("absent.fa"), SequenceType.NUCL)

    assert caught.value.code == "database_exists"


def test_a_failed_build_leaves_nothing_behind(
    databases: Databases, fasta: Path, home: Path
) -> None:
    fasta.write_text(">a\nACGT1ACGT\n")

    with pytest.raises(CallerMistake, match="line 2, column 5"):
        databases.add_fasta("genes", fasta, SequenceType.NUCL)

    assert list((home / "databases").iterdir()) == []
    assert list(databases.list()) == []


def test_a_data_directory_that_cannot_be_written_is_named(
    databases: Databases, fasta: Path, home: Path
) -> None:
    (home / "databases").write_text("a file in the way")

    with pytest.raises(Misconfigured, match=r"cannot be kept in .*: File exists") as caught:
        databases.add_fasta("genes", fasta, SequenceType.NUCL)

    assert caught.value.code == "permission_denied"


def test_removing_a_built_database_removes_its_files(
    databases: Databases, fasta: Path, home: Path
) -> None:
    databases.add_fasta("genes", fasta, SequenceType.NUCL)

    databases.remove("genes")

    assert list((home / "databases").iterdir()) == []
    with pytest.raises(NotFound):
        databases.get("genes")
    databases.add_fasta("genes", fasta, SequenceType.NUCL)


def test_removing_a_database_that_stood_elsewhere_leaves_its_files(
    databases: Databases, fasta: Path
) -> None:
    built, _ = databases.add_fasta("genes", fasta, SequenceType.NUCL)
    databases.add_path("again", Path(built.path))

    databases.remove("again")

    assert databases.check("genes") == []


def test_a_database_by_its_path_is_used_where_it_stands(
    databases: Databases, sample_databases: SampleDatabases
) -> None:
    prefix = sample_databases.prot

    added = databases.add_path("prots", prefix)

    assert (added.type, added.path, added.built) == ("prot", str(prefix), False)
    assert added.title == "sample prot"


def test_a_missing_or_changed_file_is_named_before_a_search_is_queued(
    databases: Databases, fasta: Path
) -> None:
    added, _ = databases.add_fasta("genes", fasta, SequenceType.NUCL)
    sequences = Path(f"{added.path}.nsq")
    whole = sequences.read_bytes()

    sequences.write_bytes(whole[:-10])
    with pytest.raises(CallerMistake, match=r"genes\.nsq is shorter") as shorter:
        databases.ready("genes")
    sequences.unlink()
    with pytest.raises(CallerMistake, match=r"genes\.nsq cannot be read: No such file"):
        databases.ready("genes")
    sequences.write_bytes(whole)

    assert shorter.value.code == "database_broken"
    assert databases.ready("genes") == added


def test_a_check_marks_the_database_broken_and_a_later_one_ready_again(
    databases: Databases, fasta: Path
) -> None:
    added, _ = databases.add_fasta("genes", fasta, SequenceType.NUCL)
    headers = Path(f"{added.path}.nhr")
    whole = headers.read_bytes()
    headers.write_bytes(whole[:100] + bytes(200) + whole[300:])

    assert databases.check("genes") == []
    [problem, *_] = databases.check("genes", deep=True)
    with pytest.raises(CallerMistake, match="last check found it damaged"):
        databases.ready("genes")
    headers.write_bytes(whole)

    assert "blastdbcheck" in problem.message
    assert databases.check("genes") == []
    assert databases.get("genes").state is DatabaseState.READY


def test_an_unknown_database_is_said_to_be_unknown(databases: Databases) -> None:
    with pytest.raises(NotFound) as caught:
        databases.ready("nt")

    assert caught.value.code == "database_unknown"


def test_a_database_being_copied_is_ready_only_once_it_is_whole(
    databases: Databases, sample_databases: SampleDatabases, tmp_path: Path
) -> None:
    source = sample_databases.nucl
    prefix = tmp_path / source.name
    sources = sorted(source.parent.glob(f"{source.name}.n*"))

    added = databases.add_path("arriving", prefix, SequenceType.NUCL, copying=True)
    states = [databases.ready("arriving").state]
    for path in sources:
        whole = path.read_bytes()
        target = tmp_path / path.name
        target.write_bytes(whole[: len(whole) // 2])
        states.append(databases.refresh("arriving").state)
        target.write_bytes(whole)
    states.append(databases.refresh("arriving").state)
    done = databases.refresh("arriving")

    assert added.state is DatabaseState.COPYING
    assert set(states) == {DatabaseState.COPYING}
    assert done.state is DatabaseState.READY
    assert done.sequences > 0
    assert databases.ready("arriving") == done


def test_a_database_whose_files_tell_nothing_yet_needs_a_type(
    databases: Databases, tmp_path: Path
) -> None:
    with pytest.raises(CallerMistake, match="do not tell yet"):
        databases.add_path("arriving", tmp_path / "nt", copying=True)


def test_gzipped_fasta_is_inflated_and_said(databases: Databases, fasta: Path) -> None:
    packed = fasta.with_suffix(".fa.gz")
    with gzip.open(packed, "wb") as file:
        file.write(fasta.read_bytes())

    added, notices = databases.add_fasta("genes", packed, SequenceType.NUCL)

    assert added.letters == 810
    assert [notice for notice in notices if "gzip" in notice]


def test_the_data_directory_may_have_a_blank_in_its_path(
    store: MemorySearchStore, files: DatabaseFiles, tmp_path: Path, fasta: Path
) -> None:
    databases = Databases(store, files, tmp_path / "my data" / "databases", lambda: NOW)

    databases.add_fasta("genes", fasta, SequenceType.NUCL)

    assert databases.ready("genes").sequences == 9
    assert databases.check("genes", deep=True) == []


def test_what_a_dead_process_left_is_cleared_by_the_next_add(
    databases: Databases, fasta: Path, home: Path
) -> None:
    databases.add_fasta("genes", fasta, SequenceType.NUCL)
    root = home / "databases"
    shutil.copytree(root / "genes", root / "orphan")
    (root / "orphan" / ".blastyard-unregistered").touch()
    (root / ".building-dead").mkdir()
    (root / "somebody-elses").mkdir()

    databases.add_fasta("orphan", fasta, SequenceType.NUCL)

    assert sorted(path.name for path in root.iterdir()) == ["genes", "orphan", "somebody-elses"]
    assert databases.check("genes") == databases.check("orphan") == []


def test_a_database_registered_just_before_a_crash_is_kept(
    databases: Databases, fasta: Path, home: Path
) -> None:
    databases.add_fasta("genes", fasta, SequenceType.NUCL)
    mark = home / "databases" / "genes" / ".blastyard-unregistered"
    mark.touch()

    databases.add_fasta("more", fasta, SequenceType.NUCL)

    assert databases.ready("genes")
    assert not mark.exists()


def fits(program: Program, kind: str) -> bool:
    try:
        require_suitable(program, database(kind))
    except CallerMistake as mistake:
        return mistake.code != "database_wrong_type"
    return True


def test_each_program_takes_the_databases_it_can_read() -> None:
    pairs = {(program.value, kind) for program in Program for kind in SequenceType}

    suitable = {(program, kind) for program, kind in pairs if fits(Program(program), kind)}

    assert suitable == {
        ("blastn", "nucl"),
        ("blastp", "prot"),
        ("blastx", "prot"),
        ("tblastn", "nucl"),
        ("tblastx", "nucl"),
    }


def test_a_wrong_database_is_answered_with_the_programs_that_suit_it() -> None:
    with pytest.raises(CallerMistake) as caught:
        require_suitable(Program.BLASTN, replace(database("prot"), name="sample-prot"))

    assert caught.value.message == (
        "blastn needs a nucleotide database; 'sample-prot' is a protein database."
    )
    assert caught.value.next_step == (
        "Use blastx (nucleotide query) or blastp (protein query), or choose a nucleotide database."
    )


def test_a_database_that_searches_use_stays(
    store: MemorySearchStore,
    databases: Databases,
    fasta: Path,
    queued: Callable[[MemorySearchStore, str], str],
) -> None:
    databases.add_fasta("genes", fasta, SequenceType.NUCL)
    queued(store, "genes")

    with pytest.raises(Conflict) as caught:
        databases.remove("genes")

    assert caught.value.code == "database_in_use"
    assert databases.check("genes", deep=True) == []
    databases.add_fasta("more", fasta, SequenceType.NUCL)
    assert databases.ready("genes")


@pytest.fixture
def queued() -> Callable[[MemorySearchStore, str], str]:
    def queue(store: MemorySearchStore, name: str) -> str:
        request = Request(Program.BLASTN, name, (), "6", "ann")
        query = Query(1, 10, 10, 20, "0" * 64)
        search = Search("7d9c1b9e-3f8f-4c63-8f0e-4a1f2f8e1a11", request, query, 0, NOW)
        return store.add(search, Event(State.QUEUED)).id

    return queue
