"""The HTTP API: searches."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from blastyard.domain.errors import CallerMistake
from blastyard.domain.job import State
from blastyard.http.bell import Bell
from blastyard.http.download import download
from blastyard.http.installation import Installation
from blastyard.http.problem import MEDIA_TYPE
from blastyard.http.schemas import (
    EventList,
    Problem,
    SearchBody,
    SearchObject,
    SearchPage,
    SearchWords,
)
from blastyard.http.stream import follow
from blastyard.http.submission import Reception
from blastyard.service.searches import Submitted

PREFIX: Final = "/api/v1"
Id = Annotated[
    str, Path(description="the id, or the beginning of it (at least 4 characters)", max_length=100)
]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problem answers of a route, for its description."""
    content = {MEDIA_TYPE: {"schema": Problem.model_json_schema()}}
    return {
        status: {"description": "A problem (RFC 9457)", "content": content} for status in statuses
    }


def _body() -> dict[str, Any]:
    words = SearchWords.model_json_schema()
    form = {
        **words,
        "properties": {**words["properties"], "query": {"type": "string", "format": "binary"}},
        "required": [*words["required"], "query"],
    }
    text = {"schema": {"type": "string"}}
    content = {
        "application/json": {"schema": SearchBody.model_json_schema()},
        "multipart/form-data": {"schema": form},
        "text/x-fasta": text,
    }
    text_note = "With text/x-fasta the other fields stand in the address, as in ?program=blastn"
    return {"requestBody": {"required": True, "content": content, "description": text_note}}


def search_routes(yard: Installation, bell: Bell) -> APIRouter:
    """All about searches."""
    router = APIRouter(prefix=f"{PREFIX}/searches", tags=["searches"])
    _add_submission(router, yard)
    _add_looking(router, yard, bell)
    _add_changing(router, yard)
    return router


def _add_submission(router: APIRouter, yard: Installation) -> None:
    searches, runner = yard.searches, yard.runner
    reception = Reception(yard)

    @router.post(
        "",
        status_code=201,
        response_model=SearchObject,
        openapi_extra=_body(),
        responses={
            200: {"model": SearchObject, "description": "The key had brought it before"},
            **problems(403, 404, 409, 413, 415, 422, 500, 503),
        },
    )
    async def submit_search(
        request: Request,
        idempotency_key: Annotated[
            str | None, Header(description="the same key and question: the same search")
        ] = None,
    ) -> Response:
        """Ask for a search. It is checked at once and then waits for its turn."""
        async with reception.received(request) as asked:
            draft = asked.draft(idempotency_key)
            submitted = await run_in_threadpool(searches.submit, draft, asked.query, runner=runner)
        return await run_in_threadpool(answer, submitted)

    @router.post(
        "/{search_id}/rerun",
        status_code=201,
        response_model=SearchObject,
        responses=problems(403, 404, 410, 422, 500, 503),
    )
    def rerun_search(search_id: Id) -> Response:
        """Ask the same again, as a new search over the stored query."""
        return answer(searches.rerun(search_id, runner=runner))

    def answer(submitted: Submitted) -> Response:
        search = submitted.search
        headers = {"Location": f"{PREFIX}/searches/{search.id}"}
        status = 201 if submitted.created else 200
        return JSONResponse(searches.shape(search), status, headers=headers)


def _add_looking(router: APIRouter, yard: Installation, bell: Bell) -> None:
    searches = yard.searches

    @router.get("", response_model=SearchPage, responses=problems(403, 422, 503))
    def list_searches(
        state: Annotated[list[State] | None, Query(description="one or several")] = None,
        user: Annotated[str | None, Query(description="of one user")] = None,
        tag: Annotated[str | None, Query(description="with this tag")] = None,
        limit: Annotated[int, Query(ge=1, le=500, description="how many, at most 500")] = 100,
        before: Annotated[str | None, Query(description="next of the page before")] = None,
    ) -> Response:
        """Searches, newest first, page by page."""
        page = searches.page(
            states=frozenset(state or ()), user=user, tag=tag, before=_cursor(before), limit=limit
        )
        following = str(page[-1].sequence) if len(page) == limit else None
        return JSONResponse({"searches": searches.shapes(page), "next": following})

    @router.get("/{search_id}", response_model=SearchObject, responses=problems(403, 404, 422, 503))
    def get_search(search_id: Id) -> Response:
        """One search, with its place in the queue as it is now."""
        return JSONResponse(searches.shape(searches.get(search_id)))

    @router.get(
        "/{search_id}/events", response_model=EventList, responses=problems(403, 404, 422, 503)
    )
    def list_events(search_id: Id) -> Response:
        """What has happened to a search, oldest first."""
        return JSONResponse({"events": searches.events(search_id)})

    @router.get(
        "/{search_id}/stream",
        response_class=Response,
        responses={
            200: {"description": "Server-sent events", "content": {"text/event-stream": {}}},
            **problems(403, 404, 422, 503),
        },
    )
    def stream_search(search_id: Id) -> Response:
        """The search object at once and after each change; the last event is named end."""
        return follow(searches, bell, searches.get(search_id).id)

    _add_results(router, yard)


def _add_results(router: APIRouter, yard: Installation) -> None:
    def results(request: Request, search_id: Id) -> Response:
        """The output file. The ETag is its SHA-256; Range and If-None-Match are understood.

        While there is none: 409 before the search has finished, 410 when the result was deleted,
        and the search's own failure when it failed.
        """
        return download(request, yard.searches, search_id)

    responses: dict[int | str, dict[str, Any]] = {
        200: {"description": "The output of BLAST+", "content": {"*/*": {}}},
        206: {"description": "A part of it", "content": {"*/*": {}}},
        304: {"description": "It has not changed"},
        **problems(403, 404, 409, 410, 416, 422, 500, 503, 507),
    }
    path = "/{search_id}/results"
    router.get(path, response_class=Response, responses=responses)(results)
    router.head(path, include_in_schema=False)(results)


def _add_changing(router: APIRouter, yard: Installation) -> None:
    searches = yard.searches

    @router.post(
        "/{search_id}/cancel",
        response_model=SearchObject,
        responses={
            202: {"model": SearchObject, "description": "It runs, and is being ended"},
            **problems(403, 404, 422, 503),
        },
    )
    def cancel_search(search_id: Id) -> Response:
        """End a search wherever it is; no error when it has ended already."""
        search = searches.cancel(search_id)
        return JSONResponse(searches.shape(search), 200 if search.state.is_terminal else 202)

    @router.delete("/{search_id}", status_code=204, responses=problems(403, 404, 409, 422, 503))
    def delete_search(search_id: Id) -> Response:
        """Forget an ended search and its files."""
        searches.delete(search_id)
        return Response(status_code=204)


def _cursor(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        message = f"{text[:50]!r} is no cursor of a page"
        raise CallerMistake("request_invalid", message, "take `next` of the page before")
    return int(text)
