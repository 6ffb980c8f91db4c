"""A real Redis server for tests, which may be mistreated and outlives none of its owners.

::

    with RedisServer(folder) as server:
        redis.Redis.from_url(server.url)
        server.restart(empty=True)

It is the distribution's program, started with no configuration but ours, on a free port of the
loopback device and on a socket, in a folder of its own; the distribution's service is not needed.
The kernel kills it when the thread that started it ends, also by kill -9: start it in the main one.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

from redis.connection import UnixDomainSocketConnection
from redis.exceptions import RedisError

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable

ADDRESS: Final = "127.0.0.1"
HIGHEST_PORT: Final = 55535
PATIENCE_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.005
_PR_SET_PDEATHSIG: Final = 1
_TAIL_LINES: Final = 12
CONNECTION: Final[Any] = UnixDomainSocketConnection
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
"""Loaded here: nothing may be loaded between fork and exec."""


def program() -> Path:
    """Redis' server. Raises ``Unavailable('dependency_missing')``.

    ``redis-check-rdb`` is the same program under another name, and Debian has it in a package that
    starts no service.
    """
    for name in ("redis-server", "valkey-server", "redis-check-rdb"):
        if found := shutil.which(name):
            return Path(found)
    raise Unavailable(
        "dependency_missing",
        "There is no Redis server here.",
        "Install it: apt-get install redis-tools (which starts no service), or redis-server.",
    )


class RedisServer:
    """A running server, from entering the ``with`` to leaving it, unless it is killed between.

    ``folder`` must have a path short enough for a socket in it. What is in ``settings`` is said to
    the server as in its configuration file; without any, it keeps every write on disk.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.port = _free_port()
        self._settings = {
            "bind": ADDRESS,
            "port": str(self.port),
            "unixsocket": str(self.socket),
            "dir": str(folder),
            "save": "",
            "appendonly": "yes",
            "repl-diskless-sync-delay": "0",
            "logfile": str(self.log),
            **(settings or {}),
        }
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def url(self) -> str:
        """For whoever knows the password, or where there is none."""
        return f"redis://{self._account}{ADDRESS}:{self.port}/0"

    @property
    def socket(self) -> Path:
        """The server's socket."""
        return self.folder / "redis.sock"

    @property
    def socket_url(self) -> str:
        """The same through the socket."""
        return f"unix://{self._account}{self.socket}"

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.folder / "redis.log"

    @property
    def pid(self) -> int:
        """The running server's."""
        assert self._child is not None
        return self._child.pid

    @property
    def _account(self) -> str:
        password = self._settings.get("requirepass")
        return f":{quote(password, safe='')}@" if password else ""

    # -- its life --------------------------------------------------------------------------------

    def start(self, *, wait: bool = True) -> None:
        """Start it on what its folder has; it answers when this returns, if waited for."""
        owner = os.getpid()

        def end_with_owner() -> None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != owner:
                os._exit(127)

        words: list[str] = []
        for name, value in self._settings.items():
            words += [f"--{name}", *(value.split(" ") if value else [""])]
        self._child = subprocess.Popen(
            ["redis-server", *words],
            executable=program(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            preexec_fn=end_with_owner,  # noqa: PLW1509  (it calls the kernel and nothing else)
        )
        if wait:
            self.wait()

    def wait(self) -> None:
        """Until it answers with its data."""
        clock, pause = SystemClock(), Event()
        latest = clock.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            assert self._child is not None
            if self._child.poll() is not None or clock.monotonic() > latest:
                self.kill()
                raise AssertionError(f"no Redis: {self._last_words()}")
            pause.wait(POLL_SECONDS)

    def kill(self) -> None:
        """End it as kill -9 does: nothing is written any more."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None

    def restart(self, *, empty: bool = False, wait: bool = True) -> None:
        """Kill it and start it again, on the same port, on its data or without any."""
        self.kill()
        if empty:
            self.forget()
        self.start(wait=wait)

    def set(self, name: str, value: str) -> None:
        """A setting for its next start."""
        self._settings[name] = value

    def forget(self) -> None:
        """Remove what is on disk, of a server that does not run."""
        shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)
        for name in ("dump.rdb", "appendonly.aof"):
            (self.folder / name).unlink(missing_ok=True)

    def pause(self) -> None:
        """Stop it where it stands: it keeps its connections, takes new ones, answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    # -- asking it -------------------------------------------------------------------------------

    def command(self, *words: str | bytes | int) -> Any:
        """What the server answers to its administrator, just as it is."""
        connection = CONNECTION(
            path=str(self.socket), password=self._settings.get("requirepass"), protocol=2
        )
        try:
            connection.send_command(*words)
            return connection.read_response()
        finally:
            connection.disconnect()

    def _answers(self) -> bool:
        try:
            return bool(self.command("PING"))
        except RedisError as error:
            return "MISCONF" in str(error)

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-_TAIL_LINES:])


def _free_port() -> int:
    """One that leaves room for the second port of a cluster's node, ten thousand above."""
    while True:
        with socket.socket() as listener:
            listener.bind((ADDRESS, 0))
            port: int = listener.getsockname()[1]
            if port <= HIGHEST_PORT:
                return port
