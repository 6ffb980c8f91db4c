"""A proxy on loopback between one program and a real HTTP server, with faults on demand.

::

    with FaultProxy.before(control_plane) as proxy:
        proxy.write_kubeconfig(path, token, namespace)
        proxy.plan.add(Rule(LostAnswer(), "PUT", "/leases/"))   # the next PUT of a Lease
        proxy.cut(); proxy.heal()                               # the network of this program
        proxy.log.records("GET", "/jobs")

It ends TLS with the API server's own certificate, so that a kubeconfig for it differs in the port
alone; before a server that speaks plain HTTP it speaks plain HTTP. Requests are passed on one by
one and never twice; answers pass unbuffered, so watches work. Connections that are upgraded
(``kubectl exec``) are not passed on.

One proxy for each program makes a network cut that only this program feels.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar
from urllib.parse import urlsplit

from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_kubeconfig import kubeconfig
from blastyard.testing.controlplane_program import Layout
from blastyard.testing.proxy_fault import Log, Plan
from blastyard.testing.proxy_message import HEAD_LIMIT
from blastyard.testing.proxy_session import ClientSide, Session

ADDRESS: Final = "127.0.0.1"
PATIENCE_SECONDS: Final = 10.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Server:
    """The server behind the proxy; where it speaks TLS, the certificate and key the proxy shows."""

    url: str
    ca_file: Path | None = None
    key_file: Path | None = None


class FaultProxy:
    """A running proxy, from entering the ``with`` to leaving it. All methods are thread-safe.

    Attributes: ``url`` to ask instead of the server's, ``plan`` of faults, ``log`` of requests.
    """

    def __init__(self, server: Server, plan: Plan | None = None) -> None:
        self.plan = plan or Plan()
        self.log = Log()
        self.url = ""
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy")
        self._sessions: dict[Session, asyncio.Task[None]] = {}
        self._is_cut = False
        self.flowing = asyncio.Event()
        self._trust: ssl.SSLContext | None = None
        self._identity: ssl.SSLContext | None = None
        if server.ca_file is not None:
            self._trust = ssl.create_default_context(cafile=str(server.ca_file))
            self._identity = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._identity.load_cert_chain(server.ca_file, server.key_file)

    @classmethod
    def before(cls, cluster: ControlPlane) -> Self:
        """A proxy in front of this control plane."""
        key_file = Layout(cluster.directory).keys / "apiserver.key"
        return cls(Server(cluster.url, cluster.ca_file, key_file))

    def __enter__(self) -> Self:
        self._thread.start()
        self._listener = self._call(self._listen()).result(PATIENCE_SECONDS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._call(self._close()).result(PATIENCE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    def write_kubeconfig(self, path: Path, token: str, namespace: str) -> Path:
        """Write a kubeconfig (context ``blastyard``) that asks the proxy; the same path."""
        assert self._server.ca_file is not None
        certificate = self._server.ca_file.read_bytes()
        path.touch(mode=0o600)
        path.write_bytes(kubeconfig(self.url, certificate, token, namespace))
        return path

    def cut(self) -> None:
        """Reset every connection, and every new one, until it is healed."""
        self._do(self._cut)

    def heal(self) -> None:
        """Let new connections work again."""
        self._do(lambda: setattr(self, "_is_cut", False))

    def pause(self) -> None:
        """Pass on nothing more, in either direction, and keep all connections."""
        self._do(self.flowing.clear)

    def resume(self) -> None:
        """Pass on again, beginning with what came meanwhile."""
        self._do(self.flowing.set)

    def _do(self, change: Callable[[], None]) -> None:
        async def apply() -> None:
            change()

        self._call(apply()).result(PATIENCE_SECONDS)

    def _call(self, doing: Coroutine[object, object, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(doing, self._loop)

    # -- in the event loop -----------------------------------------------------------------------

    async def _listen(self) -> asyncio.Server:
        self.flowing.set()
        listener = await self._loop.create_server(self._accept, ADDRESS, 0, ssl=self._identity)
        scheme = "http" if self._identity is None else "https"
        self.url = f"{scheme}://{ADDRESS}:{listener.sockets[0].getsockname()[1]}"
        return listener

    def _accept(self) -> ClientSide:
        return ClientSide(asyncio.StreamReader(HEAD_LIMIT, self._loop), self._begin)

    def _begin(self, side: ClientSide, writer: asyncio.StreamWriter) -> None:
        session = Session(self, side, writer)
        if self._is_cut:
            session.abort()
            return
        task = self._loop.create_task(session.serve())
        self._sessions[session] = task
        task.add_done_callback(lambda _: self._sessions.pop(session))

    def connect(self) -> Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """See the network of a session."""
        address = urlsplit(self._server.url)
        return asyncio.open_connection(
            address.hostname, address.port, ssl=self._trust, limit=HEAD_LIMIT
        )

    def _cut(self) -> None:
        self._is_cut = True
        for session, task in self._sessions.items():
            session.abort()
            task.cancel()

    async def _close(self) -> None:
        self._listener.close()
        tasks = list(self._sessions.values())
        self._cut()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # aborted transports say so in the next turn of the loop
        await self._loop.shutdown_asyncgens()
