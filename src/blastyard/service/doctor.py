"""Looking at an installation as a doctor would: each finding says how to mend what is wrong.

:func:`examine_machine` needs nothing that works; :func:`examine_yard` needs an open store. No
check changes anything that another process could notice, apart from one wake-up.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from blastyard import sqlite
from blastyard.admission.wakeup import Wakeup
from blastyard.domain.errors import BlastyardError
from blastyard.engine.guarded import Command, GuardedCommand, NotStarted
from blastyard.engine.toolchain import Command as Call
from blastyard.engine.toolchain import Toolchain

GB: Final = 1_000_000_000
MIB: Final = 1 << 20
PROGRAMS: Final = (
    *("blastn", "blastp", "blastx", "tblastn", "tblastx"),
    *("makeblastdb", "blastdbcmd", "blastdbcheck"),
)
_LEAST_FREE: Final = GB // 2
_LITTLE_FREE: Final = 5 * GB
_LITTLE_MEMORY: Final = 512 * MIB
_OLDEST_SQLITE: Final = (3, 35, 0)  # the first with RETURNING
_PATIENCE: Final = timedelta(seconds=60)
_SEQUENCE: Final = "ACGTTGCATGCCTAGGATCCGATTACAGGCTTAACCGTGATCAGGTCAAGTCCTGAATGCGT" * 2


class Verdict(StrEnum):
    """What a check came to."""

    FINE = "fine"
    WARNING = "warning"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was looked at, what was found, and how to mend it."""

    check: str
    verdict: Verdict
    message: str
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """What is examined: the folders of the data directory, and what a search may use."""

    root: Path
    database: Path
    run: Path
    searches: Path
    toolchain: Toolchain
    memory_bytes: int
    """Of one search."""
    ceiling: int


Check = Callable[[Machine], Finding]


def examine_machine(machine: Machine) -> Iterator[Finding]:
    """Everything below the store. A check that fails is a finding, never an exception."""
    checks: tuple[tuple[str, Check], ...] = (
        ("BLAST+", _blast),
        ("data directory", _directory),
        ("file system", _filesystem),
        ("disk space", _disk),
        ("SQLite", _sqlite),
        ("sockets", _sockets),
        ("memory", _memory),
        ("sample search", _sample_search),
    )
    for name, check in checks:
        yield found(name, lambda check=check: check(machine))  # type: ignore[misc]


def found(name: str, check: Callable[[], Finding]) -> Finding:
    """The check's finding; what it raises is one."""
    try:
        return check()
    except BlastyardError as error:
        return Finding(name, Verdict.BROKEN, error.message, error.next_step)
    except (OSError, sqlite3.Error) as error:
        step = "check the path, its permissions and the disk"
        return Finding(name, Verdict.BROKEN, f"{type(error).__name__}: {error}", step)


def fine(name: str, message: str) -> Finding:
    """Nothing to mend."""
    return Finding(name, Verdict.FINE, message)


def _blast(machine: Machine) -> Finding:
    version = machine.toolchain.version()
    folders = {machine.toolchain.program(name).parent for name in PROGRAMS}
    if len(folders) > 1:
        places = ", ".join(sorted(map(str, folders)))
        step = "put the bin folder of one BLAST+ first on the PATH"
        message = f"version {version}, but its programs come from several folders: {places}"
        return Finding("BLAST+", Verdict.WARNING, message, step)
    return fine("BLAST+", f"version {version} in {folders.pop()}")


def _directory(machine: Machine) -> Finding:
    name = "data directory"
    for path in (machine.root, machine.searches, machine.run):
        if not path.is_dir():
            step = f"mkdir -p {path}, or set BLASTYARD_HOME to another directory"
            return Finding(name, Verdict.BROKEN, f"{path} is not a directory", step)
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            step = f"give this account the right to write in {path}, or set BLASTYARD_HOME"
            return Finding(name, Verdict.BROKEN, f"this account may not write in {path}", step)
    if machine.root.stat().st_mode & 0o002:
        message = f"everybody on this machine may write in {machine.root}"
        step = f"chmod o-w {machine.root}; use a group for several accounts"
        return Finding(name, Verdict.WARNING, message, step)
    return fine(name, str(machine.root))


def _filesystem(machine: Machine) -> Finding:
    sqlite.check_place(machine.database)
    kind = sqlite.filesystem_type(machine.database, Path("/proc/self/mountinfo").read_text())
    return fine("file system", f"{kind or 'local'}, on this machine")


def _disk(machine: Machine) -> Finding:
    usage = shutil.disk_usage(machine.root)
    message = f"{usage.free / GB:,.1f} GB of {usage.total / GB:,.1f} GB are free"
    if usage.free >= _LITTLE_FREE:
        return fine("disk space", message)
    step = "free space there; `blastyard delete`, or set BLASTYARD_RETENTION_DAYS"
    verdict = Verdict.BROKEN if usage.free < _LEAST_FREE else Verdict.WARNING
    return Finding("disk space", verdict, message, step)


def _sqlite(machine: Machine) -> Finding:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        step = "use a Python built with SQLite 3.35 or newer"
        message = f"SQLite {sqlite3.sqlite_version} is too old"
        return Finding("SQLite", Verdict.BROKEN, message, step)
    if not machine.database.exists():
        return fine("SQLite", f"version {sqlite3.sqlite_version}; nothing is stored yet")
    sqlite.refuse_newer(sqlite.stored_version(machine.database), machine.database)
    with closing(sqlite.connect(machine.database)) as connection:
        [answer] = connection.execute("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        step = f"stop every blastyard and restore {machine.database} from a backup"
        return Finding("SQLite", Verdict.BROKEN, f"the file is damaged: {answer}", step)
    return fine("SQLite", f"version {sqlite3.sqlite_version}; the file is sound")


def _sockets(machine: Machine) -> Finding:
    wakeup = Wakeup(machine.run)
    with closing(wakeup.watch()) as watch:
        wakeup.notify()
        heard = watch.wait(2.0)
    if heard:
        return fine("sockets", "processes can wake each other")
    message = f"a wake-up sent in {machine.run} was not heard; searches start seconds late"
    step = "check that the directory is on a disk that takes Unix sockets"
    return Finding("sockets", Verdict.WARNING, message, step)


def _memory(machine: Machine) -> Finding:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    each, ceiling = machine.memory_bytes, max(1, machine.ceiling)
    message = f"{each / GB:,.1f} GB for each of {ceiling} searches, of {total / GB:,.1f} GB"
    if each * ceiling > total:
        step = "lower `blastyard gate ceiling` or BLASTYARD_SEARCH_MEMORY_MB"
        return Finding("memory", Verdict.WARNING, f"{message}: more than there is", step)
    if each < _LITTLE_MEMORY:
        step = "lower `blastyard gate ceiling`, or raise BLASTYARD_SEARCH_MEMORY_MB"
        return Finding("memory", Verdict.WARNING, f"{message}: little for BLAST+", step)
    return fine("memory", message)


def _sample_search(machine: Machine) -> Finding:
    """Build a database of one sequence, and find the sequence in it, as a search would."""
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=machine.root) as folder:
        query = Path(folder, "sample.fa")
        query.write_text(f">sample\n{_SEQUENCE}\n")
        built = machine.toolchain.run(
            Call(
                "makeblastdb",
                ("-in", str(query), "-dbtype", "nucl", "-out", f"{folder}/sample"),
                Path(folder),
                _PATIENCE,
            )
        )
        if built.exit_code != 0:
            return _failed(f"makeblastdb ended with {built.exit_code}: {built.err[-200:].strip()}")
        output = Path(folder, "hits.tsv")
        problem = _run_guarded(machine, query, output)
        hits = output.read_text() if output.exists() else ""
    if problem or not hits.startswith("sample\tsample\t100.000"):
        return _failed(problem or "blastn did not find a sequence in itself")
    return fine("sample search", "blastn under its guardian found what it had to")


def _run_guarded(machine: Machine, query: Path, output: Path) -> str:
    """Run the sample; what went wrong, or nothing."""
    folder = str(query.parent)
    argv = [str(machine.toolchain.program("blastn")), "-query", str(query)]
    argv += ["-db", f"{folder}/sample", "-outfmt", "6", "-out", str(output)]
    environment = {"PATH": machine.toolchain.path, "HOME": folder, "BLAST_USAGE_REPORT": "false"}
    command = Command(
        argv, environment, folder, memory_bytes=machine.memory_bytes, tail_bytes=4096, private=True
    )
    try:
        with GuardedCommand.start(command) as guarded:
            ending = guarded.wait(_PATIENCE.total_seconds())
    except NotStarted as error:
        return f"the guardian could not start blastn: {error}"
    if ending is None:
        return f"blastn did not end within {_PATIENCE.total_seconds():.0f} s"
    if ending.exit_code != 0:
        return f"blastn ended with {ending.shell_code}: {ending.stderr[-200:].strip()}"
    return ""


def _failed(message: str) -> Finding:
    step = "run it by hand to see more; reinstalling BLAST+ mends most of it"
    return Finding("sample search", Verdict.BROKEN, message, step)
