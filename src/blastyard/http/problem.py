"""Every error as an RFC 9457 problem: for programs as JSON, for a person in a browser as a page.

``domain.errors.CODES`` decides the status and the title; ``type`` leads to the list of codes in the
reference at ``/docs``. Besides the fields of the RFC a problem has ``code``, ``next_step`` and, for
a mistake with a place in the query, ``position {line, column}``.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from blastyard.domain.errors import CODES, BlastyardError, CallerMistake, Unavailable
from blastyard.http.template import render

LOG: Final = logging.getLogger(__name__)
MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER: Final = {"Retry-After": "2"}

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_CODES_BY_STATUS: Final[Mapping[int, str]] = {
    404: "route_unknown",
    405: "method_unknown",
    415: "media_type",
    416: "range_unsatisfiable",
}
_STEPS: Final[Mapping[str, str]] = {
    "route_unknown": "the reference at /docs lists the addresses",
    "method_unknown": "the Allow header and the reference at /docs list the methods",
    "request_invalid": "the reference at /docs says what a request may hold",
}


class ProblemResponse(JSONResponse):
    """JSON of media type ``application/problem+json``."""

    media_type = MEDIA_TYPE


def describe(error: BlastyardError) -> dict[str, Any]:
    """The problem object of an error."""
    meaning = CODES[error.code]
    problem: dict[str, Any] = {
        "type": f"/docs#{error.code}",
        "title": meaning.title,
        "status": meaning.http_status,
        "detail": error.message,
        "code": error.code,
        "next_step": error.next_step,
    }
    if error.position is not None:
        line, column = error.position
        problem["position"] = {"line": line, "column": column or None}
    return problem


def problem_response(error: BlastyardError) -> ProblemResponse:
    """An error as JSON."""
    problem = describe(error)
    headers = RETRY_AFTER if isinstance(error, Unavailable) else None
    return ProblemResponse(problem, problem["status"], headers=headers)


def wants_page(method: str, path: str, accept: str) -> bool:
    """Whether a person looks at the answer, rather than a program."""
    return not path.startswith("/api/") and method in ("GET", "POST") and "text/html" in accept


def answer(request: Request, error: BlastyardError) -> Response:
    """An error in the form its reader can use."""
    if not wants_page(request.method, request.url.path, request.headers.get("accept", "")):
        return problem_response(error)
    problem = describe(error)
    return render("error.html", problem["status"], problem=problem)


def install(app: FastAPI) -> None:
    """Make every error of ``app`` a problem."""

    async def known(request: Request, error: Exception) -> Response:
        if not isinstance(error, BlastyardError):
            raise error
        return answer(request, error)

    async def invalid(request: Request, error: Exception) -> Response:
        if not isinstance(error, RequestValidationError):
            raise error
        return answer(request, request_invalid(error.errors()))

    async def refused(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        response = answer(request, _of_framework(error, request))
        response.headers.update(error.headers or {})
        return response

    async def system(request: Request, error: Exception) -> Response:
        if isinstance(error, OSError) and error.errno in _FULL:
            step = "free space in the data directory, then try again"
            return answer(request, Unavailable("disk_full", "there is no space left", step))
        raise error

    async def gone(_request: Request, _error: Exception) -> Response:
        return Response(status_code=400)  # nobody is there to read it

    app.add_exception_handler(BlastyardError, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(OSError, system)
    app.add_exception_handler(ClientDisconnect, gone)


def request_invalid(errors: Any) -> CallerMistake:
    """What pydantic found, as one sentence."""
    found = [f"{_where(each['loc'])}: {each['msg']}" for each in errors]
    more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
    return CallerMistake("request_invalid", "; ".join(found[:5]) + more, _STEPS["request_invalid"])


def _where(location: tuple[Any, ...]) -> str:
    parts = location[1:] if location and location[0] in ("query", "path", "body") else location
    return ".".join(str(part) for part in parts) or "the request"


def _of_framework(error: HTTPException, request: Request) -> BlastyardError:
    code = _CODES_BY_STATUS.get(error.status_code, "request_invalid")
    message = str(error.detail)
    if code == "route_unknown":
        message = f"nothing is at {request.url.path}"
    elif code == "method_unknown":
        message = f"{request.url.path} does not answer {request.method}"
    return CallerMistake(code, message, _STEPS.get(code, _STEPS["request_invalid"]))
