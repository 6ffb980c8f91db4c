"""A stage for drop-in commands: a ``blastn`` that runs until the test lets it end.

What the test waits for reaches it through named pipes and the store's own watch.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from blastyard.admission.ledger import Ledger
from blastyard.bootstrap.gate import OpenGate, open_gate, this_process
from blastyard.engine.process import Process
from blastyard.settings import read_settings

PATIENCE_SECONDS = 30.0

# Says its number, waits for a word, and ends as the word tells: an exit code, or a signal's name.
# With -dryrun it only judges its arguments, as BLAST+ does.
ACTOR = """#!/bin/sh
for word; do
    case $word in
        -wrong) echo "Error: Unknown argument: \\"wrong\\"" >&2; exit 1 ;;
        -dryrun) exit 0 ;;
    esac
done
mkfifo {folder}/$$.word {folder}/$$.ended
echo "$$" >{folder}/begun
read -r word <{folder}/$$.word
echo "played $*"
echo >{folder}/$$.ended
case $word in
    [0-9]*) exit "$word" ;;
    *) kill -s "$word" $$ ;;
esac
"""


class Stage:
    """Starts drop-in commands on one data directory."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.environment = dict(environment)
        self._folder = folder
        actor = folder / "bin" / "blastn"
        actor.parent.mkdir()
        actor.write_text(ACTOR.format(folder=folder))
        actor.chmod(0o755)
        os.mkfifo(folder / "begun")
        (folder / "begun").chmod(0o666)
        self.environment["PATH"] = f"{actor.parent}:{environment['PATH']}"
        self._started: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        *words: str,
        ceiling: int = 1,
        prefix: tuple[str, ...] = (),
        stderr: int = subprocess.PIPE,
    ) -> subprocess.Popen[bytes]:
        """A drop-in command; ``prefix`` is a command that starts it."""
        words = words or ("-query", os.devnull, "-db", "any")
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "blastyard", "blastn", *words],
            env={**self.environment, "BLAST_MAX_RUN_CONCURRENCY": str(ceiling)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            preexec_fn=_as_from_a_shell,  # noqa: PLW1509  (calls nothing that takes a lock)
        )
        self._started.append(process)
        return process

    def begun(self) -> Process:
        """Wait for an actor to begin; it is the one that begins next."""
        pid = int((self._folder / "begun").read_text())
        found = Process.find(pid)
        assert found is not None
        return found

    def finish(self, actor: Process, word: str = "0") -> None:
        """Let an actor end."""
        (self._folder / f"{actor.pid}.word").write_text(f"{word}\n")
        (self._folder / f"{actor.pid}.ended").read_text()

    def when(self, condition: Callable[[Ledger], bool]) -> Ledger:
        """Wait until the ledger is as wanted."""
        with self.gate() as opened:
            watch = opened.documents.watch()
            until = opened.clock.monotonic() + PATIENCE_SECONDS
            while not condition(ledger := opened.gate.ledger()):
                assert opened.clock.monotonic() < until, ledger
                watch.wait(1.0)
            watch.close()
            return ledger

    @contextmanager
    def gate(self) -> Iterator[OpenGate]:
        """The gate, as somebody who only looks."""
        settings = read_settings(self.environment)
        opened = open_gate(settings, this_process("test"), signed_on=False)
        try:
            yield opened
        finally:
            opened.documents.close()

    def close(self) -> None:
        """End what a failed test left."""
        for process in self._started:
            process.kill()
            process.communicate()


def _as_from_a_shell() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Wait for a command; exit code (negative: signal), standard output and error."""
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out.decode(), (err or b"").decode()
