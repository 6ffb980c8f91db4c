"""Where the files of a search live: one directory each, named by its id."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from blastyard.domain.clock import Clock, SystemClock
from blastyard.results.folder import share


class SearchFiles:
    """The directory ``<home>/searches``. Every path carries the id of its search."""

    def __init__(self, root: Path, clock: Clock | None = None) -> None:
        self._root = root
        self._clock = clock or SystemClock()

    def directory(self, search_id: str) -> Path:
        """The search's own directory."""
        return self._root / search_id

    def query(self, search_id: str) -> Path:
        """The stored query, as BLAST+ reads it."""
        return self.directory(search_id) / "query.fa"

    def result(self, search_id: str, extension: str) -> Path:
        """The published output; complete when it is there."""
        return self.directory(search_id) / f"result.{extension}"

    @contextmanager
    def incoming(self, search_id: str, chunks: Iterable[bytes]) -> Iterator[Path]:
        """Write the query of a search to be; the directory goes again if the block fails."""
        directory = self.directory(search_id)
        directory.mkdir(parents=True)
        share(directory)
        try:
            path = self.query(search_id)
            with path.open("wb") as file:
                for chunk in chunks:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            yield path
        except BaseException:
            self.remove(search_id)
            raise

    def read_query(self, search_id: str) -> Iterator[bytes]:
        """The stored query in chunks."""
        with self.query(search_id).open("rb") as file:
            while chunk := file.read(1 << 20):
                yield chunk

    def remove_result(self, search_id: str, extension: str) -> None:
        """Delete the published output; the query stays, so that the search can be run again."""
        self.result(search_id, extension).unlink(missing_ok=True)

    def remove(self, search_id: str) -> None:
        """Delete everything of a search."""
        shutil.rmtree(self.directory(search_id), ignore_errors=True)

    def size(self, search_id: str) -> int:
        """Bytes on disk of everything the search has."""
        return sum(path.stat().st_size for path in self.directory(search_id).rglob("*"))

    def has_attempts(self, search_id: str) -> bool:
        """Whether attempts have left something."""
        return next(self.directory(search_id).glob("attempt-*"), None) is not None

    def age(self, search_id: str) -> timedelta:
        """Since when nothing was made or removed in the search's folder."""
        try:
            changed = self.directory(search_id).stat().st_mtime
        except FileNotFoundError:
            return timedelta(0)
        return self._clock.now() - datetime.fromtimestamp(changed, UTC)

    def ids(self) -> Iterator[str]:
        """The searches that have a directory."""
        if self._root.is_dir():
            yield from (path.name for path in self._root.iterdir() if path.is_dir())
