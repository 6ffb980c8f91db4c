"""HTTP/1.1 messages on asyncio streams, as far as a proxy must understand them (RFC 9112)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

PIECE: Final = 1 << 16
HEAD_LIMIT: Final = 1 << 20
"""Bytes of a message's head, or of one line, that a stream must be able to hold."""

_OF_ONE_HOP: Final = frozenset({"connection", "keep-alive", "proxy-connection", "upgrade"})
_LENGTHS: Final = frozenset({"content-length", "transfer-encoding"})


class Broken(Exception):
    """The other side ended in the midst of a message, or spoke no HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first line's three parts and the header fields of a message."""

    first: tuple[str, str, str]
    fields: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        """The field's value; empty when there is none."""
        return next((value for key, value in self.fields if key.lower() == name), "")

    @property
    def is_chunked(self) -> bool:
        return self.get("transfer-encoding").lower() == "chunked"

    @property
    def status(self) -> int:
        """Of an answer."""
        return int(self.first[1])

    def chunked(self) -> Head:
        """The same head, for a body that comes in chunks."""
        fields = tuple(field for field in self.fields if field[0].lower() not in _LENGTHS)
        return Head(self.first, (*fields, ("Transfer-Encoding", "chunked")))

    def encoded(self, length: int | None = None) -> bytes:
        """For the next hop; with a length of its own, whatever it was."""
        lines = [" ".join(self.first).rstrip()]
        for key, value in self.fields:
            name = key.lower()
            if name not in _OF_ONE_HOP and not (length is not None and name in _LENGTHS):
                lines.append(f"{key}: {value}")
        if length is not None:
            lines.append(f"Content-Length: {length}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The next message's head; ``None`` when the other side ended instead. Raises `Broken`."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise Broken("ended in the midst of a head") from error
    except asyncio.LimitOverrunError as error:
        raise Broken("its head is too long") from error
    lines = raw.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ", 2)
    if len(parts) < 2:
        raise Broken(f"no HTTP: {lines[0]!r}")
    fields = [line.partition(":") for line in lines[1:] if line]
    return Head(
        (parts[0], parts[1], parts[2] if len(parts) == 3 else ""),
        tuple((key.strip(), value.strip()) for key, _, value in fields),
    )


def has_body(verb: str, answer: Head) -> bool:
    """Whether this answer to that method has a body at all."""
    status = answer.status
    bodiless = status < 200 or status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
    return verb != "HEAD" and not bodiless


async def read_body(
    reader: asyncio.StreamReader, head: Head, *, until_end: bool
) -> AsyncGenerator[bytes, None]:
    """The body as it comes, without its framing. Raises `Broken` when it ends too early.

    ``until_end``: with no length told it goes on until the other side ends (an answer's way).
    """
    if head.is_chunked:
        async for piece in _chunks(reader):
            yield piece
        return
    length = head.get("content-length")
    left = int(length) if length else (-1 if until_end else 0)
    while left != 0:
        piece = await reader.read(min(left, PIECE) if left > 0 else PIECE)
        if not piece:
            if left < 0:
                return
            raise Broken(f"{left} bytes of the body are missing")
        left -= len(piece) if left > 0 else 0
        yield piece


async def _chunks(reader: asyncio.StreamReader) -> AsyncGenerator[bytes, None]:
    try:
        while left := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            while left:
                piece = await reader.read(min(left, PIECE))
                if not piece:
                    raise Broken("ended in the midst of a chunk")
                left -= len(piece)
                yield piece
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass  # trailers
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise Broken("ended in the midst of a chunk") from error


LAST_CHUNK: Final = b"0\r\n\r\n"


def framed(piece: bytes, *, chunked: bool) -> bytes:
    """A piece of a body as it goes on the wire."""
    return b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece
