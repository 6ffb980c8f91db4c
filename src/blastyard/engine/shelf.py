"""The directory of the databases that blastyard builds, one directory each.

A database is built in a directory with a temporary name, which is then renamed. Whoever works in
such a directory holds a lock (``flock``) on it, and the kernel lets go of it when the process
dies. From before its first file until it is registered, and again while it is removed, it carries
a mark. So a marked directory that nobody has locked and no registration names was left by a
process that died, and may go; a finished database carries none and is never taken for one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from blastyard.domain.errors import CallerMistake, Conflict, Misconfigured

_MARK: Final = ".blastyard-unregistered"
_TEMPORARY: Final = ".building-"

InUse = Callable[[Path], bool]
"""Whether a registration names a database in this directory."""


class Nest:
    """A locked directory in which one database comes to be. Gone at the end, unless kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept = False

    def finish(self) -> None:
        """The database is registered: its directory stays."""
        self.kept = True
        (self.path / _MARK).unlink()

    def leave(self) -> None:
        """Whether it is registered cannot be told now: a later sweep decides."""
        self.kept = True


class Shelf:
    """The directory ``root``; made when first needed."""

    def __init__(self, root: Path, in_use: InUse) -> None:
        self._root = root.resolve()
        self._in_use = in_use

    @contextmanager
    def nest(self) -> Iterator[Nest]:
        """A new, empty, locked directory, after what dead processes left has been cleared.

        Raises ``Misconfigured('permission_denied')`` when nothing can be written there.
        """
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            self._sweep()
        except OSError as error:
            raise _unwritable(self._root, error) from error
        with self._new() as path:
            nest = Nest(path)
            try:
                yield nest
            finally:
                if not nest.kept:
                    shutil.rmtree(nest.path, ignore_errors=True)

    def settle(self, nest: Nest, name: str) -> None:
        """Give the nest its final place, at once and whole.

        Raises ``Conflict('database_exists')`` when the place is taken.
        """
        target = self._root / name
        for path in (*nest.path.iterdir(), nest.path):
            _flush(path)
        self._clear(target)
        try:
            nest.path.rename(target)
        except OSError as error:
            raise Conflict(
                "database_exists",
                f"A database called {name!r} is there already, or being added or removed.",
                "Choose another name, or look at: blastyard db list",
            ) from error
        nest.path = target
        _flush(self._root)

    @contextmanager
    def leaving(self, directory: Path) -> Iterator[None]:
        """Hold a database's directory and, if the block ends well, remove it.

        Only a directory on this shelf is removed; nothing happens where it is gone already.
        """
        if directory.parent.resolve() != self._root:
            yield
            return
        with _locked(directory, wait=True) as ours:
            mark = directory / _MARK
            if ours:
                mark.touch()
            try:
                yield
            except CallerMistake:
                mark.unlink(missing_ok=True)
                raise
            shutil.rmtree(directory, ignore_errors=True)

    @contextmanager
    def _new(self) -> Iterator[Path]:
        while True:
            try:
                path = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=self._root))
            except OSError as error:
                raise _unwritable(self._root, error) from error
            with _locked(path) as ours:
                if not ours:
                    continue  # a sweep was quicker
                path.chmod(self._root.stat().st_mode & 0o7777)
                (path / _MARK).touch()
                yield path
                return

    def _sweep(self) -> None:
        for path in self._root.iterdir():
            self._clear(path)

    def _clear(self, path: Path) -> None:
        """Remove what a dead process left; nothing else."""
        mark = path / _MARK
        if not mark.exists() and not path.name.startswith(_TEMPORARY):
            return
        with _locked(path) as ours:
            if not ours:
                return
            if self._in_use(path):
                mark.unlink(missing_ok=True)
            elif mark.exists() or path.name.startswith(_TEMPORARY):
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _locked(directory: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold the lock of a directory; false when somebody else has it, or the directory is gone."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield _is_at(directory, handle)
    finally:
        os.close(handle)


def _is_at(directory: Path, handle: int) -> bool:
    try:
        return os.path.samestat(directory.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _unwritable(root: Path, error: OSError) -> Misconfigured:
    return Misconfigured(
        "permission_denied",
        f"Databases cannot be kept in {root}: {error.strerror}.",
        "Let this account write there, or set BLASTYARD_HOME to a directory of your own.",
    )


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
