"""``scripts/setup`` makes a virtual environment, notices a broken one, and is quiet otherwise."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[2]

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "blastyard"
version = "0"
dependencies = ["packaging"]

[project.scripts]
blastyard = "blastyard:main"
"""

# What the project needs to be installed at all; the real lock takes minutes on a slow line.
SMALL = (
    "editables",
    "hatchling",
    "packaging",
    "pathspec",
    "pluggy",
    "tomlkit",
    "trove-classifiers",
)

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Tree:
    """A small project with the real ``scripts/setup`` and a few entries of the real lock."""

    folder: Path
    environment: dict[str, str]

    @property
    def venv(self) -> Path:
        return self.folder / ".venv"

    def setup(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", self.folder / "scripts" / "setup", "run"],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def works(self) -> bool:
        done = subprocess.run([self.venv / "bin" / "blastyard"], capture_output=True, check=False)
        return done.stdout == b"it works\n"


@pytest.fixture(scope="module")
def tree(
    tmp_path_factory: pytest.TempPathFactory,
    tester_environment: dict[str, str],
    missing: Callable[[str], NoReturn],
) -> Tree:
    """Set up once; every test leaves it whole."""
    folder = tmp_path_factory.mktemp("tree")
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup", folder / "scripts" / "setup")
    (folder / "pyproject.toml").write_text(PROJECT)
    entries = re.split(r"(?m)^(?=[a-z])", (ROOT / "requirements.txt").read_text())
    lock = "".join(entry for entry in entries if entry.partition("==")[0] in SMALL)
    (folder / "requirements.txt").write_text(lock)
    (folder / "requirements-dev.txt").write_text(lock)
    (folder / "requirements-team.txt").write_text(lock)
    package = folder / "src" / "blastyard"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def main() -> None:\n    print('it works')\n")
    # A stand-in, so that no test asks the distribution for BLAST+.
    blastn = folder / "bin" / "blastn"
    blastn.parent.mkdir()
    blastn.write_text("#!/bin/sh\n")
    blastn.chmod(0o755)
    path = f"{blastn.parent}:{tester_environment['PATH']}"

    made = Tree(folder, {**tester_environment, "PATH": path})
    done = made.setup()
    if re.search(r"(?i)connection|resolve host|no matching distribution", done.stderr):
        missing("a package registry")
    assert done.returncode == 0, done.stderr
    assert "making the virtual environment" in done.stderr
    assert made.works()
    return made


def test_a_second_setup_says_and_does_nothing(tree: Tree) -> None:
    before = (tree.venv / "pyvenv.cfg").stat().st_mtime_ns

    done = tree.setup()

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tree.venv / "pyvenv.cfg").stat().st_mtime_ns == before


def test_an_interrupted_installation_is_begun_anew(tree: Tree) -> None:
    (tree.venv / ".installing").touch()
    (tree.venv / "half-written").touch()

    done = tree.setup()

    assert "making it anew" in done.stderr
    assert not (tree.venv / "half-written").exists()
    assert tree.works()


def test_an_environment_whose_python_went_away_is_made_anew(tree: Tree) -> None:
    for python in (tree.venv / "bin").glob("python*"):
        python.unlink()

    done = tree.setup()

    assert "making it anew" in done.stderr
    assert tree.works()


def test_a_package_that_went_missing_is_noticed(tree: Tree) -> None:
    (folder,) = tree.venv.glob("lib/python*/site-packages")
    for part in folder.glob("packaging*"):
        shutil.rmtree(part)

    done = tree.setup()

    assert "making it anew" in done.stderr
    assert tree.setup().stderr == ""


def test_a_changed_lock_is_installed_into_the_same_environment(tree: Tree) -> None:
    lock = tree.folder / "requirements.txt"
    lock.write_text(lock.read_text() + "# changed\n")
    (tree.venv / "kept").touch()

    done = tree.setup()

    assert "installing the Python packages of requirements.txt" in done.stderr
    assert (tree.venv / "kept").exists()
    assert tree.works()


def test_a_package_whose_hash_differs_from_the_lock_is_refused(tree: Tree) -> None:
    lock = tree.folder / "requirements.txt"
    whole = lock.read_text()
    lock.write_text(re.sub(r"sha256:.{8}", "sha256:00000000", whole))
    (tree.venv / ".installing").touch()

    refused = tree.setup()
    lock.write_text(whole)

    assert refused.returncode == 1
    assert "HASHES" in refused.stderr
    assert "could not be installed" in refused.stderr
    assert tree.setup().returncode == 0
    assert tree.works()
