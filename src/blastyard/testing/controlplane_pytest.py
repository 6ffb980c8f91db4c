"""Pytest fixtures of a real Kubernetes API. In a ``conftest.py``::

    from blastyard.testing.controlplane_pytest import (  # noqa: F401
        control_plane, control_plane_binaries, namespace, own_control_plane,
        pytest_collection_finish,
    )

One server serves the whole run, whatever the number of pytest-xdist workers; each test has a
namespace of its own in it. Where the programs cannot be had the tests skip, and fail under CI.
"""

from __future__ import annotations

import fcntl
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from blastyard.domain.errors import Unavailable
from blastyard.settings import caller_environment
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_build import binaries, say_on_screen


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build now what some test will need: it takes minutes, which no test's time limit allows."""
    needed = any(
        "control_plane_binaries" in getattr(item, "fixturenames", ()) for item in session.items
    )
    if not needed or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")

    def say(text: str) -> None:
        with capture.global_and_fixture_disabled():
            say_on_screen(text)

    try:
        binaries(say if capture else say_on_screen)
    except Unavailable:
        return  # each test that needs them says so


@pytest.fixture(scope="session")
def control_plane_binaries() -> Path:
    """The folder of the Kubernetes programs; where they cannot be had, the test skips or fails."""
    try:
        return binaries()
    except Unavailable as error:
        reason = f"{error.message}; {error.next_step}"
        if caller_environment().get("CI") == "true":
            pytest.fail(f"CI must have a Kubernetes API: {reason}")
        pytest.skip(reason)


@pytest.fixture(scope="session")
def control_plane(
    control_plane_binaries: Path,  # noqa: ARG001  (there, or the test ends before it starts)
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """The run's control plane: API server and the controllers that tests need, no scheduler.

    It is everybody's: a test that pauses or kills the API server takes ``own_control_plane``.
    """
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):  # of pytest-xdist: the parent is the whole run's
        folder = folder.parent
    cluster = _shared(folder / "control-plane")
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def own_control_plane(
    control_plane_binaries: Path,  # noqa: ARG001  (as above)
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """etcd and an API server, without controllers, of one test module, to be mistreated."""
    folder = tmp_path_factory.mktemp("control-plane")
    with ControlPlane.start(folder, controllers=False) as cluster:
        yield cluster


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """The name of an empty namespace of the run's control plane; it is deleted afterwards."""
    name = f"test-{secrets.token_hex(4)}"
    control_plane.create_namespace(name)
    yield name
    control_plane.delete_namespace(name)


def _shared(folder: Path) -> ControlPlane:
    """The one that the folder's link leads to, or a new one if that has ended."""
    folder.mkdir(mode=0o700, exist_ok=True)
    current = folder / "current"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if found := ControlPlane.attach(current.resolve()):
            return found
        made = ControlPlane.start(Path(tempfile.mkdtemp(dir=folder)))
        current.unlink(missing_ok=True)
        current.symlink_to(made.directory)
        return made
