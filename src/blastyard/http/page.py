"""The pages for people: one to ask, one to follow a search and read its hits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any, Final

from fastapi import APIRouter, FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from blastyard.domain.errors import BlastyardError, CallerMistake
from blastyard.domain.job import State
from blastyard.domain.outfmt import OutputFormat
from blastyard.domain.program import Program
from blastyard.domain.search import Search
from blastyard.http.download import filename
from blastyard.http.hit import HitTable, read_hits
from blastyard.http.installation import Installation
from blastyard.http.problem import describe
from blastyard.http.submission import Asked, Reception
from blastyard.http.template import FOLDER, render
from blastyard.service.view import database_shape, queue_shape

FORMAT: Final = "7 std stitle"
"""Tabular, names the queries without hits too, and says when it is complete."""
_EMPTY: Final = {"query": "", "database": "", "program": "", "title": ""}
RECENT: Final = 20
SHOWN_AGAIN_BYTES: Final = 1 << 20
SHOWN_LETTERS: Final = 60


class Pages:
    """What the pages show."""

    def __init__(self, yard: Installation) -> None:
        self._yard = yard

    def home(
        self,
        entered: Mapping[str, Any] | None = None,
        problem: Mapping[str, Any] | None = None,
    ) -> Response:
        """The form, the queue and what was asked lately; with what was wrong, where it was."""
        searches = self._yard.searches
        view = searches.queue()
        return render(
            "home.html",
            problem["status"] if problem else 200,
            databases=[database_shape(each) for each in self._yard.databases.list()],
            programs=list(Program),
            entered={**_EMPTY, **(entered or {})},
            problem=problem,
            queue=queue_shape(view, searches.behind(view)),
            recent=searches.shapes(searches.page(limit=RECENT)),
        )

    def search(self, search_id: str) -> Response:
        """One search."""
        searches = self._yard.searches
        search = searches.get(search_id)
        return render(
            "search.html",
            search=searches.shape(search),
            format_title=OutputFormat.parse(search.request.output_format).title,
            events=searches.events(search.id),
            **self._outcome(search),
        )

    def _outcome(self, search: Search) -> dict[str, Any]:
        """Table and file of a completed search, or why there is none."""
        outcome: dict[str, Any] = {"table": None, "filename": "", "gone": None}
        if search.state is State.COMPLETED:
            try:
                path = self._yard.searches.result(search.id)
                output_format = OutputFormat.parse(search.request.output_format)
                outcome["table"] = _named(read_hits(path, output_format))
                outcome["filename"] = filename(search)
            except (BlastyardError, FileNotFoundError):
                outcome["gone"] = True
        return outcome


def _named(table: HitTable | None) -> HitTable | None:
    if table is not None:
        for query in table.queries:
            query.name = query.name or "a query without a name"
    return table


def page_routes(yard: Installation) -> APIRouter:
    """The pages."""
    router = APIRouter(include_in_schema=False)
    pages = Pages(yard)
    searches, runner = yard.searches, yard.runner
    reception = Reception(yard)

    @router.get("/")
    def home() -> Response:
        return pages.home()

    @router.get("/searches")
    def searches_page() -> Response:
        return RedirectResponse("/", 303)

    @router.post("/searches")
    async def submit(request: Request) -> Response:
        async with reception.received(request) as asked:
            return await run_in_threadpool(take, asked)

    def take(asked: Asked) -> Response:
        try:
            draft = _with_format(asked).draft()
            search = searches.submit(draft, asked.query, runner=runner).search
        except CallerMistake as error:
            return pages.home(_entered(asked), {**describe(error), **_excerpt(asked, error)})
        return RedirectResponse(f"/searches/{search.id}", 303)

    @router.get("/searches/{search_id}")
    def show(search_id: str) -> Response:
        return pages.search(search_id)

    @router.post("/searches/{search_id}/cancel")
    def cancel(search_id: str) -> Response:
        return RedirectResponse(f"/searches/{searches.cancel(search_id).id}", 303)

    @router.post("/searches/{search_id}/rerun")
    def rerun(search_id: str) -> Response:
        again = searches.rerun(search_id, runner=runner).search
        return RedirectResponse(f"/searches/{again.id}", 303)

    return router


def add_static(app: FastAPI) -> None:
    """Style, script and icon."""
    app.mount("/static", StaticFiles(directory=FOLDER.parent / "static"), name="static")


def _with_format(asked: Asked) -> Asked:
    words = {"format": FORMAT, **asked.words}
    return Asked(words, asked.query, asked.source, asked.pasted)


def _entered(asked: Asked) -> dict[str, Any]:
    """What was in the form, to be corrected there."""
    pasted = ""
    if asked.pasted is not None:
        pasted = _beginning(asked.pasted)
    return {**asked.words, "query": pasted}


def _beginning(file: IO[bytes]) -> str:
    file.seek(0)
    text = file.read(SHOWN_AGAIN_BYTES + 1)
    return text.decode("utf-8", "replace") if len(text) <= SHOWN_AGAIN_BYTES else ""


def _excerpt(asked: Asked, error: BlastyardError) -> dict[str, Any]:
    """The line with the mistake, cut into what is before it, it, and what follows."""
    nothing: dict[str, Any] = {"excerpt": None}
    if asked.pasted is None or error.position is None:
        return nothing
    number, column = error.position
    lines = _beginning(asked.pasted).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not 0 < column <= len(lines[number - 1] if number <= len(lines) else ""):
        return nothing
    line, at = lines[number - 1], column - 1
    before, after = line[max(0, at - SHOWN_LETTERS) : at], line[at + 1 : at + 1 + SHOWN_LETTERS]
    return {"excerpt": (before, line[at], after)}
