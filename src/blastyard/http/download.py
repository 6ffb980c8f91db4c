"""The output of a search as a file."""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from blastyard.domain.errors import CallerMistake
from blastyard.domain.outfmt import OutputFormat
from blastyard.domain.search import Result, Search
from blastyard.http.problem import problem_response
from blastyard.service.searches import Searches

_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def download(request: Request, searches: Searches, search_id: str) -> Response:
    """The result file. Its checksum is the ETag; one byte range may be asked for.

    Raises what :meth:`Searches.result` raises.
    """
    path = searches.result(search_id)
    search = searches.get(search_id)
    if search.result is None:
        raise AssertionError(f"search {search.id} has a result file and no result")
    etag = f'"{search.result.sha256}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if _matches(request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers=headers)
    try:
        ranged = _is_range(request.headers.get("range", ""), search.result)
    except CallerMistake as error:
        beyond = problem_response(error)
        beyond.headers["Content-Range"] = f"bytes */{search.result.size}"
        return beyond
    output_format = OutputFormat.parse(search.request.output_format)
    return _Download(
        path,
        headers=headers,
        media_type=output_format.media_type,
        filename=filename(search),
        ranged=ranged,
    )


def filename(search: Search) -> str:
    """What the file is called where it is saved."""
    extension = search.result.extension if search.result else "txt"
    return f"{search.request.program}-{search.id[:8]}.{extension}"


class _Download(FileResponse):
    def __init__(
        self, path: object, *, headers: dict[str, str], media_type: str, filename: str, ranged: bool
    ) -> None:
        super().__init__(str(path), headers=headers, media_type=media_type, filename=filename)
        self._ranged = ranged

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._ranged:
            kept = [pair for pair in scope["headers"] if pair[0] != b"range"]
            scope = {**scope, "headers": kept}
        await super().__call__(scope, receive, send)


def _matches(asked: str, etag: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in asked.split(",")]
    return etag in tags or "*" in tags


def _is_range(asked: str, result: Result) -> bool:
    """Whether ``asked`` is one range of the file; others are ignored (RFC 9110, section 14.2).

    Raises ``CallerMistake('range_unsatisfiable')``.
    """
    found = _RANGE.fullmatch(asked.strip())
    if found is None or found.group() == "bytes=-":
        return False
    first, last = found.groups()
    if first and last and int(first) > int(last):
        return False
    if int(first) >= result.size if first else int(last) == 0 or result.size == 0:
        raise CallerMistake(
            "range_unsatisfiable",
            f"the result has {result.size:,} bytes; {asked[:100]!r} is beyond them",
            "ask without Range for the whole of it",
        )
    return True
