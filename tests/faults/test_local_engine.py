"""What real BLAST+ runs on this machine come to when something goes wrong."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, Protocol

import pytest

from blastyard.domain.errors import CallerMistake, Failure, Unavailable
from blastyard.domain.search import Run
from blastyard.engine.local import LocalEngine, LocalSettings
from blastyard.engine.port import Exited, Limits, Lost, Running, Task
from blastyard.engine.process import Process, boot_id
from blastyard.testing.engine import Ended

MEGABYTE = 1 << 20

Damage = Callable[[Path], None]

# An owner in a process of its own: starts one task and says where it runs, then waits.
OWNER = r"""
import json, sys
from dataclasses import asdict
from pathlib import Path
from blastyard.engine.local import LocalEngine
from blastyard.engine.port import Task
folder, query, *argv = sys.argv[1:]
task = Task("one", 1, tuple(argv), Path(query), Path(folder), "tsv")
print(json.dumps(asdict(LocalEngine().start(task, None, lambda: None))), flush=True)
sys.stdin.read()
"""


class Databases(Protocol):
    """The prefixes of the sample databases."""

    nucl: Path
    prot: Path


class Fasta(Protocol):
    """The sample queries."""

    nucl_query: Path
    prot_query: Path


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    engine = LocalEngine()
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def crowd(blast: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of a database whose 1,500 records are nearly alike: searches of it grow large.

    Beside it, ``few.fa`` holds 5 queries like the records, and ``many.fa`` 200.
    """
    folder, chance = tmp_path_factory.mktemp("crowd"), random.Random(7)
    ancestor = "".join(chance.choices("ACGT", k=1000))

    def records(count: int) -> str:
        return "".join(
            f">r{number}\n{position[:500]}{chance.choice('ACGT')}{position[501:]}\n"
            for number, position in enumerate([ancestor] * count)
        )

    for name, count in (("db", 1500), ("few", 5), ("many", 200)):
        (folder / f"{name}.fa").write_text(records(count))
    subprocess.run(
        [blast / "makeblastdb", "-in", "db.fa", "-dbtype", "nucl", "-out", "db"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder / "db"


@pytest.fixture
def nucl_task(
    blast: Path, sample_databases: Databases, sample_fasta: Fasta, tmp_path: Path
) -> Task:
    argv = (str(blast / "blastn"), "-db", str(sample_databases.nucl), "-outfmt", "6")
    return Task("one", 1, argv, sample_fasta.nucl_query, tmp_path / "one", "tsv")


@pytest.fixture
def prot_task(
    blast: Path, sample_databases: Databases, sample_fasta: Fasta, tmp_path: Path
) -> Task:
    argv = (str(blast / "blastp"), "-db", str(sample_databases.prot), "-outfmt", "6")
    return Task("one", 1, argv, sample_fasta.prot_query, tmp_path / "one", "tsv")


@pytest.fixture
def crowd_task(blast: Path, crowd: Path, tmp_path: Path) -> Task:
    """Needs more than 200 MB and several seconds."""
    argv = (str(blast / "blastn"), "-db", str(crowd), "-max_target_seqs", "1500", "-outfmt", "6")
    return Task("one", 1, argv, crowd.with_name("many.fa"), tmp_path / "one", "tsv")


def run(engine: LocalEngine, task: Task) -> tuple[Exited, Run]:
    ended = Ended()
    ref = engine.start(task, None, ended)
    ended.wait()
    state = engine.poll(task, ref)
    assert isinstance(state, Exited)
    return state, ref


def failure(engine: LocalEngine, task: Task) -> Failure:
    """The failure of a run that fails; nothing of it can be collected or seen."""
    state, ref = run(engine, task)
    assert state.failure is not None
    assert state.failure.message
    assert state.failure.next_step
    with pytest.raises(CallerMistake):
        engine.collect(task, ref)
    assert not (task.directory / f"result.{task.extension}").exists()
    return state.failure


def script(folder: Path, text: str) -> str:
    """The path of a program that acts in BLAST+'s place; ``$out`` is its output file."""
    path = folder / "program"
    head = 'while [ $# -gt 0 ]; do [ "$1" = -out ] && out=$2; shift; done\n'
    path.write_text(f"#!/bin/sh\n{head}{text}\n")
    path.chmod(0o755)
    return str(path)


def _with_damage(task: Task, folder: Path, extension: str, damage: Damage) -> tuple[str, ...]:
    """The task's arguments, with a damaged copy of its database."""
    whole, damaged = Path(task.argv[2]), folder / "damaged"
    damaged.mkdir()
    for path in whole.parent.glob(f"{whole.name}.*"):
        shutil.copy(path, damaged)
    damage(damaged / f"{whole.name}.{extension}")
    return (*task.argv[:2], str(damaged / whole.name), *task.argv[3:])


def writing(engine: LocalEngine, task: Task, ref: Run) -> bool:
    state = engine.poll(task, ref)
    return isinstance(state, Running) and state.output_bytes > 0


def test_a_run_gives_the_bytes_of_bare_blast(engine: LocalEngine, nucl_task: Task) -> None:
    state, ref = run(engine, nucl_task)
    bare = subprocess.run(
        [*nucl_task.argv, "-query", nucl_task.query], check=True, capture_output=True
    ).stdout

    assert state.failure is None
    assert state.cpu_seconds > 0
    assert state.peak_memory_bytes > MEGABYTE
    assert engine.collect(nucl_task, ref).path.read_bytes() == bare
    assert list((nucl_task.directory / "attempt-1" / "work").iterdir()) == []


def test_a_command_sees_an_empty_folder_and_a_small_environment(
    engine: LocalEngine, nucl_task: Task, tmp_path: Path
) -> None:
    program = script(tmp_path, 'exec > "$out"; ls -A; nice; env')
    task = replace(nucl_task, argv=(program, "-outfmt", "6"))
    _, ref = run(engine, task)

    nice, *lines = engine.collect(task, ref).path.read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines)
    work = str(task.directory / "attempt-1" / "work")
    assert int(nice) == min(19, os.nice(0) + LocalSettings().nice)
    assert variables.pop("HOME") == variables.pop("NCBI") == work
    assert variables.pop("BLAST_USAGE_REPORT") == "false"
    assert set(variables) - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        "PATH", "LC_ALL", "NCBI_CONFIG__BLAST__DATA_LOADERS", "BLASTYARD_GUARDIAN",
    }  # fmt: skip


def test_an_accession_is_not_fetched_from_ncbi(
    engine: LocalEngine, nucl_task: Task, tmp_path: Path
) -> None:
    query = tmp_path / "accession"
    query.write_text("NM_000546\n")

    found = failure(engine, replace(nucl_task, query=query))
    assert found.code == "blast_failed"
    assert "plausible data" in found.message


def test_a_killed_attempt_shows_nothing_and_its_retry_publishes_the_whole(
    engine: LocalEngine, nucl_task: Task, tmp_path: Path
) -> None:
    """Fault R4."""
    hold = tmp_path / "hold"
    os.mkfifo(hold)
    program = script(tmp_path, f'echo partial > "$out"; echo > "{hold}"; exec sleep 1000')
    first = replace(nucl_task, argv=(program, "-outfmt", "6"))
    ended = Ended()
    ref = engine.start(first, None, ended)
    hold.read_text()
    assert writing(engine, first, ref)
    os.kill(ref.command_pid, signal.SIGKILL)
    ended.wait()

    state = engine.poll(first, ref)
    assert isinstance(state, Exited)
    assert state.failure is not None
    assert [path.name for path in first.directory.iterdir()] == ["attempt-1"]

    second = replace(nucl_task, attempt=2)
    _, ref = run(engine, second)
    assert "partial" not in engine.collect(second, ref).path.read_text()


def test_a_later_attempt_without_output_is_not_given_the_result_of_an_earlier(
    engine: LocalEngine, nucl_task: Task, tmp_path: Path
) -> None:
    """Fault R4."""
    _, ref = run(engine, nucl_task)
    engine.collect(nucl_task, ref)
    second = replace(nucl_task, attempt=2, argv=(script(tmp_path, "true"), "-outfmt", "6"))
    state, ref = run(engine, second)

    assert state.failure is not None
    assert state.failure.code == "no_output"
    with pytest.raises(CallerMistake):
        engine.collect(second, ref)


def test_an_interrupted_publication_is_completed_when_asked_again(
    engine: LocalEngine, nucl_task: Task
) -> None:
    """Fault R4: the process died between the note of what it publishes and the renaming."""
    _, ref = run(engine, nucl_task)
    first = engine.collect(nucl_task, ref)
    first.path.replace(nucl_task.directory / "attempt-1" / "output")

    other = LocalEngine()
    assert other.collect(nucl_task, ref) == first
    assert first.path.stat().st_size == first.size
    other.close()


def test_a_killed_owner_leaves_no_blast_and_no_result(
    engine: LocalEngine, nucl_task: Task, tmp_path: Path
) -> None:
    """Faults A7, R4 and R11."""
    program = script(tmp_path, 'echo partial > "$out"; setsid sleep 1000 & exec sleep 1000')
    source = Path(__file__).parents[2] / "src"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, nucl_task.directory, nucl_task.query, program],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PYTHONPATH": str(source)},
    )  # fmt: skip
    assert owner.stdout is not None
    ref = Run(**json.loads(owner.stdout.readline()))
    assert isinstance(engine.poll(nucl_task, ref), Running)
    owner.kill()

    assert Process(ref.guardian_pid, ref.guardian_started).wait_gone(20)
    assert not Process(ref.command_pid, ref.command_started).is_alive()
    assert isinstance(engine.poll(nucl_task, ref), Lost)
    with pytest.raises(CallerMistake):
        engine.collect(nucl_task, ref)
    owner.communicate()


def test_what_a_killed_guardian_left_is_ended_by_who_looks_next(
    engine: LocalEngine, nucl_task: Task, tmp_path: Path
) -> None:
    news = tmp_path / "news"
    os.mkfifo(news)
    inner = f"echo $$ > {news}; exec sleep 1000"
    program = script(tmp_path, f"setsid sh -c '{inner}' & exec sleep 1000")
    task = replace(nucl_task, argv=(program,))
    ref = engine.start(task, None, Ended())
    runaway = Process.find(int(news.read_text()))
    assert runaway is not None
    other = LocalEngine()
    os.kill(ref.guardian_pid, signal.SIGKILL)
    while isinstance(other.poll(task, ref), Running):
        runaway.wait_gone(0.1)

    assert not runaway.is_alive()
    assert isinstance(other.poll(task, ref), Lost)
    other.close()


def test_a_run_of_another_boot_is_lost(engine: LocalEngine, nucl_task: Task) -> None:
    _, ref = run(engine, nucl_task)
    before = replace(ref, boot_id="00000000-0000-0000-0000-000000000000")

    assert isinstance(engine.poll(nucl_task, before), Lost)
    engine.cancel(before)


def test_a_process_that_got_the_number_of_an_old_run_is_left_alone(
    engine: LocalEngine, nucl_task: Task
) -> None:
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        process = Process.find(stranger.pid)
        assert process is not None
        old = process.started - 1
        ref = Run(boot_id(), stranger.pid, old, stranger.pid, old, 1)

        assert isinstance(engine.poll(nucl_task, ref), Lost)
        engine.cancel(ref)
        assert process.is_alive()
        stranger.kill()


def test_blast_killed_from_outside_is_said_with_its_memory(
    engine: LocalEngine, crowd_task: Task
) -> None:
    """Fault R5."""
    ended = Ended()
    ref = engine.start(crowd_task, None, ended)
    os.kill(ref.command_pid, signal.SIGKILL)
    ended.wait()

    state = engine.poll(crowd_task, ref)
    assert isinstance(state, Exited)
    assert state.exit_code == 137
    assert state.failure is not None
    assert state.failure.code == "killed"
    assert " MB of memory, the machine has " in state.failure.message
    assert "GB" in state.failure.message


@pytest.mark.parametrize("megabytes", [8, 60, 100])
def test_a_memory_limit_is_recognised_however_blast_meets_it(
    engine: LocalEngine, crowd_task: Task, megabytes: int
) -> None:
    """Fault R5."""
    found = failure(engine, replace(crowd_task, limits=Limits(memory_bytes=megabytes * MEGABYTE)))
    assert found.code == "memory_limit"
    assert f"the limit is {megabytes}.0 MB" in found.message


def test_a_memory_limit_that_looks_like_a_damaged_database_is_told_apart(
    engine: LocalEngine, prot_task: Task
) -> None:
    """Fault R5: a protein search without memory for its second thread meets a null pointer."""
    tight = replace(prot_task, limits=Limits(memory_bytes=24 * MEGABYTE), threads=2)
    roomy = replace(prot_task, limits=Limits(memory_bytes=2048 * MEGABYTE), threads=2, attempt=2)

    assert failure(engine, tight).code == "memory_limit"
    assert run(engine, roomy)[0].failure is None


def test_a_damaged_database_is_not_taken_for_a_lack_of_memory(
    engine: LocalEngine, prot_task: Task, tmp_path: Path
) -> None:
    """Fault R5."""
    argv = _with_damage(prot_task, tmp_path, "psq", Path.unlink)
    task = replace(prot_task, argv=argv, limits=Limits(memory_bytes=2048 * MEGABYTE))

    assert failure(engine, task).code == "database_broken"


def test_a_limit_on_cpu_time_is_named(engine: LocalEngine, crowd_task: Task) -> None:
    """Fault R5."""
    found = failure(engine, replace(crowd_task, limits=Limits(cpu_seconds=1)))

    assert found.code == "cpu_limit"
    assert "the limit is 1 s" in found.message


def test_a_limit_on_the_output_is_named(engine: LocalEngine, crowd_task: Task) -> None:
    """Fault R5."""
    task = replace(
        crowd_task,
        query=crowd_task.query.with_name("few.fa"),
        limits=Limits(output_bytes=10_000),
    )
    found = failure(engine, task)

    assert found.code == "output_limit"
    assert "9.8 kB" in found.message


@pytest.fixture
def small_disk(tmp_path: Path, missing: Callable[[str], NoReturn]) -> Iterator[Path]:
    """A folder on a file system of 200 kB and 60 files."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k,nr_inodes=60", "tmpfs", folder], check=False
    )
    if mounted.returncode != 0:
        missing("the right to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("outfmt", ["0", "5", "6", "7", "10", "15"])
def test_a_full_disk_is_named_in_every_format(
    engine: LocalEngine, crowd_task: Task, small_disk: Path, outfmt: str
) -> None:
    """Fault R5."""
    task = replace(
        crowd_task,
        argv=(*crowd_task.argv[:-1], outfmt),
        query=crowd_task.query.with_name("few.fa"),
        directory=small_disk / "one",
    )
    found = failure(engine, task)

    assert found.code == "disk_full"
    assert "of 200.0 kB are free" in found.message


def test_a_disk_that_is_full_before_the_start_is_named(
    engine: LocalEngine, nucl_task: Task, small_disk: Path
) -> None:
    """Fault R5."""
    with suppress(OSError):
        for number in range(1000):
            (small_disk / f"{number}").touch()
    with pytest.raises(Unavailable) as caught:
        engine.start(replace(nucl_task, directory=small_disk / "one"), None, Ended())

    assert caught.value.code == "disk_full"


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


@pytest.mark.parametrize(
    ("extension", "damage", "codes"),
    [
        ("psq", Path.unlink, {"database_broken"}),
        ("pin", Path.unlink, {"database_broken"}),
        ("phr", Path.unlink, {"database_broken"}),
        ("phr", halve, {"database_broken", "blast_crashed"}),
        ("pdb", halve, {"database_broken", "blast_crashed"}),
        ("psq", empty, {"blast_crashed"}),
        ("pin", empty, {"blast_crashed"}),
    ],
)
def test_a_damaged_database_is_named_and_how_to_check_it(
    engine: LocalEngine, prot_task: Task, tmp_path: Path, extension: str, damage: Damage,
    codes: set[str],
) -> None:  # fmt: skip
    """Fault R5."""
    argv = _with_damage(prot_task, tmp_path, extension, damage)
    found = failure(engine, replace(prot_task, argv=argv))

    assert found.code in codes
    assert "blastyard db check" in found.next_step
    assert "blastdbcheck" in found.next_step


def test_a_database_that_is_not_there_is_named(engine: LocalEngine, nucl_task: Task) -> None:
    """Fault R5."""
    argv = (*nucl_task.argv[:2], "/nowhere/db", *nucl_task.argv[3:])
    found = failure(engine, replace(nucl_task, argv=argv))

    assert found.code == "database_broken"
    assert "/nowhere/db" in found.message


def test_an_option_that_blast_refuses_is_said_in_its_words(
    engine: LocalEngine, nucl_task: Task
) -> None:
    """Fault R5."""
    found = failure(engine, replace(nucl_task, argv=(*nucl_task.argv, "-word_size", "2")))

    assert found.code == "blast_failed"
    assert "exit code 1" in found.message
    assert "word_size" in found.message


@pytest.mark.parametrize(
    ("text", "outfmt", "code"),
    [
        (': > "$out"', "5", "no_output"),
        ("true", "6", "no_output"),
        ("kill -SEGV $$", "6", "blast_crashed"),
        ("kill -TERM $$", "6", "killed"),
        ("echo terminate called after std::bad_alloc >&2; kill -ABRT $$", "6", "memory_limit"),
        ("exit 4", "6", "memory_limit"),
        ("echo x: error while loading shared libraries: y >&2; exit 127", "6", "blast_missing"),
        ("exit 99", "6", "blast_failed"),
    ],
)
def test_rare_ends_have_names_too(
    engine: LocalEngine, nucl_task: Task, tmp_path: Path, text: str, outfmt: str, code: str
) -> None:  # fmt: skip
    """Fault R5: stand-ins for what real BLAST+ does not do on demand."""
    task = replace(nucl_task, argv=(script(tmp_path, text), "-outfmt", outfmt))

    assert failure(engine, task).code == code


def test_no_hits_is_not_no_output(engine: LocalEngine, nucl_task: Task, tmp_path: Path) -> None:
    query = tmp_path / "random.fa"
    query.write_text(">random\n" + "".join(random.Random(3).choices("ACGT", k=60)) + "\n")
    task = replace(nucl_task, query=query)
    state, ref = run(engine, task)

    assert state.failure is None
    assert engine.collect(task, ref).size == 0


def test_a_callback_that_fails_does_not_silence_the_next(
    engine: LocalEngine, nucl_task: Task, caplog: pytest.LogCaptureFixture
) -> None:
    ended = Ended()

    def fail() -> None:
        ended()
        raise RuntimeError("this callback fails")

    engine.start(nucl_task, None, fail)
    ended.wait()
    run(engine, replace(nucl_task, search_id="two", directory=nucl_task.directory / "two"))

    assert "a callback for the end of a command failed" in caplog.text
