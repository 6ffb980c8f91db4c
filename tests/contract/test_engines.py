"""The engines keep the contract."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.register_assert_rewrite("blastyard.testing.contract_engine")

from blastyard.domain.clock import SystemClock  # noqa: E402
from blastyard.domain.errors import Failure  # noqa: E402
from blastyard.domain.search import Run  # noqa: E402
from blastyard.engine.local import LocalEngine  # noqa: E402
from blastyard.engine.port import Engine, Task  # noqa: E402
from blastyard.testing.contract_engine import EngineContract, EngineRig  # noqa: E402
from blastyard.testing.engine import FakeEngine, FakeMachine  # noqa: E402

PROGRAM = """#!/bin/sh
# Writes its first line at once, the rest when told "ok"; ends with 3 when told "bad".
while [ $# -gt 0 ]; do
    case $1 in
        -out) out=$2 ;;
        -query) query=$2 ;;
        -word) word=$2 ;;
    esac
    shift
done
echo "first line" > "$out"
read -r word < "$word"
[ "$word" = ok ] || { echo "BLAST engine error: told to fail" >&2; exit 3; }
cat "$query" >> "$out"
"""


class VirtualClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


class FakeRig:
    def __init__(self, directory: Path) -> None:
        self.clock = VirtualClock()
        self.machine = FakeMachine(self.clock)
        self.engine: Engine = FakeEngine(self.machine, owner="one", files=True)
        self.other: Engine = FakeEngine(self.machine, owner="other", files=True)
        self.directory = directory

    def task(self, search_id: str, attempt: int = 1) -> Task:
        folder = self.directory / search_id
        return Task(search_id, attempt, ("/bin/blastn",), folder / "query.fa", folder, "tsv")

    def broken_task(self) -> Task:
        return Task("none", 1, ("blastn",), self.directory / "q", self.directory / "none", "tsv")

    def complete(self, search_id: str) -> None:
        self.machine.complete(search_id)

    def fail(self, search_id: str) -> None:
        self.machine.fail(search_id, Failure("blast_failed", "It failed.", "Try again."))

    def crash(self, search_id: str, ref: Run) -> None:
        self.machine.crash(search_id)

    def live(self) -> set[str]:
        return self.machine.live()

    def soon(self) -> float:
        return self.clock.seconds + 1

    def pass_deadline(self) -> None:
        self.clock.seconds += 10


class LocalRig:
    def __init__(self, directory: Path) -> None:
        self.engines = LocalEngine(), LocalEngine()
        self.engine: Engine = self.engines[0]
        self.other: Engine = self.engines[1]
        self.directory = directory
        self.program = directory / "program"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)

    def task(self, search_id: str, attempt: int = 1) -> Task:
        folder = self.directory / search_id
        folder.mkdir(exist_ok=True)
        word, query = self.directory / f"{search_id}.word", self.directory / f"{search_id}.fa"
        if not word.exists():
            os.mkfifo(word)
        query.write_text(f">{search_id}\nACGT\n")
        argv = (str(self.program), "-word", str(word), "-outfmt", "6")
        return Task(search_id, attempt, argv, query, folder, "tsv")

    def broken_task(self) -> Task:
        query = self.directory / "query.fa"
        return Task("none", 1, ("/nowhere/blastn",), query, self.directory / "none", "tsv")

    def complete(self, search_id: str) -> None:
        (self.directory / f"{search_id}.word").write_text("ok\n")

    def fail(self, search_id: str) -> None:
        (self.directory / f"{search_id}.word").write_text("bad\n")

    def crash(self, search_id: str, ref: Run) -> None:
        os.kill(ref.guardian_pid, signal.SIGKILL)

    def live(self) -> set[str]:
        marks = {
            name.name.removesuffix(".word"): str(name).encode()
            for name in self.directory.glob("*.word")
        }
        lines = [words for path in Path("/proc").glob("[0-9]*") if (words := _words(path))]
        return {name for name, mark in marks.items() if any(mark in words for words in lines)}

    def soon(self) -> float:
        return SystemClock().monotonic() + 0.3

    def pass_deadline(self) -> None:
        pass

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


def _words(process: Path) -> list[bytes]:
    try:
        return (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


class TestFake(EngineContract):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> EngineRig:
        return FakeRig(tmp_path)


class TestLocal(EngineContract):
    @pytest.fixture
    def rig(self, tmp_path: Path) -> Iterator[EngineRig]:
        rig = LocalRig(tmp_path)
        yield rig
        rig.close()
