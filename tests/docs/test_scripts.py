"""The scripts and lock files a newcomer meets first."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path for path in (ROOT / "scripts").iterdir() if path.is_file())
LOCKS = [ROOT / f"requirements{kind}.txt" for kind in ("", "-team", "-dev")]

CONFIGURATION = [
    *LOCKS,
    *SCRIPTS,
    ROOT / ".ci" / "run",
    ROOT / ".importlinter",
    ROOT / "pyproject.toml",
]


def locked(path: Path) -> dict[str, str]:
    """Package name to everything the lock says about it."""
    entries = re.split(r"(?m)^(?=[A-Za-z0-9])", path.read_text())[1:]
    return {entry.partition("==")[0]: entry for entry in entries}


@pytest.mark.parametrize(
    "name", ["bench", "check", "cluster", "lock", "run", "setup", "soak", "test"]
)
def test_a_script_is_there_and_can_be_started(name: str) -> None:
    script = ROOT / "scripts" / name

    assert script.stat().st_mode & 0o111 == 0o111


@pytest.mark.parametrize("script", [*SCRIPTS, ROOT / ".ci" / "run"], ids=lambda path: path.name)
def test_a_script_is_short_posix_sh_that_the_shell_can_read(script: Path) -> None:
    text = script.read_text()

    assert text.startswith("#!/bin/sh\n")
    assert len(text.splitlines()) <= 300
    subprocess.run(["sh", "-n", script], check=True)
    assert not re.search(r"\[\[|\bfunction \w|\blocal \w|<<<|\$'", text)


@pytest.mark.parametrize("path", CONFIGURATION, ids=lambda path: path.name)
def test_configuration_names_no_registry_host(path: Path) -> None:
    addresses = re.findall(
        r"\w+://\S+|--(?:extra-)?index(?:-url)?[ =]\S+|trusted-host|find-links [./h]\S*",
        path.read_text(),
    )

    assert addresses == []


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_locked_package_has_one_version_and_a_hash(path: Path) -> None:
    entries = locked(path)

    assert len(entries) > 20
    for name, entry in entries.items():
        assert re.match(rf"{re.escape(name)}==[\w.+!]+( ; .*)? \\\n +--hash=sha256:", entry), entry


def test_the_locks_hold_everything_the_project_asks_for_and_agree_with_each_other() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    run, team, dev = (locked(path) for path in LOCKS)

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[^\w.-]", line)[0] for line in requirements}

    groups = project["dependency-groups"]
    needed = names(project["project"]["dependencies"]) | names(groups["install"])
    assert needed <= run.keys()
    assert needed | names(project["project"]["optional-dependencies"]["team"]) <= team.keys()
    assert needed | names(groups["dev"]) <= dev.keys()
    for smaller, larger in ((run, team), (team, dev)):
        for name in smaller:
            assert smaller[name].split("    #")[0] == larger[name].split("    #")[0]


def test_the_readme_begins_with_the_two_commands_and_both_exist() -> None:
    text = (ROOT / "README.md").read_text()
    commands = re.findall(r"(?m)^(scripts/\w+)", text)

    assert commands[:2] == ["scripts/run", "scripts/test"]
    assert all((ROOT / command).is_file() for command in commands)


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """A PATH with what every Debian has and neither apt-get nor sudo nor BLAST+."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ["cat", "dirname", "env", "find", "id", "mktemp", "rm", "sh", "tail"]:
        found = shutil.which(program)
        assert found is not None
        (folder / program).symlink_to(found)
    return str(folder)


def packages(path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", ROOT / "scripts" / "setup", "packages", "ncbi-blast+", "chromium"],
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_apt_the_setup_names_what_to_install(bare_path: str) -> None:
    done = packages(bare_path)

    assert done.returncode == 1
    assert "no apt-get here" in done.stderr
    assert "ncbi-blast+ chromium" in done.stderr


def test_without_root_and_sudo_the_setup_prints_the_administrators_commands(
    bare_path: str,
) -> None:
    unprivileged = Path(bare_path) / "id"
    unprivileged.unlink()
    unprivileged.write_text("#!/bin/sh\necho 1000\n")
    unprivileged.chmod(0o755)
    apt_get = Path(bare_path) / "apt-get"
    apt_get.write_text("#!/bin/sh\necho apt-get must not run >&2\nexit 1\n")
    apt_get.chmod(0o755)

    done = packages(bare_path)

    assert done.returncode == 1
    assert "    apt-get update\n" in done.stderr
    assert "    apt-get install --no-install-recommends ncbi-blast+ chromium\n" in done.stderr
    assert "must not run" not in done.stderr


def test_stale_package_lists_are_updated_and_the_installation_tried_once_more(
    bare_path: str, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    stubs = {
        "id": "echo 0",
        "ls": "exit 0",
        "find": "echo fresh",
        "apt-get": f'echo "$@" >>{calls}; case "$*" in *" update") ;; *) exit 1 ;; esac',
    }
    for name, text in stubs.items():
        program = Path(bare_path) / name
        program.unlink(missing_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)

    done = packages(bare_path)

    lines = calls.read_text().splitlines()
    steps = ["update" if line.endswith(" update") else "install" for line in lines]
    assert steps == ["install", "update", "install"]
    assert done.returncode == 1
    assert "an administrator must run" in done.stderr
