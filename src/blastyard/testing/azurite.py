"""A real Azure Table service on this machine, for tests and trials: Azurite on loopback.

::

    with Azurite() as azurite:
        open_azure_tables(azurite.connection_string, table="mine")
        azurite.stop(); azurite.start()   # the same address, the same data

It ends with the process that started it, however that ends. What is in it lives as long as the
object: :meth:`Azurite.stop` saves it, a kill may lose its last five seconds, which is the
emulator's nature and not the service's.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable
from blastyard.settings import caller_environment
from blastyard.testing.azurite_install import Program, program

ADDRESS: Final = "127.0.0.1"
ACCOUNT: Final = "devstoreaccount1"
KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""The key of the emulator's one account, as its manual publishes it. It opens nothing else."""

_START_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.02
_ATTEMPTS: Final = 3
_READY: Final = b"successfully started"
_OPTIONS: Final = ("--silent", "--disableTelemetry", "--tableHost", ADDRESS)
# an idle connection that the server closes while a request is on its way would look like a fault
_KEEP_ALIVE_SECONDS: Final = "600"


class Azurite:
    """A running Table service, from entering the ``with`` to leaving it.

    Attributes: ``url`` of its account, ``connection_string`` with the account's key. Raises
    ``Unavailable('dependency_missing')`` where Azurite cannot be had, or does not start.
    """

    def __init__(self, azurite: Program | None = None) -> None:
        self._program = azurite or program()
        self._folder = Path(tempfile.mkdtemp(prefix="by-azurite-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self._port}/{ACCOUNT}"

    @property
    def connection_string(self) -> str:
        return connection_string(self.url)

    @property
    def pid(self) -> int:
        """Of the running service."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        for attempt in range(1, _ATTEMPTS + 1):
            self._port = _free_port()
            try:
                self.start()
                break
            except Unavailable as error:
                if attempt == _ATTEMPTS or "EADDRINUSE" not in error.message:
                    self.close()
                    raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start it again after :meth:`stop` or :meth:`kill`; returns when it answers."""
        where = ("--location", str(self._folder), "--tablePort", str(self._port))
        kept = ("--tableKeepAliveTimeout", _KEEP_ALIVE_SECONDS)
        node, leash, main = self._program.node, self._program.leash, self._program.main
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [node, "-r", leash, main, *_OPTIONS, *where, *kept],
                stdin=subprocess.PIPE,  # the leash: see leash.js
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={"PATH": caller_environment()["PATH"], "LEASH_FOLDER": str(self._folder)},
                start_new_session=True,  # Ctrl-C is for the tests
            )
        self._wait_until_it_listens(self._process)

    def stop(self) -> None:
        """Have it save what it holds, and end."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill it where it stands."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """End it, and forget what is in it."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _log(self) -> Path:
        return self._folder / "azurite.log"

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(_START_SECONDS)
        finally:
            assert process.stdin is not None
            process.stdin.close()

    def _wait_until_it_listens(self, process: subprocess.Popen[bytes]) -> None:
        clock = SystemClock()
        latest = clock.monotonic() + _START_SECONDS
        while _READY not in self._log.read_bytes():
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)
            if process.returncode is not None or clock.monotonic() > latest:
                told = self._log.read_text(errors="replace")[-1000:]
                self.kill()
                raise Unavailable("dependency_missing", f"Azurite did not start: {told}")


def connection_string(url: str) -> str:
    """Of the emulator's account, where it is to be reached at that address."""
    return f"AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={url}"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((ADDRESS, 0))
        port: int = listener.getsockname()[1]
        return port
