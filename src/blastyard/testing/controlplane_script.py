"""``scripts/cluster``: one control plane for trials, that stays until it is taken down."""

# ruff: noqa: T201  (a command: printing is what it is for)

from __future__ import annotations

import argparse
import fcntl
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import BlastyardError
from blastyard.settings import caller_environment
from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_build import binaries
from blastyard.testing.controlplane_program import Controllers, Layout
from blastyard.testing.controlplane_state import Running, State

NOT_UP: Final = 3
"""Exit code of ``status`` and ``env`` when there is none, as init scripts have it."""

_END_SECONDS: Final = 20.0


class Trial:
    """The account's one control plane, in ``$XDG_STATE_HOME/blastyard/cluster``."""

    def __init__(self) -> None:
        environment = caller_environment()
        base = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        self.directory = Path(base).absolute() / "blastyard" / "cluster"
        self._layout = Layout(self.directory)

    def up(self, every: bool) -> int:
        """Start it, unless it runs already."""
        if self._is_whole():
            return 0
        binaries(_say)  # it may take minutes, in which "down" need not wait
        with self._alone():
            if self._is_whole():
                return 0
            if state := self._running():
                _say(f"{', '.join(_ended(state))} ended by itself; starting anew, and empty")
            self._remove()
            clock = SystemClock()
            begun = clock.monotonic()
            controllers: Controllers = "all" if every else True
            cluster = ControlPlane.start(
                self.directory, controllers=controllers, scheduler=every, stays=True
            )
            cluster.stop()
            seconds = clock.monotonic() - begun
            _say(f'up at {cluster.url} ({seconds:.1f} s); to use it: eval "$(scripts/cluster env)"')
        return 0

    def down(self) -> int:
        """End all of it, and remove its directory."""
        with self._alone():
            was_up = self._running() is not None
            self._remove()
        if was_up:
            _say("down")
        return 0

    def status(self) -> int:
        """Print where it is, and each process with its resident memory."""
        state = self._running()
        if state is None:
            print("not up")
            return NOT_UP
        print(f"url         {state.url}")
        print(f"kubeconfig  {self._layout.kubeconfig}")
        print(f"logs        {self.directory}/*.log")
        total = 0
        for name, running in {"keeper": state.keeper, **state.programs}.items():
            megabytes = _resident(running) // 2**20
            total += megabytes
            what = f"{megabytes:4} MB" if running.process.is_alive() else "ended"
            print(f"{name:<24} pid {running.pid:<8} {what}")
        print(f"{'in all':<37} {total:4} MB")
        return 0

    def env(self) -> int:
        """Print shell commands that make this shell use it."""
        if self._running() is None:
            _say("not up; start it with scripts/cluster up")
            return NOT_UP
        folder = shlex.quote(str(self._layout.bin))
        print(f"export KUBECONFIG={shlex.quote(str(self._layout.kubeconfig))}")
        print(f'case ":$PATH:" in *:{folder}:*) ;; *) export PATH={folder}:"$PATH" ;; esac')
        return 0

    def _is_whole(self) -> bool:
        state = self._running()
        return state is not None and not _ended(state)

    def _running(self) -> State | None:
        state = State.read(self._layout.state)
        return state if state is not None and state.is_kept else None

    def _remove(self) -> None:
        """By number and start time, whoever is left: a killed keeper has taken all with it."""
        state = State.read(self._layout.state)
        if state is not None:
            state.keeper.process.send(signal.SIGTERM)
            state.keeper.process.wait_gone(_END_SECONDS)
            for running in (state.keeper, *state.programs.values()):
                running.process.send(signal.SIGKILL)
                running.process.wait_gone(_END_SECONDS)
        if self.directory.exists():
            # a keeper that was just left may still be at work there
            old = self.directory.with_name(f"{self.directory.name}-{os.getpid()}")
            self.directory.rename(old)
            shutil.rmtree(old, ignore_errors=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.directory.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def main(arguments: Sequence[str]) -> int:
    """Do what the first argument says; the exit code."""
    parser = argparse.ArgumentParser(
        prog="scripts/cluster", description="A real Kubernetes API on this machine, for trials."
    )
    words = parser.add_subparsers(dest="word", required=True)
    up = words.add_parser("up", help="start it (about 3 s; the very first time it is built)")
    up.add_argument("--all", action="store_true", help="every controller, and the scheduler")
    words.add_parser("status", help="where it is, its processes and their memory")
    words.add_parser("env", help='for a shell: eval "$(scripts/cluster env)"')
    words.add_parser("down", help="end all of it; what was in it is gone")
    words.add_parser("build", help="only build its programs, if they are not here")
    given = parser.parse_args(arguments)
    trial = Trial()
    try:
        match given.word:
            case "up":
                return trial.up(given.all)
            case "down":
                return trial.down()
            case "status":
                return trial.status()
            case "env":
                return trial.env()
            case _:
                binaries(_say)
                return 0
    except BlastyardError as error:
        _say(error.message)
        if error.next_step:
            _say(f"next: {error.next_step}")
        return error.meaning.exit_code


def _ended(state: State) -> list[str]:
    return [name for name, one in state.programs.items() if not one.process.is_alive()]


def _resident(running: Running) -> int:
    try:
        text = Path(f"/proc/{running.pid}/status").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def _say(text: str) -> None:
    print(f"cluster: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
