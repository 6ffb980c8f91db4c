"""`doctor`: what it looks at, what it finds wrong, and that it says how to mend it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from command_stage import PATIENCE, Commands

from blastyard.engine.toolchain import Toolchain
from blastyard.service.doctor import Finding, Machine, Verdict, examine_machine

SUBMIT = ("submit", "-p", "blastn", "-d", "genomes", "-q", "query.fa")


def verdicts(commands: Commands) -> tuple[int, dict[str, Finding]]:
    """The exit code, and each check's finding."""
    done = commands("doctor", "--json")
    found = json.loads(done.stdout)["findings"]
    return done.returncode, {
        each["check"]: Finding(
            each["check"], Verdict(each["verdict"]), each["message"], each["next_step"]
        )
        for each in found
    }


def machine(root: Path, path: str, **other: int) -> Machine:
    """An installation to examine."""
    for folder in ("run", "searches"):
        (root / folder).mkdir()
    memory, ceiling = other.get("memory_bytes", 1 << 30), other.get("ceiling", 1)
    return Machine(
        *(root, root / "blastyard.db", root / "run", root / "searches"),
        *(Toolchain(path), memory, ceiling),
    )


def examine(what: Machine) -> dict[str, Finding]:
    """Each check's finding."""
    return {finding.check: finding for finding in examine_machine(what)}


def test_a_sound_installation_passes_every_check(blastyard: Commands) -> None:
    code, found = verdicts(blastyard)

    broken = [each for each in found.values() if each.verdict is Verdict.BROKEN]
    assert (code, broken) == (0, [])
    assert set(found) == {
        *("BLAST+", "data directory", "file system", "disk space", "SQLite", "sockets", "memory"),
        *("sample search", "ledger", "processes", "databases", "searches", "leftovers"),
    }
    assert "fine     sample search" in blastyard("doctor").stdout


def test_missing_blast_is_broken_and_the_package_is_named(blastyard: Commands) -> None:
    code, found = verdicts(blastyard.with_environment(PATH="/nonexistent"))

    assert code == 7
    assert found["BLAST+"].verdict is Verdict.BROKEN
    assert "ncbi-blast+" in found["BLAST+"].next_step
    assert found["sample search"].verdict is Verdict.BROKEN


def test_a_home_that_cannot_be_made_is_said(empty: Commands) -> None:
    (empty.folder / "file").touch()
    code, found = verdicts(empty.with_environment(BLASTYARD_HOME=str(empty.folder / "file" / "x")))

    assert (code, list(found)) == (10, ["data directory"])
    assert "BLASTYARD_HOME" in found["data directory"].next_step


def test_a_directory_open_to_everybody_is_a_warning(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    what = machine(tmp_path, environment["PATH"])
    tmp_path.chmod(0o777)

    found = examine(what)["data directory"]

    assert (found.verdict, "chmod o-w" in found.next_step) == (Verdict.WARNING, True)


def test_a_missing_folder_is_broken(tmp_path: Path, environment: dict[str, str]) -> None:
    what = machine(tmp_path, environment["PATH"])
    (tmp_path / "run").rmdir()

    found = examine(what)

    assert found["data directory"].verdict is Verdict.BROKEN
    assert "mkdir -p" in found["data directory"].next_step


def test_memory_that_is_not_there_or_too_little_is_a_warning(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    (tmp_path / "much").mkdir()
    (tmp_path / "little").mkdir()
    path = environment["PATH"]

    much = examine(machine(tmp_path / "much", path, memory_bytes=total, ceiling=2))
    little = examine(machine(tmp_path / "little", path, memory_bytes=1 << 20))

    assert much["memory"].verdict is Verdict.WARNING
    assert "more than there is" in much["memory"].message
    assert little["memory"].verdict is Verdict.WARNING
    assert little["sample search"].verdict is Verdict.BROKEN


def test_a_store_of_a_newer_blastyard_and_a_damaged_one_are_broken(
    blastyard: Commands, environment: dict[str, str]
) -> None:
    database = Path(environment["BLASTYARD_HOME"]) / "blastyard.db"
    with closing(sqlite3.connect(database)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("PRAGMA user_version = 9999")
        connection.commit()
    newer_code, newer = verdicts(blastyard)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.commit()
    size = database.stat().st_size
    with database.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    damaged_code, damaged = verdicts(blastyard)

    assert (newer_code, newer["SQLite"].verdict) == (10, Verdict.BROKEN)
    assert "9999" in newer["SQLite"].message
    assert (damaged_code, damaged["SQLite"].verdict) == (10, Verdict.BROKEN)


def test_a_damaged_database_is_broken_and_none_at_all_a_warning(
    empty: Commands, sample_fasta: Any
) -> None:
    none_code, none = verdicts(empty)
    added = empty.json("db", "add", "mine", sample_fasta.nucl, "--type", "nucl")
    Path(added["path"] + ".nsq").write_bytes(b"short")

    code, found = verdicts(empty)

    assert (none_code, none["databases"].verdict) == (0, Verdict.WARNING)
    assert "blastyard db add" in none["databases"].next_step
    assert (code, found["databases"].verdict) == (10, Verdict.BROKEN)
    assert "mine.nsq is shorter" in found["databases"].message
    assert "blastyard db check mine" in found["databases"].next_step


def test_orphans_leftovers_and_a_drained_queue_are_warnings(
    blastyard: Commands, environment: dict[str, str]
) -> None:
    assert blastyard(*SUBMIT).returncode == 0
    blastyard.json("gate", "ceiling", "0")
    stale = Path(environment["BLASTYARD_HOME"]) / "searches" / "nobody"
    stale.mkdir()
    os.utime(stale, (0, 0))

    code, found = verdicts(blastyard)

    assert code == 0
    assert found["searches"].verdict is Verdict.WARNING
    assert "blastyard serve" in found["searches"].next_step
    assert found["ledger"].message == "the ceiling is 0: nothing starts"
    assert found["leftovers"].next_step == f"rm -r {stale}"


def test_a_raised_ceiling_that_takes_more_memory_than_there_is_is_a_warning(
    blastyard: Commands,
) -> None:
    blastyard.json("gate", "ceiling", "50")

    _, found = verdicts(blastyard)

    assert found["memory"].verdict is Verdict.WARNING
    assert "each of 50 searches" in found["memory"].message


def test_the_running_service_is_named_with_its_address(
    blastyard: Commands, background: Callable[..., Any]
) -> None:
    service = background(blastyard, "serve", "--port", "0")
    address = service.stdout.readline().decode().split()[-1]

    _, found = verdicts(blastyard)

    assert address in found["processes"].message
    service.send_signal(signal.SIGTERM)
    assert service.wait(PATIENCE) == 0
