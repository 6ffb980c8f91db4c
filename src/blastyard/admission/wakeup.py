"""Telling the other processes of this machine that something changed, within a millisecond.

Every watching process binds a Unix datagram socket in one directory; whoever changed something
sends one byte to each of them. The byte means nothing: the reader looks at the store. What is not
guaranteed: delivery. A full socket, a process without permission, a directory swept empty lose
wake-ups silently, so callers keep a floor under every wait.
"""

from __future__ import annotations

import math
import os
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final
from weakref import WeakSet

from blastyard.domain.errors import Unavailable

_SUFFIX: Final = ".wake"
_DRAIN_BYTES: Final = 16
_LONGEST_MS: Final = 2**31 - 1


class Wakeup:
    """The processes that share ``directory``; it is made when somebody first watches."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def notify(self) -> None:
        """Wake every watch of every process. Never raises, never blocks."""
        with (
            suppress(OSError),
            _opened(self._directory) as directory,
            os.scandir(directory) as entries,
            _datagram_socket() as sender,
        ):
            for name in [entry.name for entry in entries if entry.name.endswith(_SUFFIX)]:
                _poke(sender, directory, name)

    def watch(self) -> SocketWatch:
        """A watch of this process. Raises ``Unavailable`` when no socket can be bound there."""
        return SocketWatch(self._directory)


class SocketWatch:
    """A bound socket, and an event of this process. After a fork the child has sockets anew."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._closed = False
        self._waiting = Lock()
        self._waking = Lock()
        self._event = _event()
        self._socket: socket.socket | None = None
        self._name = ""
        try:
            self._bind()
        except BaseException:
            os.close(self._event)
            raise
        _watches.add(self)

    def wait(self, timeout_seconds: float) -> bool:
        """Block up to the timeout; whether something may have changed. False once closed.

        Never raises: a watch that cannot bind its socket again hears ``wake`` and its timeout only.
        """
        with self._waiting:
            if self._closed:
                return False
            if not self._is_bound():
                with suppress(Unavailable):
                    self._bind()
                    return True  # what happened in between was not heard
            return self._poll(timeout_seconds)

    def wake(self) -> None:
        """End the ``wait`` that is going on, or else the next one. From any thread."""
        with self._waking:
            if not self._closed:
                os.eventfd_write(self._event, 1)

    def close(self) -> None:
        """End a ``wait`` that is going on, and stop watching."""
        with self._waking:
            if self._closed:
                return
            self._closed = True
            os.eventfd_write(self._event, 1)
        with self._waiting:
            self._unbind()
            os.close(self._event)

    def _poll(self, timeout_seconds: float) -> bool:
        poll = select.poll()
        if self._socket is not None:
            poll.register(self._socket, select.POLLIN)
        poll.register(self._event, select.POLLIN)
        milliseconds = math.ceil(max(0.0, timeout_seconds) * 1000)
        ready = poll.poll(min(milliseconds, _LONGEST_MS))
        if ready:
            self._drain()
        return bool(ready)

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._event)
        with suppress(BlockingIOError):
            while self._socket is not None:
                self._socket.recv(_DRAIN_BYTES)

    def _is_bound(self) -> bool:
        try:
            (self._directory / self._name).lstat()
        except OSError:
            return False
        return self._socket is not None

    def _bind(self) -> None:
        self._unbind()
        try:
            self._socket, self._name = _bound(self._directory)
        except OSError as error:
            raise Unavailable(
                "store_unavailable",
                f"No wake-up socket can be made in {self._directory}: {error.strerror or error}.",
                "Check that this account may write there, and that the disk is not full.",
            ) from error

    def _unbind(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            with suppress(OSError):
                (self._directory / self._name).unlink()

    def _forget_parent(self) -> None:
        """In a forked child: let go of what belongs to the parent, without ending it there."""
        self._waiting, self._waking = Lock(), Lock()
        if self._closed:
            return
        if self._socket is not None:
            self._socket.close()  # the name stays: it is the parent's
            self._socket = None
        os.close(self._event)
        self._event = _event()


_watches: WeakSet[SocketWatch] = WeakSet()


def _after_fork() -> None:
    for watch in list(_watches):
        watch._forget_parent()


os.register_at_fork(after_in_child=_after_fork)


def _event() -> int:
    return os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)


def _datagram_socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _address(directory: int, name: str) -> str:
    # a socket address holds 107 bytes; a home may be deeper than that
    return f"/proc/self/fd/{directory}/{name}"


def _bound(path: Path) -> tuple[socket.socket, str]:
    """A bound socket and its name, with the read and write bits of its directory."""
    _make_directory(path)
    name = f"{os.getpid()}-{os.urandom(6).hex()}"
    with _opened(path) as directory:
        receiver = _datagram_socket()
        try:
            receiver.bind(_address(directory, name))
            os.chmod(name, 0o600 | os.fstat(directory).st_mode & 0o060, dir_fd=directory)
            # seen by senders only when it is ready: a name that is not yet bound looks dead
            os.rename(name, name + _SUFFIX, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            receiver.close()
            raise
    return receiver, name + _SUFFIX


def _make_directory(path: Path) -> None:
    if not path.is_dir():
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(path.parent.stat().st_mode & 0o2770 | 0o700)


def _poke(sender: socket.socket, directory: int, name: str) -> None:
    try:
        sender.sendto(b"\0", _address(directory, name))
    except ConnectionRefusedError:  # its process is gone
        with suppress(OSError):
            os.unlink(name, dir_fd=directory)
    except OSError:
        return  # full: it will wake anyway; gone or forbidden: nobody to wake
