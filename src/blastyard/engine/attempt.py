"""The files of one attempt at a search, and how its output becomes the search's result."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from blastyard.domain.errors import Unavailable
from blastyard.engine.command import Ending, read_ending
from blastyard.engine.port import Output, Task
from blastyard.engine.process import Process

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Attempt:
    """Where an attempt keeps what; every path carries the search's directory and the number."""

    directory: Path
    result: Path

    @classmethod
    def of(cls, task: Task, number: int | None = None) -> Attempt:
        """Attempt ``number`` of a task; the task's own by default."""
        folder = task.directory.absolute()
        number = task.attempt if number is None else number
        return cls(folder / f"attempt-{number}", folder / f"result.{task.extension}")

    @property
    def work(self) -> Path:
        """The command's working directory, empty."""
        return self.directory / "work"

    @property
    def output(self) -> Path:
        """What the command writes; never seen by anybody else before it is published."""
        return self.directory / "output"

    @property
    def record(self) -> Path:
        """How the command ended, written by its guardian."""
        return self.directory / "exit.json"

    def create(self) -> None:
        """Make the folders. Raises FileExistsError when the number was used before."""
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        self.directory.mkdir()
        self.work.mkdir()

    def remove(self) -> None:
        """Remove everything of the attempt."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def ending(self, guardian: Process) -> Ending | None:
        """What this guardian wrote about the end, if it did."""
        try:
            data = json.loads(self.record.read_bytes())
            if (data["guardian"], data["started"]) == (guardian.pid, guardian.started):
                return read_ending(data)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return None

    def published(self) -> Output | None:
        """The published output, if this attempt published it and it is still what it was."""
        try:
            said = json.loads(self._note.read_bytes())
            output = Output(self.result, said["size"], said["sha256"])
            whole = not self.output.exists() and self.result.stat().st_size == output.size
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return output if whole else None

    def publish(self) -> Output:
        """Give the output its final name: complete and durable, or not at all.

        The note is written first, so that a process that finds the output moved knows that it was
        this attempt's. Two processes may do this at once. Raises ``Unavailable``.
        """
        try:
            with self.output.open("rb") as file:
                digest, size = hashlib.sha256(), 0
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
                os.fsync(file.fileno())
            output = Output(self.result, size, digest.hexdigest())
            self._write_note(output)
            with suppress(FileNotFoundError):  # another process has just moved it
                self.output.replace(self.result)
            _sync_directory(self.result.parent)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and (published := self.published()):
                return published
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise Unavailable(
                "disk_full" if full else "internal",
                f"the output of {self.directory} cannot be published: {error}",
            ) from error
        return output

    @property
    def _note(self) -> Path:
        return self.directory / "published.json"

    def _write_note(self, output: Output) -> None:
        note = self._note.with_suffix(f".{os.getpid()}")
        with note.open("w", encoding="ascii") as file:
            json.dump({"size": output.size, "sha256": output.sha256}, file)
            file.flush()
            os.fsync(file.fileno())
        note.replace(self._note)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
