"""The service's process: web server in the main thread, worker beside it, an orderly end.

At SIGTERM, SIGINT or SIGHUP nothing new is taken, watched pages are told, requests under way get a
few seconds, the worker makes no further step, and what it looked after goes back to the queue; the
BLAST+ commands that ran are ended. A second signal does not hurry the hand-over: it is what keeps
others from waiting.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket
from threading import Thread
from types import FrameType
from typing import Final, Protocol

import uvicorn

from blastyard.domain.search import Search
from blastyard.http.app import create_app
from blastyard.http.bell import Bell
from blastyard.http.installation import Installation
from blastyard.http.listener import Listener
from blastyard.service.searches import Searches
from blastyard.service.step import LAST_STEPS_SECONDS

LOG: Final = logging.getLogger(__name__)
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PATIENCE_SECONDS: Final = 5
"""For requests under way when the service ends."""


class Worker(Protocol):
    """Runs searches until it is stopped."""

    def run(self) -> None:
        """Work."""
        ...

    def stop(self) -> None:
        """Make no further step."""
        ...


class Operation(Installation, Protocol):
    """An installation that can also run searches."""

    @property
    def make_worker(self) -> Callable[[Callable[[Search], bool]], Worker]:
        """A worker that adopts the searches its argument wants."""
        ...

    def close(self) -> None:
        """Hand over what this process looks after, and sign off."""
        ...


def running_service(searches: Searches) -> str:
    """The address of a live service on the same data directory; empty when there is none."""
    name = searches.service()
    return searches.queue().submitters[name].submitter.address if name else ""


def run(yard: Operation, listener: Listener, on_ready: Callable[[str], None]) -> None:
    """Serve until a signal; closes ``yard``. Call it in the main thread.

    ``on_ready`` is called with the address when requests are answered.
    """
    bell = Bell(yard.documents.watch)
    worker = yard.make_worker(lambda _search: bool(yard.runner))
    thread = Thread(target=worker.run, name="worker", daemon=True)
    app = create_app(yard, is_working=thread.is_alive, bell=bell)
    server = _Server(_config(app), lambda: on_ready(listener.address), bell.close)
    with _signals(server):
        try:
            thread.start()
            server.run(sockets=[listener.socket])
        finally:
            bell.close()
            worker.stop()
            thread.join(LAST_STEPS_SECONDS)
            yard.close()
            LOG.info("ended; what waited or ran is left to others")


def _config(app: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=PATIENCE_SECONDS,
    )


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], ending: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._ending = ending

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._ending()


@contextmanager
def _signals(server: uvicorn.Server) -> Iterator[None]:
    """Signals end the server, before it runs and after; a hangup that is ignored stays ignored."""
    before = {each: signal.getsignal(each) for each in SIGNALS}
    for each, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(each, server.handle_exit)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
