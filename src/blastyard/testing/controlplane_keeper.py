"""The process that owns the programs of one control plane, and outlives none of its owners.

A program of its own (``python -m``), so that nothing is left behind however a test run ends:

* an owner is a connection to the keeper's socket; when the last one ends, or the process behind
  it dies, the keeper kills every program and ends. With ``stays`` it goes on until SIGTERM.
* if the keeper itself is killed, the kernel kills its children (parent-death signal).

An owner sends one word a line and gets a line back, a JSON string: ``"ok"``, or what is wrong. The
first owner, who started the keeper, is told so when the control plane is ready.
An owner that shuts down its side hears end-of-file: at once if others remain, and after the last
program's end if it was the last owner.

Nothing here is durable or gentle: programs are killed, and etcd's data goes with them.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from blastyard.testing.controlplane_program import Controllers, Layout, clear
from blastyard.testing.controlplane_start import ProgramFailed, Programs

OK: Final = "ok"


class Plan(msgspec.Struct, frozen=True):
    """What the keeper is started with, as JSON in its only argument."""

    directory: str
    binaries: str
    controllers: Controllers
    scheduler: bool
    durable: bool
    stays: bool
    owner: int
    """File descriptor of the first owner's connection."""


class Keeper:
    """One control plane's life."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._layout = Layout(Path(plan.directory))
        self._selector = selectors.DefaultSelector()
        self._owners: dict[socket.socket, int] = {}
        self._ending = False
        self._ready = False
        self._last: socket.socket | None = None
        self._programs = Programs(
            self._layout, Path(plan.binaries), plan.controllers, plan.durable, self._attend
        )

    def run(self) -> None:
        """Start everything, serve the owners, end everything."""
        self._listen_to_signals()
        first = socket.socket(fileno=self._plan.owner)
        self._welcome(first)
        try:
            trouble = self._start()
            if not trouble:
                self._listen()
                self._ready = True
                self._tell(first, OK)
            while self._ready and not self._ending:
                self._attend(None)
        finally:
            self._programs.end()
            clear(Path())  # and nothing of a directory that took the place of ours
        if trouble:
            self._tell(first, trouble)

    def _start(self) -> str:
        try:
            self._programs.start(scheduler=self._plan.scheduler)
        except (ProgramFailed, OSError) as error:
            return str(error)
        return "the caller has gone" if self._ending else ""

    def _attend(self, seconds: float | None) -> bool:
        """Wait for news, at most ``seconds``, and take it in; whether to go on."""
        for key, _ in self._selector.select(seconds):
            heard: Callable[[], None] = key.data
            heard()
        return not self._ending

    def _listen_to_signals(self) -> None:
        read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)  # the pipe tells
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

        def heard() -> None:
            if signal.SIGTERM in os.read(read_end, 512):
                self._ending = True
            self._programs.reap()

        self._selector.register(read_end, selectors.EVENT_READ, heard)

    def _listen(self) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self._layout.socket.name)  # a socket's path may have 107 bytes only
        listener.listen()
        self._selector.register(
            listener, selectors.EVENT_READ, lambda: self._welcome(listener.accept()[0])
        )

    def _welcome(self, owner: socket.socket) -> None:
        process = _peer(owner)
        self._owners[owner] = process
        self._selector.register(owner, selectors.EVENT_READ, lambda: self._hear(owner))
        if process >= 0:
            # a copy of the connection in a process that the owner forked must not count
            self._selector.register(process, selectors.EVENT_READ, lambda: self._part(owner))

    def _hear(self, owner: socket.socket) -> None:
        try:
            data = owner.recv(4096)
        except OSError:
            data = b""
        if not data:
            self._part(owner)
        for word in data.decode("ascii", "replace").split():
            self._tell(owner, self._obey(word))

    def _obey(self, word: str) -> str:
        do = {
            "attach": lambda: None,
            "pause_api": self._programs.pause_api,
            "resume_api": self._programs.resume_api,
            "stop_api": self._programs.stop_api,
            "start_api": self._programs.start_api,
        }.get(word)
        if do is None:
            return f"unknown word: {word}"
        try:
            do()
        except (ProgramFailed, OSError) as error:
            return str(error)
        return OK

    def _tell(self, owner: socket.socket, text: str) -> None:
        with suppress(OSError):
            owner.sendall(msgspec.json.encode(text) + b"\n")

    def _part(self, owner: socket.socket) -> None:
        """The owner has left or died. The last one's connection is kept, to end with us."""
        process = self._owners.pop(owner, None)
        if process is None:
            return
        self._selector.unregister(owner)
        if process >= 0:
            self._selector.unregister(process)
            os.close(process)
        if self._owners or (self._plan.stays and self._ready):
            owner.close()
        else:
            self._ending = True
            self._last = owner


def _peer(owner: socket.socket) -> int:
    """A handle of the process at the other end, or -1 where the kernel has none (before 5.3)."""
    pid, _, _ = struct.unpack("iii", owner.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    try:
        return os.pidfd_open(pid)
    except OSError:
        return -1


def main(arguments: list[str]) -> None:
    """Go into the background, a session of its own, and keep."""
    plan = msgspec.json.decode(arguments[0], type=Plan)
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir(plan.directory)
    os.set_inheritable(plan.owner, False)
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(Layout(Path(plan.directory)).log("keeper"), os.O_WRONLY | os.O_CREAT, 0o600)
    for standard, target in ((0, null), (1, log), (2, log)):
        os.dup2(target, standard)
    Keeper(plan).run()


if __name__ == "__main__":
    main(sys.argv[1:])
