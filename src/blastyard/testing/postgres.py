"""A real PostgreSQL server on loopback, with a data directory of its own, to be mistreated.

::

    with PostgresServer.make() as server:
        url = server.create_database("searches")
        server.restart(); server.kill(); server.start()

It is the distribution's server, as it is: passwords are asked for, and texts sort as in a
dictionary, so that nothing holds only where the administrator chose plain sorting. Only the disk is
not waited for, which tells a difference when the machine loses power and not when programs die.

The server ends with the thread that started it, also when its process is killed. A folder that a
killed process left is removed by the next one that makes a server.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, Final, Self

import psycopg
from psycopg import sql

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable
from blastyard.testing.controlplane_program import ADDRESS, Ports
from blastyard.testing.postgres_program import Account, descendants, find_programs, is_running

OWNER: Final = "blastyard"
"""The role that owns what :meth:`PostgresServer.create_database` makes; it is no superuser."""

_ADMINISTRATOR: Final = "postgres"
_PREFIX: Final = "by-postgres-"
_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.01
_TAIL_LINES: Final = 12

_SETTINGS: Final[Mapping[str, str]] = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": ADDRESS,
    "max_connections": "200",
    "shared_buffers": "64MB",
    "log_timezone": "UTC",
}


class PostgresServer:
    """One server, running from entering the ``with`` to leaving it, unless it is stopped.

    ``port`` and ``password`` stay the same when it is started again.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str], primary: Self | None) -> None:
        self.folder = folder
        self.port = Ports.free().api
        self.password: str = primary.password if primary else secrets.token_urlsafe(12)
        self._settings = {**_SETTINGS, **settings}
        self._primary = primary
        self._programs = find_programs()
        self._account = Account.for_server()
        self._clock = SystemClock()
        self._child: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def make(cls, primary: Self | None = None, **settings: str) -> Iterator[Self]:
        """A new server; with ``primary``, a standby that follows it. ``settings`` are its own.

        Raises ``Unavailable`` where the programs are missing, or the server does not come up.
        """
        _clear_what_others_left()
        with _folder() as folder:
            server = cls(folder, settings, primary)
            try:
                server._prepare()
                server.start()
                if primary is None:
                    server.execute(f"CREATE ROLE {OWNER} LOGIN PASSWORD '{server.password}'")
                yield server
            finally:
                server.kill()

    @property
    def version(self) -> int:
        """Its major version."""
        return int(self._programs.parent.name)

    def url(self, database: str, user: str = OWNER, password: str | None = None) -> str:
        """For a client."""
        secret = self.password if password is None else password
        return f"postgresql://{user}:{secret}@{ADDRESS}:{self.port}/{database}"

    def create_database(self, name: str | None = None, options: str = "") -> str:
        """A new, empty database of :data:`OWNER`; its URL."""
        name = name or f"db{secrets.token_hex(6)}"
        if self.version >= 15:
            options += " STRATEGY file_copy"  # ten times as quick where the disk is not waited for
        self.execute(f"CREATE DATABASE {name} OWNER {OWNER} {options}")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """End everybody's connections to it, and remove it."""
        name = url.rpartition("/")[2]
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the server's administrator; the rows it gives."""
        address = self.url(database, _ADMINISTRATOR)
        with closing(psycopg.connect(address, autocommit=True)) as connection:
            cursor = connection.execute(sql.SQL(statement))
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        """Until it takes connections. Raises ``Unavailable`` with its last words.

        One that runs is left as it is.
        """
        if self._child is not None and self._child.poll() is None:
            return
        latest = self._clock.monotonic() + _SECONDS
        while not self._started():
            # what a killed server shared with its sessions lives until the last of them has ended
            if self._clock.monotonic() > latest or "shared memory" not in self._words():
                raise Unavailable("store_unavailable", f"PostgreSQL ended: {self._words()}")

    def stop(self) -> None:
        """As its administrator would: sessions are ended, everything is written."""
        if self._child is not None:
            self._child.send_signal(signal.SIGINT)
            self._child.wait(_SECONDS)
            self._child = None

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """SIGKILL to every process of it at once; nothing is written or said any more."""
        if self._child is None:
            return
        processes = [self._child.pid, *descendants(self._child.pid)]
        for process in processes:
            _signal(process, signal.SIGKILL)
        self._child.wait()
        self._child = None
        for process in processes:
            self._until(lambda process=process: not is_running(process))

    def freeze(self) -> None:
        """Stop every process where it stands: connections stay, and nothing is answered."""
        assert self._child is not None
        for process in (self._child.pid, *descendants(self._child.pid)):
            _signal(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        assert self._child is not None
        for process in (self._child.pid, *descendants(self._child.pid)):
            _signal(process, signal.SIGCONT)

    def promote(self) -> None:
        """Make a standby the primary."""
        self.execute("SELECT pg_promote(true)")

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"

    def _prepare(self) -> None:
        self._account.own(self.folder)
        secret = self.folder / "password"
        secret.touch(mode=0o600)
        secret.write_text(self.password)
        self._account.own(secret)
        if self._primary is None:
            self._run("initdb", "-U", _ADMINISTRATOR, "-A", "scram-sha-256", "-E", "UTF8",
                      f"--pwfile={secret}", "--locale=C.UTF-8", "--locale-provider=icu",
                      "--icu-locale=en-US", "--no-sync", "-D", str(self._data))  # fmt: skip
        else:
            source = self._primary.url("postgres", _ADMINISTRATOR)
            self._run("pg_basebackup", "-d", source, "-c", "fast", "-R", "--no-sync",
                      "-D", str(self._data))  # fmt: skip

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._account.prefix, self._programs / program, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env=self._account.environment,
        )
        if done.returncode:
            raise Unavailable("store_unavailable", f"{program} failed: {done.stderr.strip()}")

    def _started(self) -> bool:
        """Start it; False when it ended at once."""
        settings = [f"-c{name}={value}" for name, value in self._settings.items()]
        with self._log.open("wb") as log:
            self._child = subprocess.Popen(
                [*self._account.prefix, self._programs / "postgres", "-D", self._data,
                 f"-p{self.port}", f"-k{self.folder}", *settings],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._account.environment,
            )  # fmt: skip
        child = self._child
        self._until(lambda: child.poll() is not None or self._is_ready(child.pid))
        if child.poll() is None:
            return True
        self._child = None
        return False

    def _is_ready(self, process: int) -> bool:
        """By the file in which the server says so; lines 1 and 8, as ``pg_ctl`` reads it."""
        with suppress(OSError):
            lines = (self._data / "postmaster.pid").read_text().splitlines()
            return len(lines) > 7 and lines[0] == str(process) and lines[7].strip() in _READY
        return False

    def _until(self, condition: Any) -> None:
        latest = self._clock.monotonic() + _SECONDS
        while not condition():
            if self._clock.monotonic() > latest:
                raise Unavailable("store_unavailable", f"PostgreSQL hangs: {self._words()}")
            Event().wait(_LOOK_SECONDS)

    def _words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n  ".join(lines[-_TAIL_LINES:])


_READY: Final = ("ready", "standby")


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that the server's account reaches; locked while this process lives."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))
    with (folder / "new").open("w") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        (folder / "new").rename(folder / "owner")  # never seen unlocked by whoever clears away
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _clear_what_others_left() -> None:
    for owner in Path("/tmp").glob(f"{_PREFIX}*/owner"):
        with suppress(OSError), owner.open() as file:
            if owner.stat().st_uid == os.getuid():
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(owner.parent, ignore_errors=True)
