"""Runs blastyard commands as real processes, without the half second in which Python imports.

    done = run_command(["search", "-p", "blastn", …], env=environment, cwd=folder)

The first call starts this module as a process, which imports the command line once; each command is
a fork of it: a process of its own with the environment, folder and standard streams that it was
given, which runs what ``blastyard`` runs and ends as it ends. What a command *imports* cannot be
told from it; tests of that, of signals and of terminals start an interpreter.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, Final

from blastyard.testing.forking import Forker, forked

_MODULE: Final = "blastyard.testing.forked_command"
_IMPORTED: Final = (
    "blastyard.bootstrap.cluster",
    "blastyard.bootstrap.permission",
    "blastyard.bootstrap.yard",
    "blastyard.cli.app",
    "blastyard.cli.dropin.run",
    "blastyard.cli.labour",
    "blastyard.cli.searching",
    "blastyard.store.migrations.run",
    "blastyard.store.sql",
    "rich._emoji_codes",
    "typer._adapters",
)


def run_command(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | Path = ".",
    stdin: bytes = b"",
    timeout: float = 60.0,
) -> subprocess.CompletedProcess[bytes]:
    """Run ``blastyard`` with these arguments to its end; what it wrote, and its exit code.

    Raises ``subprocess.TimeoutExpired`` when it takes longer, and ends it.
    """
    order = {"arguments": list(arguments), "env": dict(env), "cwd": os.fspath(cwd)}
    reading, writing = os.pipe()
    out, err = (os.memfd_create(name) for name in ("out", "err"))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with theirs:
            _forker().fork(json.dumps(order).encode(), [reading, out, err, theirs.fileno()])
        os.close(reading)
        feeder = Thread(target=_feed, args=(writing, stdin), daemon=True)
        feeder.start()
        code = _ended(ours, ["blastyard", *arguments], timeout)
        feeder.join()
        return subprocess.CompletedProcess(
            ["blastyard", *arguments], code, _content(out), _content(err)
        )
    finally:
        ours.close()
        os.close(out)
        os.close(err)


def as_text(done: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[str]:
    """The same, with what it wrote as text."""
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def _feed(descriptor: int, what: bytes) -> None:
    with open(descriptor, "wb") as pipe, suppress(BrokenPipeError):
        pipe.write(what)


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _ended(line: socket.socket, command: list[str], timeout: float) -> int:
    """The exit code, which follows the process id; negative = the signal that ended it."""
    pid = int(line.recv(20))
    line.settimeout(timeout)
    try:
        return os.waitstatus_to_exitcode(int(line.recv(20)))
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        raise subprocess.TimeoutExpired(command, timeout) from None


@cache
def _forker() -> Forker:
    return Forker(_MODULE)


# -- the process that forks ----------------------------------------------------------------------


def _become(order: Mapping[str, Any], streams: Sequence[int]) -> list[str]:
    """In the fork: take on what a new process would have been given; the command's arguments."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(order["cwd"])
    os.environ.clear()  # noqa: TID251  (a new process has what it is given)
    os.environ.update(order["env"])  # noqa: TID251
    time.tzset()
    arguments: list[str] = order["arguments"]
    sys.argv = ["blastyard", *arguments]
    return arguments


def _attend(message: bytes, descriptors: Sequence[int]) -> list[str]:
    """In a fork that waits for the command and tells of its end; returns in the command alone."""
    order, (*streams, line) = json.loads(message), descriptors
    pid = os.fork()
    if pid == 0:
        os.close(line)
        return _become(order, streams)
    for descriptor in streams:
        os.close(descriptor)
    with socket.socket(fileno=line) as told:
        told.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        with suppress(BrokenPipeError):
            told.send(str(status).encode())
    os._exit(0)


def _main(number: int) -> int:
    for name in _IMPORTED:
        importlib.import_module(name)
    from blastyard.cli.entry import main  # noqa: PLC0415  (whoever runs a command needs none of it)

    gc.freeze()
    given = forked(number)
    return 0 if given is None else main(_attend(*given))


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1])))
