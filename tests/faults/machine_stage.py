"""A machine for tests: an installation of real processes, and a ``blastn`` that is watched.

The ``blastn`` that the installation finds is a script which notes who else of its kind is alive,
waits where the test wants it to wait, and then becomes the real one.
"""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any

from blastyard.bootstrap.gate import this_process
from blastyard.bootstrap.seam import PLAIN, Seam
from blastyard.bootstrap.yard import Yard, open_yard
from blastyard.engine.process import Process
from blastyard.service.draft import Draft
from blastyard.settings import read_settings
from blastyard.testing.checkpoint import CheckedEngine
from blastyard.testing.faulty import (
    Checkpoint,
    FaultyDocumentStore,
    FaultySearchStore,
    Plan,
    no_checkpoint,
    no_fault,
)
from blastyard.testing.installation import PATIENCE_SECONDS, Installation
from blastyard.testing.nursery import Request
from blastyard.worker.inprocess import Worker

# A name in ``live`` is "<pid>.<start ticks>"; ``seen`` has a line for each start: the script's
# name and how many were alive then, itself included.
WATCHED = """#!/bin/sh
case "$*" in *-version*) exec {real} "$@" ;; esac
name_of() {{
    read -r line <"/proc/$1/stat" || return 1
    set -- "$1" ${{line##*) }}
    case $2 in [ZXx]) return 1 ;; esac
    name=$1.${{21}}
}}
name_of $$
me=$name
echo >{folder}/live/$me
count=0
for file in {folder}/live/*; do
    other=${{file##*/}}
    if name_of "${{other%.*}}" 2>{folder}/errors && [ "$name" = "$other" ]; then
        count=$((count + 1))
    fi
done
echo "$me $count" >>{folder}/seen
if [ -e {folder}/hold ]; then
    mkfifo {folder}/$me.word
    chmod 666 {folder}/$me.word
    echo "$me" >{folder}/begun
    read -r word <{folder}/$me.word
    case $word in
        go) ;;
        [0-9]*) exit "$word" ;;
        *) kill -s "$word" $$ ;;
    esac
fi
exec {real} "$@"
"""


class Actors:
    """All the watched ``blastn`` of one folder."""

    def __init__(self, folder: Path, real: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir(parents=True)
        (folder / "live").mkdir()
        (folder / "seen").touch()
        (folder / "errors").touch()
        self.program = folder / "bin" / "blastn"
        self.program.write_text(WATCHED.format(folder=folder, real=real))
        self.program.chmod(0o755)
        os.mkfifo(folder / "begun")
        for path in (folder, folder / "live", folder / "seen", folder / "errors", folder / "begun"):
            path.chmod(0o777)
        self._reader = os.open(folder / "begun", os.O_RDWR | os.O_NONBLOCK)  # never at its end
        self._text = b""
        self._open: list[int] = []

    def hold(self) -> None:
        """From now on each waits at its start until :meth:`let`."""
        (self.folder / "hold").touch()

    def let_all(self) -> None:
        """Hold none from now on, and let go of those that wait."""
        (self.folder / "hold").unlink(missing_ok=True)
        while select.select([self._reader], [], [], 0)[0] or b"\n" in self._text:
            self.let(self.begun())

    def begun(self) -> Process:
        """Wait for one to begin and wait."""
        while b"\n" not in self._text:
            if not select.select([self._reader], [], [], PATIENCE_SECONDS)[0]:
                raise AssertionError("no blastn has begun")
            self._text += os.read(self._reader, 4096)
        line, _, self._text = self._text.partition(b"\n")
        pid, started = line.decode().split(".")
        return Process(int(pid), int(started))

    def let(self, actor: Process, word: str = "go") -> None:
        """Let a held one go on, or end with an exit code, or by a signal's name."""
        fifo = self.folder / f"{actor.pid}.{actor.started}.word"
        descriptor = os.open(fifo, os.O_RDWR)  # kept open: the script may not have come to it yet
        os.write(descriptor, word.encode() + b"\n")
        self._open.append(descriptor)

    def starts(self) -> int:
        """How many have started."""
        return len((self.folder / "seen").read_text().splitlines())

    def peak(self) -> int:
        """How many were alive at once, at most."""
        lines = (self.folder / "seen").read_text().splitlines()
        return max((int(line.split()[1]) for line in lines), default=0)

    def live(self) -> list[Process]:
        """Those that run now."""
        found = []
        for path in (self.folder / "live").iterdir():
            pid, started = path.name.split(".")
            process = Process(int(pid), int(started))
            if process.is_alive():
                found.append(process)
        return found

    def wait_gone(self) -> None:
        """Wait until none is left."""
        for process in self.live():
            if not process.wait_gone(PATIENCE_SECONDS):
                raise AssertionError(f"{process} outlived its owner")

    def close(self) -> None:
        for descriptor in (self._reader, *self._open):
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Machine:
    """An installation with one database, and what is asked of it."""

    installation: Installation
    actors: Actors
    query: Path
    answer: bytes
    """What bare BLAST+ answers."""

    def request(self, *, own: bool = False, **draft: str) -> Request:
        """A search for the sample genes."""
        words = {"program": "blastn", "database": "genes", "user": "ada", **draft}
        return Request(str(self.query), words, own=own)

    def submit(self, **draft: str) -> str:
        """A search submitted by a command that does not run it; the id."""
        yard = self.installation.yard
        words: dict[str, Any] = {"program": "blastn", "database": "genes", "user": "ada", **draft}
        with self.query.open("rb") as file:
            done = yard.searches.submit(Draft(**words), file, runner=yard.searches.service())
        return done.search.id

    @contextmanager
    def opened(self, seam: Seam = PLAIN, kind: str = "serve") -> Iterator[Yard]:
        """The installation as a process of the test's own, signed on."""
        timed = replace(seam, timings=self.installation.timings)
        settings = read_settings(self.installation.environment)
        yard = open_yard(settings, this_process(kind), seam=timed)
        try:
            yield yard
        finally:
            yard.close()

    @contextmanager
    def working(self, seam: Seam = PLAIN, kind: str = "serve") -> Iterator[tuple[Yard, Worker]]:
        """The same with a worker, which takes on what nobody looks after."""
        with self.opened(seam, kind) as yard:
            worker = yard.make_worker(lambda _: True)
            thread = Thread(target=worker.run, name="worker")
            thread.start()
            try:
                yield yard, worker
            finally:
                worker.stop()
                thread.join()

    def close(self) -> None:
        self.installation.close()
        self.actors.close()


def through(checkpoint: Checkpoint = no_checkpoint, plan: Plan = no_fault) -> Seam:
    """Both stores and the engine behind a checkpoint, and the stores behind a fault plan."""
    return Seam(
        documents=lambda inner: FaultyDocumentStore(inner, plan, checkpoint),
        store=lambda inner: FaultySearchStore(inner, plan, checkpoint),
        engine=lambda inner: CheckedEngine(inner, checkpoint),
    )


def bare_answer(blastn: Path, database: Path, query: Path) -> bytes:
    """What bare BLAST+ answers in the default format."""
    command: list[str | Path] = [blastn, "-db", database, "-query", query, "-outfmt", "6"]
    return subprocess.run(command, check=True, capture_output=True).stdout
