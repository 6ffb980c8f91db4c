"""What stands before every request: who may ask, and what every answer tells a browser.

The service has no users and listens on loopback, so the browser of whoever sits at the machine is
the way in for others. Two checks close it: the Host header must name this machine (a site that
makes its own name point to 127.0.0.1 sends its own name), and a request that changes something must
not come from another site. Programs that send neither Origin nor Sec-Fetch-Site are let through:
they are no browsers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from blastyard.domain.errors import BlastyardError, CallerMistake
from blastyard.http.problem import answer

LOG: Final = logging.getLogger(__name__)
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # not no-referrer: with it browsers send "Origin: null" with a form of our own
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """The outermost layer of the application. ``host`` is one more name of this machine."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._hosts = LOCAL | {host.strip("[]").lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, pass on, and answer what nobody else answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False
        status = 0

        async def tell(message: Message) -> None:
            nonlocal started, status
            if message["type"] == "http.response.start":
                started, status = True, message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self.require(scope["method"], Headers(scope=scope))
            await self._app(scope, receive, tell)
        except CallerMistake as error:
            await answer(Request(scope), error)(scope, receive, tell)
        except Exception:
            LOG.exception("%s %s", scope["method"], scope["path"])
            if started:
                raise
            await answer(Request(scope), _internal())(scope, receive, tell)
        level = logging.DEBUG if scope["method"] in SAFE else logging.INFO
        LOG.log(level, "%s %s %s", scope["method"], scope["path"], status)

    def require(self, method: str, headers: Headers) -> None:
        """Raise ``CallerMistake('origin_refused')`` unless the request may be answered."""
        host = headers.get("host", "")
        if _address(f"//{host}").hostname not in self._hosts:
            raise _refused(
                f"the Host header says {host[:100]!r}", "open the address that `serve` printed"
            )
        if method in SAFE:
            return
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise _refused("the browser says that another site sent it", _OWN_PAGE)
        origin = headers.get("origin")
        if origin is not None and _address(origin).netloc.lower() != host.lower():
            raise _refused(f"its Origin is {origin[:100]!r}", _OWN_PAGE)


_OWN_PAGE: Final = "send the form from blastyard's own page"


def _address(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:
        return SplitResult("", "", "", "", "")


def _refused(message: str, step: str) -> CallerMistake:
    return CallerMistake("origin_refused", message, step)


def _internal() -> BlastyardError:
    step = "look at the service's log; if it happens again, report it with the log's lines"
    return BlastyardError("internal", "the service met an error that it did not expect", step)
