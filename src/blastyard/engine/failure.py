"""Why a BLAST+ command failed, in words, from how it ended.

The signs were provoked on BLAST+ 2.12 (``tests/faults/test_local_engine.py`` provokes them on the
installed version): a private-memory limit shows as exit 3 with "Unknown error code -1", as a null
pointer, or as a segmentation fault; a damaged database as a null pointer, SIGSEGV or SIGBUS; a
full disk as exit 6, or as an uncaught ``__ios_failure`` and SIGABRT.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from blastyard.domain.errors import Failure
from blastyard.engine.command import Ending
from blastyard.engine.port import Limits, Task

_WRITE_SIGNS = ("BLAST failed to write output", "__ios_failure", "iostream error")
_WRITE_EXIT = 6
_MEMORY_SIGNS = (
    "Unknown error code -1",
    "bad_alloc",
    "ut of memory",
    "annot allocate memory",
    "failed to map segment",
)
_MEMORY_EXIT = 4
_DATABASE_SIGNS = ("eNullPtr", "CSerialException", "mdb_env_open", "BLAST Database error")
_LOADER_SIGN = "error while loading shared libraries"
_CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL})
_CLOSE_TO_LIMIT = 0.45
"""A crash with this share of the memory limit in use is taken for a failed allocation: BLAST+
doubles its buffers, so the one it could not get may have been as large as all that it had."""
_ROOM_FOR_A_THREAD = 64 << 20
"""With less than this left, a thread may have failed to start for want of a stack and a heap."""
_EMPTY_MEANS_NO_HITS = frozenset({"6", "8", "10"})
_LONGEST_LINE = 300
_EXITS = {
    1: "the query or an option",
    2: "the database",
    3: "the search engine",
    5: "the network",
}


@dataclass(frozen=True, slots=True)
class _Case:
    ending: Ending
    limits: Limits
    output: Path
    saying: str
    """`` BLAST+ said: …`` or nothing."""
    disk: str

    @property
    def signal(self) -> int | None:
        return self.ending.signal

    @property
    def peak(self) -> str:
        return f"its peak was {in_words(self.ending.peak_memory_bytes)} of memory"

    @property
    def bound(self) -> str:
        limit = self.limits.memory_bytes
        return "no limit is set" if limit is None else f"the limit is {in_words(limit)}"

    def says(self, signs: tuple[str, ...]) -> bool:
        return any(sign in self.ending.stderr for sign in signs)


def diagnose(ending: Ending, task: Task, output: Path) -> Failure | None:
    """The named cause, with numbers and a next step; ``None`` when ``output`` may be published."""
    line = last_line(ending.stderr)
    case = _Case(
        ending=ending,
        limits=task.limits,
        output=output,
        saying=f" BLAST+ said: {line}" if line else "",
        disk=_disk(output.parent),
    )
    if ending.exit_code == 0:
        return _missing_output(task.argv, case)
    for rule in (_time, _output, _memory, _killed, _crash, _exit):
        if failure := rule(case):
            return failure
    return Failure("blast_failed", f"BLAST+ ended in a way not known here.{case.saying}")


def _missing_output(argv: tuple[str, ...], case: _Case) -> Failure | None:
    chosen = argv[argv.index("-outfmt") + 1] if "-outfmt" in argv[:-1] else "0"
    kind = (chosen.split() or ["0"])[0]
    size = _size(case.output)
    if size is not None and (size > 0 or kind in _EMPTY_MEANS_NO_HITS):
        return None
    what = "no output file" if size is None else f"an empty file in format {kind}"
    return Failure(
        "no_output",
        f"BLAST+ ended with exit code 0 but left {what}; {case.disk}.{case.saying}",
        "Run the search again; if it stays so, check the database with `blastyard db check`.",
    )


def _time(case: _Case) -> Failure | None:
    limit = case.limits.cpu_seconds
    if limit is None or case.signal not in (signal.SIGXCPU, signal.SIGKILL):
        return None
    if case.signal == signal.SIGKILL and case.ending.cpu_seconds < limit:
        return None
    return Failure(
        "cpu_limit",
        f"BLAST+ used {case.ending.cpu_seconds:.0f} s of CPU time; the limit is {limit} s.",
        "Split the query into smaller files, make the search narrower (a faster task, a smaller "
        "E-value), or raise the CPU-time limit.",
    )


def _output(case: _Case) -> Failure | None:
    limit, size = case.limits.output_bytes, _size(case.output) or 0
    failed = case.says(_WRITE_SIGNS) or case.ending.exit_code == _WRITE_EXIT
    if case.signal == signal.SIGXFSZ or (failed and limit is not None and size >= limit):
        return Failure(
            "output_limit",
            f"The output reached its size limit of {in_words(limit or size)}.",
            "Ask for fewer hits (-max_target_seqs, -max_hsps, -evalue), a shorter format such as "
            "tsv, or raise the output limit.",
        )
    if not failed:
        return None
    return Failure(
        "disk_full",
        f"BLAST+ could not write its output after {in_words(size)}; {case.disk}.{case.saying}",
        "Free space there (`blastyard delete` removes old results), then run the search again.",
    )


def _memory(case: _Case) -> Failure | None:
    limit = case.limits.memory_bytes
    said = case.says(_MEMORY_SIGNS) or case.ending.exit_code == _MEMORY_EXIT
    crashed = case.signal in _CRASHES or case.says(("eNullPtr",))
    used = case.ending.data_bytes
    full = limit is not None and (
        used >= _CLOSE_TO_LIMIT * limit or limit - used < _ROOM_FOR_A_THREAD
    )
    if not said and not (crashed and full):
        return None
    return Failure(
        "memory_limit",
        f"BLAST+ could not get more memory: {case.peak}, {case.bound}.{case.saying}",
        "Ask for fewer hits, split long or repetitive queries, mask repeats (-dust, -seg), or "
        "raise the memory limit.",
    )


def _killed(case: _Case) -> Failure | None:
    if case.signal is None or case.signal in _CRASHES:
        return None
    name = signal.Signals(case.signal).name
    if case.signal == signal.SIGKILL:
        message = (
            f"BLAST+ was killed from outside ({name}); {case.peak}, {_machine_memory()}. "
            "Most often that is the kernel, when the machine runs out of memory."
        )
    else:
        message = f"BLAST+ was ended from outside by {name}; {case.peak}."
    return Failure(
        "killed",
        message,
        "See `dmesg` for the out-of-memory killer; run fewer searches at once "
        "(`blastyard gate ceiling`) or set a memory limit.",
    )


def _crash(case: _Case) -> Failure | None:
    check = (
        "Check the database with `blastyard db check` (BLAST+'s own tool is `blastdbcheck`); a "
        "damaged one must be built or copied again."
    )
    if case.signal == signal.SIGBUS or case.says(_DATABASE_SIGNS) or case.ending.exit_code == 2:
        return Failure("database_broken", f"BLAST+ could not use the database.{case.saying}", check)
    if case.ending.exit_code == 127 and _LOADER_SIGN in case.ending.stderr:
        return Failure(
            "blast_missing",
            f"The installed BLAST+ cannot be loaded.{case.saying}",
            "Install BLAST+ again; `blastyard doctor` checks it.",
        )
    if case.signal is None and case.ending.exit_code != 255:
        return None
    how = signal.Signals(case.signal).name if case.signal is not None else "exit code 255"
    return Failure(
        "blast_crashed",
        f"BLAST+ crashed ({how}); {case.peak}, {case.bound}. Most often the database is damaged "
        f"or memory was short.{case.saying}",
        check,
    )


def _exit(case: _Case) -> Failure:
    code = case.ending.exit_code
    about = _EXITS.get(code or 0)
    where = f", about {about}" if about else ""
    return Failure(
        "blast_failed",
        f"BLAST+ ended with exit code {code}{where}.{case.saying}",
        "Correct what BLAST+ names, then run the search again.",
    )


def last_line(text: str) -> str:
    """BLAST+'s own last words: the last printable line that is not part of a stack trace."""
    for line in reversed(text.splitlines()):
        plain = "".join(letter for letter in line if letter.isprintable()).strip()
        if plain and " addr=0x" not in plain and not plain.startswith("Stack trace"):
            return plain[:_LONGEST_LINE]
    return ""


def in_words(size: int) -> str:
    """Bytes for a person, in powers of 1024: ``1.5 GB``."""
    amount = float(size)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GB"


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _disk(directory: Path) -> str:
    try:
        volume = os.statvfs(directory)
    except OSError:
        return f"{directory} is not there"
    free = in_words(volume.f_bavail * volume.f_frsize)
    return f"{free} of {in_words(volume.f_blocks * volume.f_frsize)} are free on {directory}"


def _machine_memory() -> str:
    lines = dict(
        line.split(":", 1)
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    )
    total, free = (int(lines[key].split()[0]) * 1024 for key in ("MemTotal", "MemAvailable"))
    return f"the machine has {in_words(total)}, of which {in_words(free)} are available now"
