"""Runs one command and leaves nothing of it behind.

A program of its own, standard library only. It ends the command **and every descendant of it**,
whatever they did to get away (``setsid``, double fork), when

* the deadline passes (monotonic seconds; a stopped owner cannot move it),
* its owner asks (``end`` on the control pipe, or SIGTERM),
* its owner is dead (end-of-file of the control pipe, or the owner's pidfd),
* the command itself has ended and left something running.

It can do so because it is a *child subreaper* (``prctl(2)``): an orphaned descendant becomes its
child, so "no child left" is "no descendant left". If the guardian itself is killed, the kernel
kills the command (parent-death signal); what the command had started by then is found by a mark
in its environment, ``<guardian's pid>.<guardian's start ticks>``.

Its arguments and the words on its two pipes stand in :mod:`blastyard.engine.command`, which
starts it as ``python -I -S guardian.py key=value … -- command …``.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_HARD_CPU_SECONDS = 5
_SAMPLE_SECONDS = (0.01, 1.0)
_SAMPLE_GROWTH = 1.1
_KILL_SECONDS = (0.001, 0.05)
_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)
_HEARD = (signal.SIGTERM, signal.SIGCHLD)


class Guardian:
    """One command's life, from its start to the end of its last descendant."""

    def __init__(self, options: dict[str, str], argv: list[str]) -> None:
        self.options = options
        self.argv = argv
        self.control = int(options["control"])
        self.status = int(options["status"])
        self.deadline = _deadline(options["deadline"])
        self.poller = select.poll()
        self.pid = os.getpid()
        self.started = _stat(self.pid)[1]
        self.reason = ""
        self.wait_status: int | None = None
        self.cpu_seconds = 0.0
        self.peak_bytes = self.data_bytes = self.mapped_bytes = 0
        self.tail_size = int(options.get("tail", "0"))
        self.tail = bytearray()
        self.tail_fd = -1
        self._words = b""

    def run(self) -> None:
        """Start the command, watch it, end it, say so."""
        self._prepare()
        if self._start():
            import json  # noqa: PLC0415  (while the command runs, it costs nobody's time)

            self._watch()
            self._clear()
            self._report(json.dumps(self._ending()).encode() + b"\n")

    def _prepare(self) -> None:
        for descriptor in (self.control, self.status):
            os.set_inheritable(descriptor, False)
        if self.options.get("private"):
            _close_all_but({0, 1, 2, self.control, self.status})
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self.wakeup, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        for number in _HEARD:
            signal.signal(number, lambda *_: None)  # the wake-up pipe tells
        os.set_blocking(self.control, False)
        self.poller.register(self.wakeup, select.POLLIN)
        self.poller.register(self.control, select.POLLIN)
        # a copy of the control pipe in some forked process must not keep the command alive
        self.owner, owner = -1, int(self.options["owner"])
        with suppress(OSError):  # kernels before 5.3: the pipe alone must do
            self.owner = os.pidfd_open(owner)
            self.poller.register(self.owner, select.POLLIN)
        if os.getppid() != owner:
            self.reason = "owner_gone"

    def _start(self) -> bool:
        os.environ[self.options["mark"]] = f"{self.pid}.{self.started}"
        error_read, error_write = os.pipe()
        stderr = 2
        if self.tail_size:
            self.tail_fd, stderr = os.pipe()
            os.set_blocking(self.tail_fd, False)
            self.poller.register(self.tail_fd, select.POLLIN)
        self.command = os.fork()
        if self.command == 0:
            self._become(stderr, error_write)
        os.close(error_write)
        if stderr != 2:
            os.close(stderr)
        trouble = os.read(error_read, 100)
        os.close(error_read)
        if trouble:
            os.waitpid(self.command, 0)
            self._say(b"failed " + trouble + b"\n")
            return False
        self.command_started = _stat(self.command)[1]
        self._say(f"started {self.command} {self.command_started}\n".encode())
        # a reader of the command's output must see its end when the command ends
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        return True

    def _become(self, stderr: int, error_write: int) -> None:
        """In the child: turn into the command. Never returns."""
        stage = "prepare"
        try:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != self.pid:
                os._exit(127)
            os.setpgid(0, 0)
            if stderr != 2:
                os.dup2(stderr, 2)
            for number in (*_IGNORED, *_HEARD):
                signal.signal(number, signal.SIG_DFL)
            stage = "chdir"
            os.chdir(self.options["cwd"])
            stage = "limit"
            _limit(self.options)
            stage = "exec"
            os.execvp(self.argv[0], self.argv)  # noqa: S606
        except (OSError, ValueError) as error:
            os.write(error_write, f"{stage} {getattr(error, 'errno', 0)}".encode())
        finally:
            os._exit(127)

    def _watch(self) -> None:
        """Until the command has ended or must end."""
        sampling = "memory" in self.options
        every = _SAMPLE_SECONDS[0]
        while self._reap() and self.wait_status is None and not self.reason:
            self._attend(every if sampling else None)
            if sampling:
                self._sample()
                every = min(every * _SAMPLE_GROWTH, _SAMPLE_SECONDS[1])

    def _attend(self, longest: float | None) -> None:
        """Wait for news, at most ``longest`` seconds, and take it in."""
        if self.deadline is not None:
            left = max(0.0, self.deadline - time.monotonic())
            longest = left if longest is None else min(left, longest)
        news = self.poller.poll(None if longest is None else int(longest * 1000) + 1)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            # judged before the control pipe is read: an extension that comes late is late
            self.reason = "deadline"
            return
        for descriptor, _ in news:
            if descriptor == self.control:
                self._obey()
            elif descriptor == self.owner:
                self.reason = self.reason or "owner_gone"
            elif descriptor == self.wakeup:
                if signal.SIGTERM in os.read(self.wakeup, 512):
                    self.reason = self.reason or "end"
            else:
                self._keep_tail()

    def _obey(self) -> None:
        data = os.read(self.control, 4096)
        if not data:
            self.reason = self.reason or "owner_gone"
        *lines, self._words = (self._words + data).split(b"\n")
        for line in lines:
            word, _, value = line.decode("ascii", "replace").partition(" ")
            if word == "end":
                self.reason = self.reason or "end"
            elif word == "deadline":
                # what cannot be read changes nothing: the earlier deadline stands
                with suppress(ValueError):
                    self.deadline = _deadline(value)

    def _keep_tail(self) -> bool:
        """Take in some of the command's standard error; whether there may be more now."""
        with suppress(BlockingIOError):
            if data := os.read(self.tail_fd, 65536):
                self.tail += data
                del self.tail[: -self.tail_size]
                return True
            self.poller.unregister(self.tail_fd)
            self.tail_fd = -1
        return False

    def _sample(self) -> None:
        """Memory now, by kind: gone from /proc when the process ends."""
        with suppress(OSError):
            for line in _read(f"/proc/{self.command}/status").splitlines():
                if line.startswith(b"VmData:"):  # what RLIMIT_DATA counts
                    self.data_bytes = max(self.data_bytes, int(line.split()[1]) * 1024)
                elif line.startswith(b"RssFile:"):
                    self.mapped_bytes = max(self.mapped_bytes, int(line.split()[1]) * 1024)

    def _reap(self) -> bool:
        """Bury the dead; whether any child is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.cpu_seconds += usage.ru_utime + usage.ru_stime
            self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * 1024)
            if pid == self.command:
                self.wait_status = status

    def _clear(self) -> None:
        """Kill until nothing is left. A process that cannot be killed is waited for."""
        pause = _KILL_SECONDS[0]
        if self.wait_status is None:
            _kill(self.command, self.command_started)
        while self._reap():
            for pid, ticks in _descendants(self.pid):
                _kill(pid, ticks)
            select.select([self.wakeup], [], [], pause)
            with suppress(BlockingIOError):
                os.read(self.wakeup, 512)
            pause = min(pause * 2, _KILL_SECONDS[1])
        while self.tail_fd >= 0 and self._keep_tail():
            pass

    def _ending(self) -> dict[str, object]:
        code = os.waitstatus_to_exitcode(self.wait_status or 0)
        by_us = self.reason and code == -signal.SIGKILL
        # the most private memory it had: seen, or what its peak was beyond mapped files
        beyond = self.peak_bytes - self.mapped_bytes if self.mapped_bytes else 0
        return {
            "guardian": self.pid,
            "started": self.started,
            "exit_code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "cpu_seconds": round(self.cpu_seconds, 3),
            "peak_memory_bytes": self.peak_bytes,
            "data_bytes": max(self.data_bytes, beyond),
            "ended_by": self.reason if by_us else "itself",
            "stderr": self.tail.decode("utf-8", "replace"),
        }

    def _report(self, line: bytes) -> None:
        """The record first: who reads the status pipe may look for it at once."""
        if record := self.options.get("record"):
            with suppress(OSError):
                with open(record + ".new", "wb") as file:  # noqa: PTH123
                    file.write(line)
                os.rename(record + ".new", record)  # noqa: PTH104
        self._say(line)

    def _say(self, line: bytes) -> None:
        with suppress(OSError):
            while line:
                line = line[os.write(self.status, line) :]


def _deadline(text: str) -> float | None:
    return None if text == "never" else float(text)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _limit(options: dict[str, str]) -> None:
    """Niceness and limits. RLIMIT_DATA counts private memory, not the mapped database."""
    os.nice(int(options["nice"]))
    for which, text, more in (
        (resource.RLIMIT_CORE, "0", 0),
        (resource.RLIMIT_DATA, options.get("memory"), 0),
        (resource.RLIMIT_FSIZE, options.get("output"), 0),
        (resource.RLIMIT_CPU, options.get("cpu"), _HARD_CPU_SECONDS),
    ):
        if text is not None:
            soft, ceiling = int(text), resource.getrlimit(which)[1]
            bound = sys.maxsize if ceiling == resource.RLIM_INFINITY else ceiling
            resource.setrlimit(which, (min(soft, bound), min(soft + more, bound)))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123  (pathlib takes 8 ms to import)
        return file.read()


def _stat(pid: int | str) -> tuple[int, int]:
    """(parent, start ticks) of a process; raises OSError when there is none."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[1]), int(fields[19])


def _descendants(ancestor: int) -> list[tuple[int, int]]:
    """(pid, start ticks) of every process below ``ancestor``, as of one pass over /proc."""
    children: dict[int, list[tuple[int, int]]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        with suppress(OSError, IndexError):
            parent, ticks = _stat(name)
            children.setdefault(parent, []).append((int(name), ticks))
    found: list[tuple[int, int]] = []
    level = children.get(ancestor, [])
    while level:
        found += level
        level = [child for pid, _ in level for child in children.get(pid, [])]
    return found


def _kill(pid: int, ticks: int) -> None:
    """SIGKILL to this process, not to a later one of the same number."""
    with suppress(OSError):
        if _stat(pid)[1] == ticks:
            os.kill(pid, signal.SIGKILL)


def _close_all_but(kept: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) not in kept:
            with suppress(OSError):
                os.close(int(name))


def main(arguments: list[str]) -> None:
    """Take the arguments apart and run."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:  # closed by the caller: no pipe of ours may get its number
            os.open(os.devnull, os.O_RDWR)
    middle = arguments.index("--")
    options = dict(pair.split("=", 1) for pair in arguments[:middle])
    Guardian(options, arguments[middle + 1 :]).run()


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)
