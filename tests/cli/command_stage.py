"""The command line as its users have it: real processes, a real terminal, real BLAST+."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blastyard.domain.clock import SystemClock
from blastyard.testing.forked_command import as_text, run_command

PATIENCE = 60.0
monotonic = SystemClock().monotonic
COMMAND = [sys.executable, "-m", "blastyard"]


@dataclass(frozen=True, slots=True)
class Commands:
    """Runs blastyard in a data directory of its own."""

    environment: dict[str, str]
    folder: Path

    def __call__(
        self, *arguments: str | Path, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[str]:
        return as_text(self._run(*arguments, stdin=stdin))

    def bytes(self, *arguments: str | Path) -> bytes:
        """The standard output of a command that succeeds, as it is."""
        done = self._run(*arguments)
        done.check_returncode()
        return done.stdout

    def _run(
        self, *arguments: str | Path, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        return run_command(
            [*map(str, arguments)],
            env=self.environment,
            cwd=self.folder,
            stdin=stdin,
            timeout=PATIENCE,
        )

    def json(self, *arguments: str | Path) -> Any:
        """What a command that succeeds prints with ``--json``."""
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def start(self, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """A command in the background, in a session of its own."""
        return subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def with_environment(self, **more: str) -> Commands:
        """The same, with more variables."""
        return Commands({**self.environment, **more}, self.folder)

    def until(self, search_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Look at a search until what is waited for holds."""
        end = monotonic() + PATIENCE
        while True:
            shape: dict[str, Any] = self.json("status", search_id)
            if holds(shape):
                return shape
            assert monotonic() < end, shape

    def only_search(self) -> str:
        """The id of the one search there is, once it is there."""
        end = monotonic() + PATIENCE
        while True:
            found = self.json("list")["searches"]
            if found:
                assert len(found) == 1
                return str(found[0]["id"])
            assert monotonic() < end


class Terminal:
    """A command on a terminal of its own; :meth:`until` reads what it shows."""

    def __init__(self, commands: Commands, *arguments: str | Path) -> None:
        self._master, slave = pty.openpty()
        self.shown = ""
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *COMMAND, *map(str, arguments)],
            env={**commands.environment, "TERM": "xterm", "COLUMNS": "200", "BLASTYARD_DEBUG": "1"},
            cwd=commands.folder,
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)

    def until(self, marker: str) -> None:
        """Read until ``marker`` has been shown."""
        end = monotonic() + PATIENCE
        while marker not in self.shown:
            assert monotonic() < end, self.shown
            assert self._read(1.0) or self.process.poll() is None, self.shown

    def press_ctrl_c(self) -> None:
        """What the key does: the terminal sends SIGINT to the foreground group."""
        os.write(self._master, b"\x03")

    def ended(self) -> int:
        """Read to the end; the exit code."""
        while self._read(PATIENCE):
            pass
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """Let go of it, dead or alive."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self._master)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the last process has let go of the terminal
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)


@dataclass(frozen=True, slots=True)
class Brake:
    """BLAST+'s real programs behind a gate: no search begins its work before :meth:`release`."""

    folder: Path
    go: Path

    @classmethod
    def make(cls, folder: Path, blast: Path) -> Brake:
        """Put wrappers for the search programs into ``folder``."""
        folder.mkdir()
        brake = cls(folder, folder / "go")
        for program in ("blastn", "blastp"):
            wrapper = folder / program
            wrapper.write_text(
                f"#!/bin/sh\n"
                f'[ "$1" = -version ] && exec {blast}/{program} "$@"\n'
                f"until [ -e {brake.go} ]; do sleep 0.05; done\n"
                f'exec {blast}/{program} "$@"\n'
            )
            wrapper.chmod(0o755)
        return brake

    def release(self) -> None:
        """Let everything run."""
        self.go.touch()


def end(process: subprocess.Popen[bytes], number: signal.Signals) -> tuple[int, str, str]:
    """Signal a process; its exit code and output."""
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out.decode(), err.decode()


def running(shape: dict[str, Any]) -> bool:
    """Whether BLAST+ is at work on a search."""
    return bool(shape["state"] == "running")
