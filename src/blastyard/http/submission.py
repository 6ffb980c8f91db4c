"""A search on its way in, in any of the forms it may have.

``application/json`` for queries of moderate size; ``multipart/form-data`` and plain FASTA
(``text/x-fasta``, the other fields in the address) for any size: those go to an unnamed file in the
data directory as they arrive, so memory stays small and nothing is left of a broken upload.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import IO, Any, Final, Protocol

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from blastyard.domain.errors import CallerMistake
from blastyard.http.installation import Installation
from blastyard.http.multipart import MultipartForm, Part
from blastyard.http.problem import request_invalid
from blastyard.http.schemas import SearchBody, SearchWords
from blastyard.service.draft import Draft

MIB: Final = 1 << 20
BLOCK: Final = MIB
MAX_JSON_BYTES: Final = 16 * MIB
MAX_EXTRA_BYTES: Final = MIB
"""What a body may be longer than the largest query."""
SOURCE: Final = "the query"
PLAIN: Final = frozenset(
    {"text/x-fasta", "text/plain", "application/octet-stream", "application/gzip"}
)
_LISTS: Final = frozenset({"options", "tags"})


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody asks. ``query`` may be read once."""

    words: Mapping[str, Any]
    query: Iterator[bytes]
    source: str = SOURCE
    pasted: IO[bytes] | None = None
    """A query that was typed into a form, to show it again."""

    def draft(self, key: str | None = None) -> Draft:
        """For the service. Raises ``CallerMistake('request_invalid')``."""
        try:
            words = SearchWords.model_validate(self.words)
        except ValidationError as error:
            raise request_invalid(error.errors()) from None
        return Draft(
            words.program,
            words.database,
            words.format,
            tuple(words.options),
            words.user,
            words.priority,
            words.title,
            tuple(words.tags),
            key,
            self.source,
        )


class Sink(Protocol):
    """Takes a body, block by block."""

    def write(self, block: bytes, /) -> object:
        """The next bytes."""
        ...


class Reception:
    """Receives searches."""

    def __init__(self, yard: Installation) -> None:
        self._folder = str(yard.settings.directory)
        self._limit = yard.settings.query_max_mb * MIB + MAX_EXTRA_BYTES

    @asynccontextmanager
    async def received(self, request: Request) -> AsyncIterator[Asked]:
        """The whole request; what it holds goes when the block ends."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        with ExitStack() as files:
            if kind == "application/json":
                yield await self._json(request)
            elif kind == "multipart/form-data":
                yield await self._form(request, files)
            elif kind in PLAIN:
                yield await self._plain(request, files)
            else:
                step = "send application/json, multipart/form-data or text/x-fasta"
                message = f"the body is {kind or 'of no stated kind'}"
                raise CallerMistake("media_type", message, step)

    async def _json(self, request: Request) -> Asked:
        body = bytearray()
        async for block in _blocks(request, MAX_JSON_BYTES):
            body += block
        try:
            whole = SearchBody.model_validate_json(bytes(body))
        except ValidationError as error:
            raise request_invalid(error.errors()) from None
        query = whole.query.encode("utf-8", "surrogatepass")
        return Asked(whole.model_dump(exclude={"query"}), iter([query]))

    async def _plain(self, request: Request, files: ExitStack) -> Asked:
        spool = self._spool(files)
        await self._fill(request, spool)
        words: dict[str, Any] = {}
        for name, value in request.query_params.multi_items():
            _put(words, name, value)
        return Asked(words, _read(spool))

    async def _form(self, request: Request, files: ExitStack) -> Asked:
        form = MultipartForm(request.headers["content-type"], lambda: self._spool(files))
        await self._fill(request, form)
        form.finish()
        words: dict[str, Any] = {}
        for name, values in form.fields.items():
            for value in values:
                _put(words, name, value)
        return _asked(words, [part for part in form.queries if part.size])

    async def _fill(self, request: Request, sink: Sink) -> None:
        async for block in _blocks(request, self._limit):
            await run_in_threadpool(sink.write, block)

    def _spool(self, files: ExitStack) -> IO[bytes]:
        spool = tempfile.SpooledTemporaryFile(max_size=MIB, dir=self._folder)  # noqa: SIM115
        return files.enter_context(spool)


async def _blocks(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body in blocks of about a MiB. Raises ``CallerMistake('query_too_large')``."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    block = bytearray()
    total = 0
    async for chunk in request.stream():
        total += len(chunk)
        if total > limit:
            raise _too_large(limit)
        block += chunk
        if len(block) >= BLOCK:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)


def _too_large(limit: int) -> CallerMistake:
    message = f"the body is longer than {limit:,} bytes"
    step = "send it as text/x-fasta" if limit == MAX_JSON_BYTES else "split the query"
    return CallerMistake("query_too_large", message, step)


def _put(words: dict[str, Any], name: str, value: str) -> None:
    if name in _LISTS:
        words.setdefault(name, []).append(value)
    elif name in words:
        message = f"the field {name[:50]!r} is there more than once"
        raise CallerMistake("request_invalid", message, "send it once")
    else:
        words[name] = value


def _asked(words: dict[str, Any], queries: list[Part]) -> Asked:
    pasted = next((part.file for part in queries if part.filename is None), None)
    if len(queries) > 1:
        return Asked(words, _several(), pasted=pasted)
    if pasted is not None:
        return Asked(words, _with_lf(_read(pasted)), pasted=pasted)
    for part in queries:
        if part.file is not None:
            return Asked(words, _read(part.file), _shown(part.filename or ""))
    return Asked(words, iter(()))


def _several() -> Iterator[bytes]:
    message = "there is more than one query: a pasted one and a file, or several files"
    raise CallerMistake("request_invalid", message, "empty the text box, or choose no file")
    yield b""


def _shown(filename: str) -> str:
    """A file's name as messages may have it."""
    name = "".join(c for c in filename.replace("\\", "/").rpartition("/")[2] if c.isprintable())
    return name[:100] or SOURCE


def _read(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while block := file.read(BLOCK):
        yield block


def _with_lf(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Undo what browsers do to typed text: every line end becomes CR LF (HTML, form encoding)."""
    held = b""
    for block in blocks:
        text = held + block
        held = b"\r" if text.endswith(b"\r") else b""
        yield text.removesuffix(b"\r").replace(b"\r\n", b"\n")
    if held:
        yield held
