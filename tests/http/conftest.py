"""The web application over real stores, a real worker and real BLAST+."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from blastyard.bootstrap.gate import this_process
from blastyard.bootstrap.yard import Yard, open_yard
from blastyard.domain.clock import SystemClock
from blastyard.http.app import create_app
from blastyard.settings import Settings
from blastyard.testing.service import Service, service_process

BASE = "http://127.0.0.1:8642"
PATIENCE_SECONDS = 60.0
SERVE = [sys.executable, "-m", "blastyard", "serve", "--port", "0"]


class Client:
    """Asks an application directly, without a network."""

    def __init__(self, app: Any, base: str = BASE, **headers: str) -> None:
        self.app = app
        self._base = base
        self._headers = headers

    def request(self, method: str, path: str, **asked: Any) -> httpx.Response:
        return asyncio.run(self._request(method, path, asked))

    async def _request(self, method: str, path: str, asked: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(
            transport=transport, base_url=self._base, headers=self._headers
        ) as client:
            return await client.request(method, path, **asked)

    def get(self, path: str, **asked: Any) -> httpx.Response:
        return self.request("GET", path, **asked)

    def head(self, path: str, **asked: Any) -> httpx.Response:
        return self.request("HEAD", path, **asked)

    def post(self, path: str, **asked: Any) -> httpx.Response:
        return self.request("POST", path, **asked)

    def put(self, path: str, **asked: Any) -> httpx.Response:
        return self.request("PUT", path, **asked)

    def delete(self, path: str, **asked: Any) -> httpx.Response:
        return self.request("DELETE", path, **asked)


@dataclass(frozen=True, slots=True)
class Front:
    """An application, a client of it, and the installation behind both."""

    yard: Yard
    client: Client

    def submit(self, query: str, **words: Any) -> dict[str, Any]:
        """A new search by JSON."""
        asked = {"program": "blastn", "database": "genes", "query": query, **words}
        answer = self.client.post("/api/v1/searches", json=asked)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def ended(self, search_id: str) -> dict[str, Any]:
        """The search once it has ended."""
        clock = SystemClock()
        until = clock.monotonic() + PATIENCE_SECONDS
        watch = self.yard.documents.watch()
        try:
            while clock.monotonic() < until:
                search = self.client.get(f"/api/v1/searches/{search_id}").json()
                if search["state"] in ("completed", "failed", "cancelled"):
                    return dict(search)
                watch.wait(1.0)
        finally:
            watch.close()
        raise AssertionError(f"{search_id} has not ended")


@contextmanager
def opened(databases: Any, **settings: Any) -> Iterator[Yard]:
    with tempfile.TemporaryDirectory(prefix="by-", dir="/tmp") as home:
        yard = open_yard(Settings(home=home, **settings), this_process("serve"))
        try:
            yard.databases.add_path("genes", databases.nucl)
            yard.databases.add_path("proteins", databases.prot)
            yield yard
        finally:
            yard.close()


@contextmanager
def working(yard: Yard) -> Iterator[None]:
    worker = yard.make_worker(lambda _search: True)
    thread = Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join()


@pytest.fixture(scope="session")
def front(sample_databases: Any) -> Iterator[Front]:
    """Searches are run."""
    with opened(sample_databases) as yard, working(yard):
        yield Front(yard, Client(create_app(yard)))


@pytest.fixture
def idle(sample_databases: Any) -> Iterator[Front]:
    """Searches are accepted, and nobody runs them."""
    with opened(sample_databases) as yard:
        yield Front(yard, Client(create_app(yard)))


@pytest.fixture
def browser(front: Front) -> Client:
    """A client that asks for pages, and does not follow redirects."""
    return Client(front.client.app, accept="text/html,application/xhtml+xml")


@pytest.fixture
def client_of() -> Callable[[Any], Client]:
    """A client of any application."""
    return Client


@pytest.fixture(scope="session")
def gene(sample_fasta: Any) -> str:
    """One nucleotide query that has hits."""
    return ">" + sample_fasta.nucl_query.read_text().split(">")[1]


@pytest.fixture(scope="session")
def protein(sample_fasta: Any) -> str:
    """One protein query that has hits."""
    return ">" + sample_fasta.prot_query.read_text().split(">")[1]


@pytest.fixture
def serve(
    environment: dict[str, str], sample_databases: Any, home: Path, tmp_path: Path
) -> Callable[[], Any]:
    """``with serve() as service``: a process of its own over a home with two databases."""
    yard = open_yard(Settings(home=str(home)), this_process("command"))
    yard.databases.add_path("genes", sample_databases.nucl)
    yard.databases.add_path("proteins", sample_databases.prot)
    yard.close()

    def start() -> Any:
        return service_process(SERVE, environment, tmp_path / "service.log")

    return start


@pytest.fixture
def service(serve: Callable[[], Any]) -> Iterator[Service]:
    """A running service."""
    with serve() as running:
        yield running
