"""The socket the service listens on, bound before anything else so that its address is known."""

from __future__ import annotations

import errno
import ipaddress
import socket
from types import TracebackType
from typing import Final, Self

from blastyard.domain.errors import Misconfigured, Unavailable

_LOOPBACK_ONLY: Final = (
    "use 127.0.0.1, ::1 or localhost; from elsewhere: ssh -L 8642:127.0.0.1:8642"
)


class Listener:
    """A bound loopback socket. Closed by whoever made it."""

    def __init__(self, bound: socket.socket) -> None:
        self.socket = bound

    @classmethod
    def bind(cls, host: str, port: int) -> Self:
        """Bind; port 0 takes any free one.

        Raises ``Misconfigured('settings_invalid')`` for a host that is not loopback, and
        ``Unavailable('port_taken')`` when somebody else has the port.
        """
        family, address = _loopback(host)
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((address, port))
        except OSError as error:
            bound.close()
            raise _not_bound(host, port, error) from error
        return cls(bound)

    @property
    def address(self) -> str:
        """Where a browser goes."""
        host, port = self.socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def close(self) -> None:
        """Let go of the port."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _loopback(host: str) -> tuple[socket.AddressFamily, str]:
    name = host.strip("[]")
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError as error:
        message = f"{host!r} is no address of this machine: {error.strerror}"
        raise Misconfigured("settings_invalid", message, _LOOPBACK_ONLY) from error
    addresses = sorted((family, str(address[0])) for family, _, _, _, address in found)
    for _, address in addresses:
        if not ipaddress.ip_address(address.partition("%")[0]).is_loopback:
            message = f"{host!r} can be reached from elsewhere: loopback only until users exist"
            raise Misconfigured("settings_invalid", message, _LOOPBACK_ONLY)
    return addresses[0]  # IPv4 sorts first


def _not_bound(host: str, port: int, error: OSError) -> Misconfigured | Unavailable:
    if error.errno == errno.EADDRINUSE:
        message = f"port {port} of {host} is in use by another program"
        return Unavailable("port_taken", message, "choose another: `blastyard serve --port 0`")
    message = f"port {port} of {host} cannot be used: {error.strerror}"
    return Misconfigured("settings_invalid", message, "choose a port above 1023")
