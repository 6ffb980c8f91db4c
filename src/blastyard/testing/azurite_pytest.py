"""Pytest fixtures of a real Table service. In a ``conftest.py``::

    from blastyard.testing.azurite_pytest import (  # noqa: F401
        azurite, azurite_program, own_azurite, pytest_collection_finish,
    )

Each process of the run (of pytest-xdist) has one server; each test uses a table of its own in it.
Where Azurite cannot be had the tests skip, and fail under CI.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from blastyard.domain.errors import Unavailable
from blastyard.settings import caller_environment
from blastyard.testing.azurite import Azurite
from blastyard.testing.azurite_install import Program, program, say_on_screen


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install now what some test will need: it may take longer than a test's time limit allows."""
    needed = any("azurite_program" in getattr(item, "fixturenames", ()) for item in session.items)
    if not needed or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")

    def say(text: str) -> None:
        with capture.global_and_fixture_disabled():
            say_on_screen(text)

    try:
        program(say if capture else say_on_screen)
    except Unavailable:
        return  # each test that needs it says so


@pytest.fixture(scope="session")
def azurite_program() -> Program:
    """Azurite, installed; where it cannot be had, the test skips or fails."""
    try:
        return program()
    except Unavailable as error:
        reason = f"{error.message}; {error.next_step}"
        if caller_environment().get("CI") == "true":
            pytest.fail(f"CI must have Azurite: {reason}")
        pytest.skip(reason)


@pytest.fixture(scope="session")
def azurite(azurite_program: Program) -> Iterator[Azurite]:
    """The run's Table service. A test that stops or kills it takes ``own_azurite``."""
    with Azurite(azurite_program) as running:
        yield running


@pytest.fixture
def own_azurite(azurite_program: Program) -> Iterator[Azurite]:
    """A Table service of the test's own."""
    with Azurite(azurite_program) as running:
        yield running
