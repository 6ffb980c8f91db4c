"""The fixtures as a test run sees them: one server for all workers, a skip at home."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from blastyard.testing.controlplane import ControlPlane

CONFTEST = """
from blastyard.testing.controlplane_pytest import (
    control_plane, control_plane_binaries, namespace, own_control_plane, pytest_collection_finish
)
"""
TESTS = """
import os
from pathlib import Path

def test_the_run_shares_one(control_plane, namespace):
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    Path(worker).write_text(f"{control_plane.directory} {control_plane.url}")
    keeper = control_plane.directory / "keeper.log"
    assert keeper.exists()

def test_each_has_a_namespace_of_its_own(control_plane, namespace):
    path = f"/api/v1/namespaces/{namespace}"
    assert control_plane.admin.send("GET", path).status == 200
    assert control_plane.admin.send("GET", path + "/pods").expect(200)["items"] == []
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, tester_environment: dict[str, str]) -> Run:
    """``run(*arguments, **environment)`` tests a folder that has the fixtures and uses them."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_use.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
    # of the run that this is a test of
    inherited = {name: value for name, value in tester_environment.items() if "PYTEST" not in name}

    def done(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*pytest_, f"--basetemp={tmp_path / 'temporary'}", *arguments],
            cwd=tmp_path,
            env={**inherited, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return done


@pytest.mark.usefixtures("control_plane_binaries")
def test_all_workers_of_a_run_share_one_server_that_ends_with_them(
    run: Run, tmp_path: Path
) -> None:
    tested = run("-n", "2", "--dist", "each")

    assert tested.returncode == 0, tested.stdout
    assert "4 passed" in tested.stdout
    servers = {(tmp_path / worker).read_text() for worker in ("gw0", "gw1")}
    (server,) = servers
    directory = Path(server.split()[0])
    assert ControlPlane.attach(directory) is None
    assert {path.suffix for path in directory.iterdir()} == {".log"}


@pytest.mark.parametrize(("ci", "outcome"), [("", "2 skipped"), ("true", "2 errors")])
def test_without_the_programs_a_test_skips_at_home_and_fails_in_ci(
    run: Run, tmp_path: Path, ci: str, outcome: str
) -> None:
    nowhere = {"KUBEBUILDER_ASSETS": "", "XDG_CACHE_HOME": str(tmp_path), "PATH": "/nowhere"}

    tested = run(CI=ci, PIP_NO_INDEX="1", **nowhere)

    assert outcome in tested.stdout
    assert "there is no Go here, and its wheel cannot be installed" in tested.stdout
