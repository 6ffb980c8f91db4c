"""Programs of one installation, started as people start them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

from blastyard.domain.clock import SystemClock
from blastyard.testing.service import Service, service_process

BLASTYARD = [sys.executable, "-m", "blastyard"]
_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class Backend:
    """Where an installation keeps what it shares."""

    store: str
    admission: str


@dataclass(frozen=True, slots=True)
class Team:
    """An installation: its environment, and a query that finds hits in ``genes``."""

    environment: dict[str, str]
    query: Path
    folder: Path

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command to its end; what it printed."""
        done = subprocess.run(
            [*BLASTYARD, *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout

    def json(self, *words: str) -> Any:
        """The same of a command that prints JSON."""
        return json.loads(self.run(*words, "--json"))

    def search(self, *words: str) -> str:
        """One search to its end; the table of hits."""
        return self.run("search", "-p", "blastn", "-d", "genes", "-q", str(self.query), *words)

    def service(self) -> AbstractContextManager[Service]:
        """A service of the installation."""
        log = self.folder / f"service-{next(_NUMBERS)}.log"
        return service_process([*BLASTYARD, "serve", "--port", "0"], self.environment, log)

    def replica(self) -> AbstractContextManager[Service]:
        """A web replica."""
        log = self.folder / f"replica-{next(_NUMBERS)}.log"
        words = [*BLASTYARD, "serve", "--replica", "--port", "0"]
        return service_process(words, self.environment, log)

    def worker(self) -> AbstractContextManager[Program]:
        """A worker, once it is at work."""
        log = self.folder / f"worker-{next(_NUMBERS)}.log"
        return program([*BLASTYARD, "worker"], self.environment, log)


@dataclass(frozen=True, slots=True)
class Program:
    """A running program; ``log`` is what it said on standard error."""

    process: subprocess.Popen[str]
    log: Path

    def end(self, how: int) -> int:
        """Send a signal and wait for the end; the exit code."""
        self.process.send_signal(how)
        return self.process.wait(60)


@contextmanager
def program(words: list[str], environment: dict[str, str], log: Path) -> Iterator[Program]:
    """Run a program that says a line when it is ready, until the block ends."""
    with (
        log.open("w") as errors,
        subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), log.read_text()
            yield Program(process, log)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()


def until(holds: Callable[[], object], seconds: float = 90.0) -> None:
    """Look again and again, until something holds."""
    deadline = SystemClock().monotonic() + seconds
    while not holds():
        assert SystemClock().monotonic() < deadline, "it does not happen"
        Event().wait(0.2)
