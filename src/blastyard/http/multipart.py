"""A form on its way in: its query goes to a file as it arrives, its other fields to memory.

The parser of python-multipart does the parsing; the web framework's own reader keeps text fields,
such as a pasted query, in memory whatever their size, and its files where it likes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from blastyard.domain.errors import CallerMistake

MAX_FIELD_BYTES: Final = 64 * 1024
MAX_FIELDS: Final = 500
QUERY_FIELDS: Final = frozenset({"query", "file"})


@dataclass(slots=True)
class Part:
    """One field. ``filename`` is ``None`` for text. A query has ``file``, others have ``text``."""

    name: str
    filename: str | None
    file: IO[bytes] | None = None
    text: bytearray = field(default_factory=bytearray)
    size: int = 0


class MultipartForm:
    """Reads ``multipart/form-data`` block by block. ``spool()`` opens a file for a query."""

    def __init__(self, content_type: str, spool: Callable[[], IO[bytes]]) -> None:
        _, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if not boundary:
            raise _broken("the boundary is missing")
        self._spool = spool
        self._header = (bytearray(), bytearray())
        self._disposition = b""
        self._part: Part | None = None
        self._ended = False
        self.fields: dict[str, list[str]] = defaultdict(list)
        self.queries: list[Part] = []
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_header_field": lambda d, a, b: self._header[0].extend(d[a:b]),
                    "on_header_value": lambda d, a, b: self._header[1].extend(d[a:b]),
                    "on_header_end": self._header_end,
                    "on_headers_finished": self._begin,
                    "on_part_data": self._data,
                    "on_part_end": self._end,
                    "on_end": self._finish,
                },
            )
        except FormParserError as error:
            raise _broken(str(error)) from error

    def write(self, block: bytes) -> None:
        """The next bytes of the body. Raises ``CallerMistake('request_invalid')``."""
        try:
            self._parser.write(block)
        except FormParserError as error:
            raise _broken(str(error)) from error

    def finish(self) -> None:
        """After the last block."""
        if not self._ended:
            raise _broken("it ends in the middle")

    def _header_end(self) -> None:
        name, value = self._header
        if bytes(name).lower() == b"content-disposition":
            self._disposition = bytes(value)
        self._header = (bytearray(), bytearray())

    def _begin(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._disposition = b""
        name = options.get(b"name", b"").decode("utf-8", "replace")
        filename = options.get(b"filename")
        self._part = Part(name, None if filename is None else filename.decode("utf-8", "replace"))
        if name in QUERY_FIELDS:
            self._part.file = self._spool()
            self.queries.append(self._part)
        if len(self.queries) + sum(map(len, self.fields.values())) > MAX_FIELDS:
            raise _broken(f"it has more than {MAX_FIELDS} fields")

    def _data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        if part is None:
            return
        part.size += end - start
        if part.file is not None:
            part.file.write(data[start:end])
        elif part.size <= MAX_FIELD_BYTES:
            part.text += data[start:end]
        else:
            raise _broken(f"the field {part.name[:50]!r} is longer than {MAX_FIELD_BYTES:,} bytes")

    def _end(self) -> None:
        part, self._part = self._part, None
        if part is not None and part.file is None:
            self.fields[part.name].append(part.text.decode("utf-8", "replace"))

    def _finish(self) -> None:
        self._ended = True


def _broken(what: str) -> CallerMistake:
    message = f"the form cannot be read: {what}"
    return CallerMistake("request_invalid", message, "send it as multipart/form-data (RFC 7578)")
