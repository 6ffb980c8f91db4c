"""An open watch: the events of an API server, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar

import msgspec

from blastyard.kube.error import ServerTrouble, refusal, status_of
from blastyard.kube.review import Access
from blastyard.kube.wire import Stream

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """An object was made or changed."""

    object: T
    version: str


@dataclass(frozen=True, slots=True)
class Gone(Generic[T]):
    """An object was deleted; as it was last."""

    object: T
    version: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing happened up to this version."""

    version: str


@dataclass(frozen=True, slots=True)
class Expired:
    """The server has forgotten what happened since the version that was asked for: list anew."""


class _Line(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str


class _Named(msgspec.Struct, frozen=True):
    metadata: _Meta


_LINE: Final = msgspec.json.Decoder(_Line)
_NAMED: Final = msgspec.json.Decoder(_Named)


class Watching(Generic[T]):
    """The events of one watch, each object decoded as ``item``. Iterated by one thread."""

    def __init__(self, stream: Stream, item: type[T], access: Access) -> None:
        self._stream = stream
        self._access = access
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(item)

    def events(self, quiet: float) -> Iterator[Changed[T] | Gone[T] | Bookmark | Expired]:
        """What happens, until the server has had enough, or :class:`Expired`.

        Raises ``Unavailable('cluster_unavailable')`` when the stream breaks, when nothing came for
        ``quiet`` seconds, and for what cannot be read. What the server refuses is raised as it is.
        """
        if self._stream.status == HTTPStatus.GONE:
            yield Expired()
            return
        for line in self._stream.lines(quiet):
            if not line.strip():
                continue
            event = self._event(line)
            yield event
            if isinstance(event, Expired):
                return

    def close(self) -> None:
        """Stop watching, from any thread."""
        self._stream.close()

    def _event(self, line: bytes) -> Changed[T] | Gone[T] | Bookmark | Expired:
        try:
            told = _LINE.decode(line)
            if told.type == "ERROR":
                return self._error(bytes(told.object))
            version = _NAMED.decode(told.object).metadata.resource_version
            match told.type:
                case "BOOKMARK":
                    return Bookmark(version)
                case "DELETED":
                    return Gone(self._decoder.decode(told.object), version)
                case _:
                    return Changed(self._decoder.decode(told.object), version)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ServerTrouble(
                f"an event of {self._access} cannot be read: {error}",
                "look for a proxy that cuts long answers short",
                HTTPStatus.OK,
            ) from error

    def _error(self, body: bytes) -> Expired:
        status = status_of(body)
        code = status.code if status else 0
        if code == HTTPStatus.GONE:
            return Expired()
        raise refusal(self._access, code, body)
