"""Azurite's program: installed once from the npm registry into the account's cache.

What is installed is said by ``tools/azurite``: its lock names every package by version and content.
Two processes that want it at once install it once, and nothing of any package is run while it is
installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from blastyard.domain.errors import Unavailable
from blastyard.settings import caller_environment

SOURCE: Final = Path(__file__).parents[3] / "tools" / "azurite"
NODE_VERSION: Final = 20
"""The oldest major version of Node that the locked packages run on."""

_MAIN: Final = Path("node_modules", "azurite", "dist", "src", "table", "main.js")
_FILES: Final = ("package.json", "package-lock.json")
_UNFINISHED: Final = "unfinished-"
_NPM: Final = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
_SECONDS: Final = 600

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Program:
    """What to start: ``node``, told first of the leash that ends it with its owner."""

    node: Path
    leash: Path
    main: Path


def say_on_screen(text: str) -> None:
    """One line on standard error."""
    sys.stderr.write(f"azurite: {text}\n")
    sys.stderr.flush()


def program(say: Say = say_on_screen, source: Path = SOURCE) -> Program:
    """Azurite's Table service; installing it takes half a minute, but once.

    Raises ``Unavailable('dependency_missing')`` where it cannot be had.
    """
    if not (source / "package-lock.json").exists():
        raise Unavailable("dependency_missing", f"what Azurite is made of is not here ({source})")
    node = _node()
    environment = caller_environment()
    cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    wanted = cache.absolute() / "blastyard" / "azurite" / _name(source)
    if not wanted.exists():
        _install_once(source, wanted, say)
    return Program(node, source / "leash.js", wanted / _MAIN)


def _node() -> Path:
    found = shutil.which("node")
    step = f"install Node {NODE_VERSION} or newer, and npm (Debian: nodejs npm)"
    if found is None or shutil.which("npm") is None:
        raise Unavailable(
            "dependency_missing", "Node and npm, which run Azurite, are not here", step
        )
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.", told)
    if version is None or int(version[1]) < NODE_VERSION:
        message = f"Node {told.strip()} is too old for Azurite"
        raise Unavailable("dependency_missing", message, step)
    return Path(found)


def _name(source: Path) -> str:
    whole = hashlib.sha256()
    for name in _FILES:
        whole.update(hashlib.sha256((source / name).read_bytes()).digest())
    return whole.hexdigest()[:16]


def _install_once(source: Path, wanted: Path, say: Say) -> None:
    cache = wanted.parent
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache, say):
        if not wanted.exists():  # somebody may have installed it while we waited
            for left in cache.glob(_UNFINISHED + "*"):
                shutil.rmtree(left)
            _install(source, wanted, say)


@contextmanager
def _alone(cache: Path, say: Say) -> Iterator[None]:
    with (cache / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is installing it; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(source: Path, wanted: Path, say: Say) -> None:
    """Install beside the wanted folder, and rename when all is there."""
    say(f"installing Azurite with npm, this once: up to a few minutes, 190 MB, into {wanted}")
    new = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=wanted.parent))
    for name in _FILES:
        shutil.copy(source / name, new)
    try:
        done = subprocess.run(
            ["npm", *_NPM], cwd=new, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        trouble = "" if done.returncode == 0 else (done.stderr or done.stdout)[-1500:]
    except subprocess.TimeoutExpired:
        trouble = f"npm did not come to an end within {_SECONDS} s"
    if trouble or not (new / _MAIN).exists():
        shutil.rmtree(new)
        step = "is the npm registry to be reached from here (npm config get registry)?"
        raise Unavailable("dependency_missing", f"Azurite cannot be installed: {trouble}", step)
    new.chmod(0o755)
    new.rename(wanted)
    say("installed")
