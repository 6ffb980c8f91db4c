"""Where results are put: a directory, or what fsspec reaches by a URL.

``s3://``, ``gs://`` and ``abfs://`` need a package each (s3fs, gcsfs, adlfs). ElasticBLAST names an
Azure container by its ``https://`` address, which is taken for what it means.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, TypeVar, cast
from urllib.parse import unquote, urlsplit

from blastyard.domain.errors import BlastyardError, Misconfigured, Unavailable

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_AZURE: Final = re.compile(
    r"https://(?P<account>[a-z0-9]+)\.blob\.core\.windows\.net/(?P<container>[^/?#]+)/?(?P<path>[^?#]*)"
)
_PACKAGES: Final = {
    "s3": "s3fs", "s3a": "s3fs",
    "gs": "gcsfs", "gcs": "gcsfs",
    "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs",
}  # fmt: skip

T = TypeVar("T")


class Location(Protocol):
    """The files of one search's results. Raises ``Unavailable`` when it cannot be told."""

    @property
    def shown(self) -> str:
        """Its name for a person."""
        ...

    def files(self) -> Mapping[str, int]:
        """Names of all files there, with ``/`` between folders, and their sizes in bytes.

        Empty when there is no such location (yet).
        """
        ...

    def open(self, name: str) -> BinaryIO:
        """Read one of them."""
        ...


def location(address: str) -> Location:
    """The location of an absolute path or a URL.

    Raises ``Misconfigured`` for what cannot be one, and when a package for it is not installed.
    """
    if not _URL.match(address):
        if not address.startswith("/"):
            raise _wrong(f"the results location {address!r} is neither a URL nor an absolute path")
        return Directory(Path(address))
    if address.startswith("file://"):
        parts = urlsplit(address)
        if parts.netloc not in ("", "localhost"):
            raise _wrong(f"the results location {address!r} names another machine")
        return Directory(Path(unquote(parts.path)))
    options: dict[str, Any] = {}
    if azure := _AZURE.fullmatch(address):
        options = {"account_name": azure["account"]}
        address = f"abfs://{azure['container']}/{azure['path']}"
    return Remote(address, options)


class Directory:
    """A folder that this machine sees. What is no regular file in it is not there: a link could
    lead to what only this account may read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def shown(self) -> str:
        """See the protocol."""
        return str(self._path)

    def files(self) -> Mapping[str, int]:
        """See the protocol."""
        try:
            return dict(self._found())
        except OSError as error:
            raise _unavailable(self.shown, error) from error

    def _found(self) -> Iterator[tuple[str, int]]:
        if not self._path.is_dir():
            if not self._path.parent.is_dir():
                raise FileNotFoundError(f"{self._path.parent} is not there")
            return
        for folder, _, names in os.walk(self._path, onerror=_raise):
            for name in names:
                file = Path(folder, name)
                seen = file.lstat()
                if stat.S_ISREG(seen.st_mode):
                    yield file.relative_to(self._path).as_posix(), seen.st_size

    def open(self, name: str) -> BinaryIO:
        """See the protocol."""
        try:
            return os.fdopen(os.open(self._path / name, os.O_RDONLY | os.O_NOFOLLOW), "rb")
        except OSError as error:
            raise _unavailable(self.shown, error) from error


class Remote:
    """What fsspec reaches."""

    def __init__(self, address: str, options: Mapping[str, Any]) -> None:
        self._address = address.rstrip("/")
        self._root = ""
        self._files = self._reached(dict(options))

    def _reached(self, options: dict[str, Any]) -> Any:
        protocol = self._address.partition("://")[0].lower()
        package = _PACKAGES.get(protocol, "fsspec")
        try:
            # a vendor's package, which only who keeps results there must have
            import fsspec  # type: ignore[import-untyped]  # noqa: PLC0415

            fresh = {"skip_instance_cache": True, "use_listings_cache": False}
            files, root = fsspec.core.url_to_fs(self._address, **options, **fresh)
        except ImportError as error:
            raise Misconfigured(
                "dependency_missing",
                f"results at {self._address} need the Python package {package} ({error})",
                f"pip install {package}",
            ) from error
        except ValueError as error:
            raise _wrong(f"the results location {self._address!r}: {error}") from error
        self._root = str(root).rstrip("/")
        return files

    @property
    def shown(self) -> str:
        """See the protocol."""
        return self._address

    def files(self) -> Mapping[str, int]:
        """See the protocol."""
        found = self._asked(lambda: self._files.find(self._root, detail=True))
        prefix = f"{self._root}/"
        return {
            str(name).removeprefix(prefix): int(said.get("size") or 0)
            for name, said in found.items()
            if str(name).startswith(prefix) and said.get("type") == "file"
        }

    def open(self, name: str) -> BinaryIO:
        """See the protocol."""
        file = self._asked(lambda: self._files.open(f"{self._root}/{name}", "rb"))
        return cast("BinaryIO", file)

    def _asked(self, call: Callable[[], T]) -> T:
        with reading(self._address):
            return call()


@contextmanager
def reading(shown: str) -> Iterator[None]:
    """What goes wrong while files are read there is ``Unavailable``.

    The packages behind fsspec have no error in common: whatever they raise is not an answer.
    """
    try:
        yield
    except BlastyardError:
        raise
    except Exception as error:
        raise _unavailable(shown, error) from error


def _raise(error: OSError) -> None:
    raise error


def _wrong(message: str) -> Misconfigured:
    return Misconfigured(
        "settings_invalid", message, "for example /data/results, s3://bucket/results"
    )


def _unavailable(shown: str, error: Exception) -> Unavailable:
    return Unavailable(
        "results_unavailable",
        f"the results location {shown} cannot be read: {type(error).__name__}: {error}",
        "look whether it is there and may be read from here; it is tried again",
    )
