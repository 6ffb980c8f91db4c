"""The web application: the API, the pages, and what guards both."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

from fastapi import FastAPI

from blastyard.http.api import search_routes
from blastyard.http.bell import Bell
from blastyard.http.guard import Guard
from blastyard.http.installation import Installation
from blastyard.http.page import add_static, page_routes
from blastyard.http.problem import install
from blastyard.http.reference import add_reference
from blastyard.http.system import system_routes


def create_app(
    yard: Installation,
    *,
    is_working: Callable[[], bool] = lambda: True,
    bell: Bell | None = None,
) -> FastAPI:
    """The application over an open installation.

    ``is_working`` says whether this process runs searches too (``/readyz`` tells). ``bell`` wakes
    the pages that are watched; who gives one closes it.
    """
    app = FastAPI(
        title="blastyard",
        summary="BLAST searches, one front door",
        version=version("blastyard"),
        docs_url=None,  # the framework's own pages load scripts from elsewhere
        redoc_url=None,
    )
    bell = bell or Bell(yard.documents.watch)
    app.include_router(search_routes(yard, bell))
    app.include_router(system_routes(yard, is_working))
    app.include_router(page_routes(yard))
    add_reference(app)
    add_static(app)
    install(app)
    app.add_middleware(Guard, host=yard.settings.host)
    return app
