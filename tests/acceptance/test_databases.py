"""Databases as several processes of one data directory add them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from blastyard.domain.program import SequenceType
from blastyard.engine.database import DatabaseFiles, db_argument
from blastyard.engine.toolchain import Toolchain
from blastyard.service.databases import Databases
from blastyard.store.sql import SqlSearchStore

ADD = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from blastyard.domain.errors import CallerMistake
from blastyard.domain.program import SequenceType
from blastyard.engine.database import DatabaseFiles
from blastyard.engine.toolchain import Toolchain
from blastyard.service.databases import Databases
from blastyard.store.sql import SqlSearchStore
home, blast, fasta = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
store = SqlSearchStore(home / "blastyard.db")
files = DatabaseFiles(Toolchain(blast))
databases = Databases(store, files, home / "databases", lambda: datetime.now(UTC))
try:
    databases.add_fasta("genes", fasta, SequenceType.NUCL)
except CallerMistake as mistake:
    print(mistake.code)
else:
    print("added")
"""
PATIENCE = 30_000
"""Milliseconds until a test gives up waiting."""


@pytest.fixture
def databases(home: Path, blast: Path) -> Iterator[Databases]:
    store = SqlSearchStore(home / "blastyard.db")
    files = DatabaseFiles(Toolchain(str(blast)))
    yield Databases(store, files, home / "databases", lambda: datetime(2024, 1, 1, tzinfo=UTC))
    store.close()


@contextmanager
def adding(home: Path, blast: Path, fasta: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that adds a database, ended when the block is left."""
    command = [sys.executable, "-c", ADD, str(home), str(blast), str(fasta)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as adder:
        try:
            yield adder
        finally:
            adder.kill()


def child_of(process: subprocess.Popen[str]) -> int:
    """The one child of a process, as something that can be waited for."""
    [child] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return os.pidfd_open(int(child))


def has_ended(pidfd: int) -> bool:
    waiting = select.poll()
    waiting.register(pidfd, select.POLLIN)
    return bool(waiting.poll(PATIENCE))


def test_of_several_processes_adding_one_name_one_wins_and_the_others_leave_nothing(
    databases: Databases, home: Path, blast: Path
) -> None:
    pipes = [home / f"{number}.fa" for number in range(4)]
    for pipe in pipes:
        os.mkfifo(pipe)

    with ExitStack() as opened:
        adders = [opened.enter_context(adding(home, blast, pipe)) for pipe in pipes]
        # An opened pipe means that its process has found the name free and started makeblastdb.
        writers = [pipe.open("w") for pipe in pipes]
        for number, writer in enumerate(writers):
            writer.write(f">gene{number}\n{'ACGT' * 10 * (number + 1)}\n")
            writer.close()
        said = sorted(adder.communicate(timeout=60)[0].strip() for adder in adders)

    assert said == ["added", "database_exists", "database_exists", "database_exists"]
    assert [path.name for path in (home / "databases").iterdir()] == ["genes"]
    winner = databases.ready("genes")
    assert winner.letters in {40, 80, 120, 160}
    assert databases.check("genes", deep=True) == []


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_add_that_is_interrupted_registers_nothing_and_leaves_no_process(
    databases: Databases, home: Path, blast: Path, ending: signal.Signals
) -> None:
    pipe = home / "slow.fa"
    os.mkfifo(pipe)

    with adding(home, blast, pipe) as adder, pipe.open("wb", buffering=0) as writer:
        makeblastdb = child_of(adder)
        adder.send_signal(ending)
        # A signal between two reads is seen when the next one returns.
        with suppress(BrokenPipeError):
            writer.write(b">gene\n" + b"ACGT\n" * 500_000)
        assert adder.wait(timeout=60) != 0
        assert has_ended(makeblastdb)
        os.close(makeblastdb)

    assert list(databases.list()) == []
    left = list((home / "databases").iterdir())
    assert left == [] if ending == signal.SIGINT else len(left) == 1
    fasta = home / "genes.fa"
    fasta.write_text(">gene\nACGTACGTACGTACGT\n")
    databases.add_fasta("genes", fasta, SequenceType.NUCL)
    assert [path.name for path in (home / "databases").iterdir()] == ["genes"]


def test_a_database_being_built_is_not_taken_for_a_dead_ones_leavings(
    databases: Databases, home: Path, blast: Path
) -> None:
    pipe, other = home / "slow.fa", home / "other.fa"
    os.mkfifo(pipe)
    other.write_text(">other\nACGTACGTACGT\n")

    with adding(home, blast, pipe) as adder:
        with pipe.open("w") as writer:
            writer.write(">gene\n")
            databases.add_fasta("other", other, SequenceType.NUCL)
            writer.write("ACGTACGTACGT\n")
        said, _ = adder.communicate(timeout=60)

    assert said == "added\n"
    assert [database.name for database in databases.list()] == ["genes", "other"]


def test_a_registered_database_is_searched_by_blast(
    databases: Databases, home: Path, blast: Path
) -> None:
    fasta = home / "genes.fa"
    fasta.write_text(">gene1\nGATTACACATTAGGACCATTGACCAGTTTACGGACATTTAGGACC\n")

    added, _ = databases.add_fasta("genes", fasta, SequenceType.NUCL)
    command = [blast / "blastn", "-db", db_argument(added.path), "-query", fasta]
    done = subprocess.run(
        [*command, "-outfmt", "6 qseqid sseqid pident"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "gene1\tgene1\t100.000\n"
