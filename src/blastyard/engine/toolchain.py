"""Where BLAST+'s programs are, and how a short one is run.

On the way of the drop-in command, so what is not needed to find a program is imported late.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from blastyard.domain.errors import Misconfigured, Unavailable

if TYPE_CHECKING:
    import subprocess

KEPT: Final = 65_536
"""Of each output stream, the last so many bytes are kept."""
_CHUNK: Final = 4096


@dataclass(frozen=True, slots=True)
class Command:
    """A BLAST+ program that answers soon, and what it is given.

    ``directory`` is where it runs; ``environment`` adds to ``PATH`` and what every program here is
    told: plain messages, and no report to anybody. ``feed`` is written to its standard input.
    """

    program: str
    arguments: tuple[str, ...]
    directory: Path
    timeout: timedelta
    environment: Mapping[str, str] = field(default_factory=dict)
    feed: Iterable[bytes] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """How a program ended. ``exit_code`` is negative for a signal, as in :mod:`subprocess`."""

    exit_code: int
    out: str
    err: str


class Toolchain:
    """The BLAST+ programs on ``path``, a ``PATH`` string that settings give."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._version: str | None = None

    def program(self, name: str) -> Path:
        """The absolute path of a program. Raises ``Misconfigured('blast_missing')``."""
        for folder in self.path.split(os.pathsep):
            candidate = Path(folder, name)
            if folder and candidate.is_file() and os.access(candidate, os.X_OK):
                return candidate.absolute()
        raise Misconfigured(
            "blast_missing",
            f"The BLAST+ program {name} is not on the PATH ({self.path or 'which is empty'}).",
            "Install BLAST+: apt-get install ncbi-blast+ (Debian, Ubuntu), or put its bin folder"
            " on the PATH.",
        )

    def version(self) -> str:
        """BLAST+'s version, such as ``2.12.0+``; asked once, when first needed.

        Raises ``Misconfigured('blast_missing')`` when there is no BLAST+ that answers.
        """
        if self._version is None:
            command = Command("blastn", ("-version",), Path("/"), timedelta(seconds=60))
            answer = self.run(command)
            label, _, version = answer.out.partition("\n")[0].partition(": ")
            if answer.exit_code != 0 or label != "blastn" or not version:
                raise Misconfigured(
                    "blast_missing",
                    f"{self.program('blastn')} does not say its version: it ended with"
                    f" {answer.exit_code} and wrote {(answer.err or answer.out)[:200]!r}.",
                    "Install BLAST+ again: apt-get install --reinstall ncbi-blast+",
                )
            self._version = version.strip()
        return self._version

    def run(self, command: Command) -> Answer:
        """Run a program to its end and keep the end of what it says.

        It is killed when the caller is interrupted or its time is over. What feeds it may raise;
        then it is killed too. Raises ``Misconfigured('blast_missing')``, and ``Unavailable`` when
        it did not end in time.
        """
        import subprocess  # noqa: PLC0415  (only finding a program must stay cheap)

        program = self.program(command.program)
        fed = not isinstance(command.feed, tuple) or bool(command.feed)
        try:
            process = subprocess.Popen(
                [str(program), *command.arguments],
                stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=command.directory,
                env=self._environment(command),
                start_new_session=True,
            )
        except OSError as error:
            raise Misconfigured(
                "blast_missing",
                f"{program} cannot be started: {error.strerror}.",
                "Install BLAST+ again: apt-get install --reinstall ncbi-blast+",
            ) from error
        return _attend(process, command)

    def _environment(self, command: Command) -> dict[str, str]:
        fixed = {"PATH": self.path, "LC_ALL": "C", "BLAST_USAGE_REPORT": "false"}
        return {"HOME": str(command.directory), **command.environment, **fixed}


class _Tail:
    """Reads a stream to its end in a thread of its own, and keeps the last bytes."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        import threading  # noqa: PLC0415

        self._kept = b""
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            while chunk := stream.read(_CHUNK):
                self._kept = (self._kept + chunk)[-KEPT:]

    def text(self) -> str:
        """What was kept, once the stream has ended."""
        self._thread.join()
        return self._kept.decode("utf-8", "replace")


def _attend(process: subprocess.Popen[bytes], command: Command) -> Answer:
    """Feed a process and see it to its end."""
    import threading  # noqa: PLC0415

    overdue = threading.Event()

    def end() -> None:
        overdue.set()
        process.kill()

    timer = threading.Timer(command.timeout.total_seconds(), end)
    timer.daemon = True
    timer.start()
    try:
        out, err = _Tail(process.stdout), _Tail(process.stderr)
        if process.stdin is not None:
            _feed(process.stdin, command.feed)
        exit_code = process.wait()
    finally:
        timer.cancel()
        _end(process)
    if overdue.is_set():
        raise Unavailable(
            "blast_failed",
            f"{command.program} did not finish within {command.timeout}.",
            "Try again when the machine and its disks are less busy.",
        )
    return Answer(exit_code, out.text(), err.text())


def _feed(stdin: IO[bytes], feed: Iterable[bytes]) -> None:
    """Write what a program reads; one that ended early says why in its own words."""
    try:
        for chunk in feed:
            stdin.write(chunk)
        stdin.close()
    except BrokenPipeError:
        return


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it before its input ends: it would take a part of the input for the whole."""
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdin is not None:
        try:
            process.stdin.close()
        except BrokenPipeError:
            return
