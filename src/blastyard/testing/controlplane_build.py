"""The programs of a control plane: found on this machine, or built once from their source.

``KUBEBUILDER_ASSETS`` names a folder that has them, as other Kubernetes test tools use it. Without
one that has them all, the Go module ``tools/controlplane`` is built into the account's cache, under
a name made of what the source is; two processes that want it at once build it once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from blastyard.domain.errors import Unavailable
from blastyard.settings import caller_environment
from blastyard.testing.controlplane_go import Go, find_go
from blastyard.testing.controlplane_program import PROGRAMS

SOURCE: Final = Path(__file__).parents[3] / "tools" / "controlplane"
EXECUTABLE: Final = "controlplane"
_LINKS: Final = (*PROGRAMS, "kubelet")
_SOURCES: Final = ("go.sum", "go.mod", "main.go")
_UNFINISHED: Final = "unfinished-"
_GIGABYTES: Final = 5
_VERSION: Final = "k8s.io/component-base/version"

Say = Callable[[str], None]


def say_on_screen(text: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"controlplane: {text}\n")
    sys.stderr.flush()


def binaries(say: Say = say_on_screen, source: Path = SOURCE) -> Path:
    """The folder of etcd, the API server and the others; building takes minutes, but once.

    Raises ``Unavailable`` where they are not here and cannot be built.
    """
    environment = caller_environment()
    given = environment.get("KUBEBUILDER_ASSETS", "")
    lacking = [one for one in PROGRAMS if not os.access(Path(given) / one, os.X_OK)]
    if given and not lacking:
        return Path(given).absolute()
    if not (source / "main.go").exists():
        raise Unavailable(
            "dependency_missing",
            f"the Kubernetes programs are not here, nor is their source ({source})",
            f"set KUBEBUILDER_ASSETS to a folder with {', '.join(PROGRAMS)}",
        )
    cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    wanted = cache.absolute() / "blastyard" / "controlplane" / _name(source)
    if not wanted.exists():
        if given:
            say(f"KUBEBUILDER_ASSETS leads to {given}, which lacks {', '.join(lacking)}")
        _build_once(source, wanted, say)
    return wanted


def _build_once(source: Path, wanted: Path, say: Say) -> None:
    cache = wanted.parent
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache, say):
        if not wanted.exists():  # somebody may have built it while we waited
            for left in cache.glob(_UNFINISHED + "*"):
                shutil.rmtree(left)
            _build(source, wanted, say)


def _name(source: Path) -> str:
    whole = hashlib.sha256(platform.machine().encode())
    for name in _SOURCES:
        whole.update(hashlib.sha256((source / name).read_bytes()).digest())
    return whole.hexdigest()[:16]


@contextmanager
def _alone(cache: Path, say: Say) -> Iterator[None]:
    with (cache / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is building the Kubernetes programs; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(source: Path, wanted: Path, say: Say) -> None:
    """Build beside the wanted folder, and rename when all is there."""
    free = shutil.disk_usage(wanted.parent).free
    if free < _GIGABYTES * 10**9:
        raise Unavailable(
            "dependency_missing",
            f"building the Kubernetes programs takes {_GIGABYTES} GB for a while, and the disk of "
            f"{wanted.parent} has {free / 10**9:.1f} GB",
            "free some, or set KUBEBUILDER_ASSETS to a folder that has them",
        )
    module = (source / "go.mod").read_text()
    go = find_go(source, wanted.parent, say)
    packages = go.packages(source)
    version = _found(r"k8s\.io/kubernetes v(\S+)", module)
    say(
        f"building Kubernetes {version} with Go {go.version}, this once: up to 10 minutes of "
        f"processor time, into {wanted}"
    )
    new = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=wanted.parent))
    _compile(go, source, new / EXECUTABLE, version, len(packages), say)
    for link in _LINKS:
        (new / link).symlink_to(EXECUTABLE)
    new.chmod(0o755)
    new.rename(wanted)
    go.discard()
    say("built")


def _compile(go: Go, source: Path, to: Path, version: str, packages: int, say: Say) -> None:
    major, minor, _ = version.split(".", 2)
    # kubelet and API server refuse each other when they do not know their versions
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    flags = " ".join(f"-X {_VERSION}.{name}={value}" for name, value in values.items())
    command = ["build", "-v", "-trimpath", "-buildvcs=false", f"-ldflags=-s -w {flags}"]
    with tempfile.TemporaryFile("w+") as told:
        with go.start([*command, "-o", str(to), "."], source) as process:
            for line in _progress(process, packages, say):
                told.write(line)
        if process.returncode != 0:
            told.seek(0)
            raise RuntimeError(f"the Kubernetes programs do not compile:\n{told.read()[-3000:]}")


def _progress(process: subprocess.Popen[str], packages: int, say: Say) -> Iterator[str]:
    """The lines of ``go build -v``, one for each package compiled; says every tenth part."""
    said = 0
    for compiled, line in enumerate(process.stdout or (), 1):
        tenths = min(9, 10 * compiled // packages)
        if tenths > said:
            said = tenths
            say(f"{said}0 % compiled")
        yield line


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise RuntimeError(f"go.mod has nothing like {pattern}")
    return match[1]
