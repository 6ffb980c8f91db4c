"""The page in a real browser, over a real service."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from blastyard.bootstrap.gate import this_process
from blastyard.bootstrap.yard import Yard, open_yard
from blastyard.settings import Settings
from blastyard.testing.service import Service, service_process

SERVE = [sys.executable, "-m", "blastyard", "serve", "--port", "0"]
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium(missing: Callable[[str], Any]) -> Iterator[Browser]:
    """A browser with a new profile directory; its driver's event loop must end before other tests.

    While the driver is open its loop counts as running in this thread, and nobody else's can.
    """
    path = shutil.which("chromium") or missing("the browser Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def operator(home: Path, sample_databases: Any) -> Iterator[Yard]:
    """Another process on the data directory, with two databases registered."""
    yard = open_yard(Settings(home=str(home)), this_process("command"))
    yard.databases.add_path("genes", sample_databases.nucl)
    yard.databases.add_path("proteins", sample_databases.prot)
    yield yard
    yard.close()


@pytest.fixture
def service(operator: Yard, environment: dict[str, str], tmp_path: Path) -> Iterator[Service]:
    with service_process(SERVE, environment, tmp_path / "service.log") as running:
        yield running


@pytest.fixture
def open_page(chromium: Browser, service: Service) -> Iterator[Callable[..., Page]]:
    """``open_page(**context)``: the start page. Scripts must not fail, nor ask for more."""
    contexts = []
    said: list[str] = []

    def make(**context: Any) -> Page:
        made = chromium.new_context(base_url=service.address, **context)
        contexts.append(made)
        page = made.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: _policy(message.text, said))
        page.on("request", lambda request: _own(request.url, service.address, said))
        page.goto("/")
        return page

    yield make
    for each in contexts:
        each.close()
    assert said == []


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    return open_page(viewport={"width": 1000, "height": 800})


@pytest.fixture(scope="session")
def gene(sample_fasta: Any) -> str:
    return ">" + sample_fasta.nucl_query.read_text().split(">")[1]


def _policy(text: str, said: list[str]) -> None:
    if "Content Security Policy" in text:
        said.append(text)


def _own(url: str, address: str, said: list[str]) -> None:
    if not url.startswith((address, "data:")):
        said.append(f"asked for {url}")
