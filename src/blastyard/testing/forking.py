"""A process that has imported everything once, and forks others in milliseconds.

Its module is run as ``python -m <module> <socket>`` by a :class:`Forker`, and calls :func:`forked`.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from threading import Lock
from typing import Final

_LONGEST: Final = 1 << 20
_MOST: Final = 8


class Forker:
    """The process that forks. ``prefix`` is a command that starts it (an account's).

    It ends when this is closed, or with this process; what it has forked lives on.
    """

    def __init__(self, module: str, prefix: Sequence[str] = ()) -> None:
        self._lock = Lock()
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST)
        with theirs:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, "-m", module, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def fork(self, order: bytes, descriptors: Sequence[int]) -> int:
        """Fork a process and give it these; its pid. Raises ``AssertionError``: it has ended."""
        with self._lock:
            socket.send_fds(self._orders, [order], descriptors)
            pid = int(self._orders.recv(100) or 0)
        assert pid, "the process that forks has ended"
        return pid

    def close(self, patience: float) -> None:
        """End the process that forks, and wait for that for so many seconds."""
        self._orders.close()
        self._process.wait(patience)


def forked(number: int) -> tuple[bytes, Sequence[int]] | None:
    """Fork for each order that comes through the socket ``number``.

    Returns in each fork, with its order and descriptors; and ``None`` when no order comes any more.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are buried by the kernel
    with socket.socket(fileno=number) as orders:
        while True:
            order, descriptors, _, _ = socket.recv_fds(orders, _LONGEST, _MOST)
            if not order:
                return None
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return order, descriptors
            for descriptor in descriptors:
                os.close(descriptor)
            orders.send(str(pid).encode())
