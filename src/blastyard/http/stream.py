"""A search as server-sent events: the object at once, and again whenever it has changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from blastyard.domain.errors import BlastyardError, NotFound
from blastyard.domain.job import TERMINAL
from blastyard.http.bell import Bell
from blastyard.service.searches import Searches
from blastyard.service.view import Shape

FLOOR_SECONDS: Final = 15.0
"""How long a wake-up may stay lost; also keeps the connection from looking dead."""
LEAST_SECONDS: Final = 0.2
"""Between two looks, however busy the queue is."""

_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_QUIET: Final = b": nothing new\n\n"


def event(name: str, shape: Shape) -> bytes:
    """One event of the stream."""
    return f"event: {name}\ndata: {json.dumps(shape, separators=(',', ':'))}\n\n".encode()


def follow(searches: Searches, bell: Bell, search_id: str) -> StreamingResponse:
    """Events ``search`` until it has ended, then ``end``; both hold the search object."""

    def look() -> Shape:
        return searches.shape(searches.get(search_id))

    return StreamingResponse(changes(look, bell), media_type="text/event-stream", headers=_HEADERS)


async def changes(look: Callable[[], Shape], bell: Bell) -> AsyncIterator[bytes]:
    """What ``look`` sees, each time it differs."""
    last: Shape | None = None
    with bell.heard() as ear:
        while not bell.closed:
            ear.clear()
            try:
                shape = await run_in_threadpool(look)
            except NotFound:
                return
            except BlastyardError:
                shape = last or {}
            if shape.get("state") in TERMINAL:
                yield event("end", shape)
                return
            yield event("search", shape) if shape != last else _QUIET
            last = shape
            await asyncio.sleep(LEAST_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(ear.wait(), FLOOR_SECONDS)
