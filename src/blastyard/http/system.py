"""The HTTP API: databases, the queue, and whether the service is well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from blastyard.domain.errors import Unavailable
from blastyard.http.api import PREFIX, problems
from blastyard.http.installation import Installation
from blastyard.http.schemas import Alive, DatabaseList, QueueObject, Ready
from blastyard.service.view import database_shape, queue_shape

METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus' text format."""


def system_routes(yard: Installation, is_working: Callable[[], bool]) -> APIRouter:
    """``is_working`` says whether searches are being run by this process."""
    router = APIRouter(tags=["service"])

    @router.get(f"{PREFIX}/databases", response_model=DatabaseList, responses=problems(403, 503))
    def list_databases() -> Response:
        """The databases that a search may name."""
        found = [database_shape(database) for database in yard.databases.list()]
        return JSONResponse({"databases": found})

    @router.get(f"{PREFIX}/queue", response_model=QueueObject, responses=problems(403, 503))
    def get_queue() -> Response:
        """Who submits, what runs, who waits and why."""
        view = yard.searches.queue()
        return JSONResponse(queue_shape(view, yard.searches.behind(view)))

    @router.get("/healthz", response_model=Alive, responses=problems(403))
    async def health() -> Response:
        """Whether the process answers."""
        return JSONResponse({"status": "ok"})

    @router.get("/readyz", response_model=Ready, responses=problems(403, 503))
    def ready() -> Response:
        """Whether the stores answer, BLAST+ is there, and the worker is at work."""
        yard.searches.queue()
        yard.searches.page(limit=1)
        version = yard.toolchain.version()
        if not is_working():
            message = "the thread that runs searches has ended"
            raise Unavailable("worker_stopped", message, "start the service again, see its log")
        return JSONResponse({"status": "ready", "blast_version": version})

    @router.get("/metrics", include_in_schema=False)  # of the monitor, not of the API
    def metrics() -> Response:
        """What was counted since the start, and what stands in the queue now."""
        return Response(yard.instruments.exposition(), media_type=METRICS)

    return router
