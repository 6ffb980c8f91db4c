"""Where a result goes: standard output, or a file that appears whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from blastyard.cli import report
from blastyard.domain.errors import CallerMistake, Misconfigured

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Destination:
    """``path`` ``None`` = standard output."""

    path: Path | None

    @classmethod
    def named(cls, path: Path | None) -> Destination:
        """As a person names it: ``-`` is standard output, as it is for BLAST+."""
        return cls(None if path == Path("-") else path)

    def check(self) -> None:
        """Raise ``CallerMistake`` for a place that cannot take a result, before any work."""
        if self.path is None:
            return
        if self.path.is_dir():
            raise _mistake(f"{self.path} is a directory", "name a file in it")
        if self._is_device:
            return
        folder = self.path.parent
        if not folder.is_dir():
            raise _mistake(f"the directory {folder} does not exist", f"mkdir -p {folder}")
        if not os.access(folder, os.W_OK):
            raise _mistake(f"this account may not write in {folder}", "choose another directory")

    def take(self, result: Path) -> None:
        """Copy the result there, byte for byte; say so where there is nothing to copy."""
        if result.stat().st_size == 0:
            report.tell("note: no query has a hit, so the result is empty")
        if self.path is None:
            with result.open("rb") as source:
                shutil.copyfileobj(source, sys.stdout.buffer, _CHUNK)
            sys.stdout.buffer.flush()
        elif self._is_device:
            with result.open("rb") as source, self.path.open("wb") as target:
                shutil.copyfileobj(source, target, _CHUNK)
        else:
            self._replace(self.path, result)

    @property
    def _is_device(self) -> bool:
        """A pipe or device, such as /dev/stdout, is written to; only a file is replaced."""
        return self.path is not None and self.path.exists() and not self.path.is_file()

    def _replace(self, path: Path, result: Path) -> None:
        target = path.resolve()  # what a link names is replaced, not the link
        try:
            _publish(result, target)
        except OSError as error:
            message = f"the result cannot be written to {path}: {error.strerror}"
            step = "make room or choose another place, then fetch it with `blastyard results`"
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            raise Misconfigured(
                "disk_full" if full else "permission_denied", message, step
            ) from error


def _publish(result: Path, target: Path) -> None:
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".blastyard-")
    try:
        with result.open("rb") as source, open(descriptor, "wb") as new:  # noqa: PTH123
            shutil.copyfileobj(source, new, _CHUNK)
            new.flush()
            os.fchmod(descriptor, 0o666 & ~_umask())
            os.fsync(descriptor)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _mistake(message: str, next_step: str) -> CallerMistake:
    return CallerMistake("request_invalid", message, next_step)
