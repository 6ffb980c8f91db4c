"""Runs one command and leaves nothing of it behind.

A program of its own, standard library only, started as ``python -I -S guardian.py …`` by
:mod:`blastyard.engine.guarded`. It ends the command **and every descendant of it**, whatever they
did to get away (``setsid``, double fork), when

* the deadline passes (monotonic seconds; a stopped owner cannot move it),
* its owner asks (``end`` on the control pipe, or SIGTERM),
* its owner is dead (end-of-file of the control pipe, or the owner's pidfd),
* the command itself has ended and left something running.

It can do so because it is a *child subreaper* (``prctl(2)``): an orphaned descendant becomes its
child, so "no child left" is "no descendant left". If the guardian itself is killed, the kernel
kills the command (parent-death signal); what the command had started by then is found by a mark
in its environment, ``<guardian's pid>.<guardian's start ticks>``.

Arguments: ``key=value`` pairs, then ``--``, then the command. Keys: ``control``, ``status`` (file
descriptors), ``owner`` (pid), ``mark`` (variable), ``deadline`` (monotonic seconds or ``never``),
``cwd``, ``nice``, ``memory``, ``output`` (bytes), ``cpu`` (seconds), ``tail`` (keep that many bytes
of the command's standard error), ``record`` (file for the last line of status), ``private``
(``1``: the command inherits no descriptor but 0, 1 and 2).

Control pipe, lines: ``deadline <seconds>|never``, ``end``. Status pipe, lines: ``started <pid>
<start ticks>`` or ``failed <stage> <errno>``, and at the end one JSON object: ``guardian``,
``started`` (who wrote it), ``exit_code``, ``signal``, ``cpu_seconds``, ``peak_memory_bytes``
(resident, mapped files included), ``data_bytes`` (private memory, sampled; 0 without a memory
limit), ``ended_by`` (``itself``, ``end``, ``deadline``, ``owner_gone``), ``stderr``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_HARD_CPU_SECONDS = 5
_SAMPLE_SECONDS = (0.02, 1.0)
_KILL_SECONDS = (0.001, 0.05)
_RESET = (
    signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ,
)  # fmt: skip


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _stat(pid: int | str) -> tuple[int, int]:
    """(parent, start ticks) of a process; raises OSError when there is none."""
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  (pathlib takes 8 ms to import)
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[1]), int(fields[19])


def _descendants(ancestor: int) -> list[tuple[int, int]]:
    """(pid, start ticks) of every process below ``ancestor``, as of one pass over /proc."""
    children: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):
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
    with contextlib.suppress(OSError):
        if _stat(pid)[1] == ticks:
            os.kill(pid, signal.SIGKILL)


class Guardian:
    """One command's life, from start to the end of its last descendant."""

    def __init__(self, options: dict[str, str], argv: list[str]) -> None:
        self.options = options
        self.argv = argv
        self.control = int(options["control"])
        self.status = int(options["status"])
        self.deadline = _deadline(options["deadline"])
        self.tail_size = int(options.get("tail", "0"))
        self.poller = select.poll()
        self.command = 0
        self.reason = ""
        self.wait_status: int | None = None
        self.cpu_seconds = 0.0
        self.peak_kilobytes = 0
        self.data_bytes = 0
        self.tail = bytearray()
        self.tail_fd = -1
        self._commands = b""

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
        if self.options.get("private") == "1":
            _close_others({0, 1, 2, self.control, self.status})
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self.wakeup, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        os.set_blocking(self.control, False)
        self.poller.register(self.wakeup, select.POLLIN)
        self.poller.register(self.control, select.POLLIN)
        self._watch_owner()

    def _watch_owner(self) -> None:
        """A copy of the control pipe in some forked process must not keep the command alive."""
        self.owner = -1
        owner = int(self.options["owner"])
        with contextlib.suppress(OSError):  # kernels before 5.3: the pipe alone must do
            self.owner = os.pidfd_open(owner)
            self.poller.register(self.owner, select.POLLIN)
        if os.getppid() != owner:
            self.reason = "owner_gone"

    def _start(self) -> bool:
        guardian = os.getpid()
        self.identity = (guardian, _stat(guardian)[1])
        os.environ[self.options["mark"]] = "{}.{}".format(*self.identity)
        error_read, error_write = os.pipe()
        stderr = 2
        if self.tail_size:
            self.tail_fd, stderr = os.pipe()
            os.set_blocking(self.tail_fd, False)
            self.poller.register(self.tail_fd, select.POLLIN)
        self.command = os.fork()
        if self.command == 0:
            self._become(guardian, stderr, error_write)
        os.close(error_write)
        if stderr != 2:
            os.close(stderr)
        trouble = os.read(error_read, 100)
        os.close(error_read)
        if trouble:
            os.waitpid(self.command, 0)
            self._say(b"failed " + trouble + b"\n")
            return False
        self._say(f"started {self.command} {_stat(self.command)[1]}\n".encode())
        _let_go_of_standard_streams()
        return True

    def _become(self, guardian: int, stderr: int, error_write: int) -> None:
        """In the child: turn into the command. Never returns."""
        stage = "prepare"
        try:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guardian:
                os._exit(127)
            os.setpgid(0, 0)
            os.dup2(stderr, 2)
            for number in _RESET:
                signal.signal(number, signal.SIG_DFL)
            stage = "chdir"
            os.chdir(self.options.get("cwd", "."))
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
        sample_every = _SAMPLE_SECONDS[0]
        sampling = "memory" in self.options
        while True:
            self._reap()
            if self.wait_status is not None:
                return
            if self.deadline is not None and time.monotonic() >= self.deadline:
                # judged before the control pipe is read: an extension that comes late is late
                self.reason = self.reason or "deadline"
            if self.reason:
                return
            self._attend(sample_every if sampling else None)
            if sampling:
                self._sample()
                sample_every = min(sample_every * 2, _SAMPLE_SECONDS[1])

    def _attend(self, longest: float | None) -> None:
        """Wait for news, at most ``longest`` seconds, and take it in."""
        if self.deadline is not None:
            left = max(0.0, self.deadline - time.monotonic())
            longest = left if longest is None else min(left, longest)
        timeout = None if longest is None else int(longest * 1000) + 1
        for descriptor, _ in self.poller.poll(timeout):
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
        try:
            data = os.read(self.control, 4096)
        except BlockingIOError:
            return
        if not data:
            self.reason = self.reason or "owner_gone"
            self.poller.unregister(self.control)
        *lines, self._commands = (self._commands + data).split(b"\n")
        for line in lines:
            word, _, value = line.decode("ascii", "replace").partition(" ")
            if word == "end":
                self.reason = self.reason or "end"
            elif word == "deadline":
                # what cannot be read changes nothing: the earlier deadline stands
                with contextlib.suppress(ValueError):
                    self.deadline = _deadline(value)

    def _keep_tail(self) -> bool:
        """Take in some of the command's standard error; whether there may be more now."""
        with contextlib.suppress(BlockingIOError):
            if data := os.read(self.tail_fd, 65536):
                self.tail += data
                del self.tail[: -self.tail_size]
                return True
            self.poller.unregister(self.tail_fd)
            os.close(self.tail_fd)
            self.tail_fd = -1
        return False

    def _sample(self) -> None:
        """Private memory now: what RLIMIT_DATA counts; gone from /proc when the process ends."""
        with (
            contextlib.suppress(OSError, ValueError),
            open(f"/proc/{self.command}/status", "rb") as file,  # noqa: PTH123
        ):
            for line in file:
                if line.startswith(b"VmData:"):
                    self.data_bytes = max(self.data_bytes, int(line.split()[1]) * 1024)

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
            self.peak_kilobytes = max(self.peak_kilobytes, usage.ru_maxrss)
            if pid == self.command:
                self.wait_status = status

    def _clear(self) -> None:
        """Kill until nothing is left. A process that cannot be killed is waited for."""
        pause = _KILL_SECONDS[0]
        if self.wait_status is None:
            _kill(self.command, _stat(self.command)[1])
        while self._reap():
            for pid, ticks in _descendants(os.getpid()):
                _kill(pid, ticks)
            select.select([self.wakeup], [], [], pause)
            with contextlib.suppress(BlockingIOError):
                os.read(self.wakeup, 512)
            pause = min(pause * 2, _KILL_SECONDS[1])
        while self.tail_fd >= 0 and self._keep_tail():
            pass

    def _ending(self) -> dict[str, object]:
        code = os.waitstatus_to_exitcode(self.wait_status or 0)
        by_us = self.reason and code == -signal.SIGKILL
        return {
            "guardian": self.identity[0],
            "started": self.identity[1],
            "exit_code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "cpu_seconds": round(self.cpu_seconds, 3),
            "peak_memory_bytes": self.peak_kilobytes * 1024,
            "data_bytes": self.data_bytes,
            "ended_by": self.reason if by_us else "itself",
            "stderr": self.tail.decode("utf-8", "replace"),
        }

    def _report(self, line: bytes) -> None:
        """The record first: who reads the status pipe may look for it at once."""
        record = self.options.get("record")
        if record:
            with contextlib.suppress(OSError):
                with open(record + ".new", "wb") as file:  # noqa: PTH123
                    file.write(line)
                os.rename(record + ".new", record)  # noqa: PTH104
        self._say(line)

    def _say(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            while line:
                line = line[os.write(self.status, line) :]


def _deadline(text: str) -> float | None:
    return None if text == "never" else float(text)


def _limit(options: dict[str, str]) -> None:
    """Limits of the command. RLIMIT_DATA counts private memory, not the mapped database."""
    os.nice(int(options.get("nice", "0")))
    _set_limit(resource.RLIMIT_CORE, 0, 0)
    if "memory" in options:
        _set_limit(resource.RLIMIT_DATA, int(options["memory"]), 0)
    if "output" in options:
        _set_limit(resource.RLIMIT_FSIZE, int(options["output"]), 0)
    if "cpu" in options:
        _set_limit(resource.RLIMIT_CPU, int(options["cpu"]), _HARD_CPU_SECONDS)


def _set_limit(which: int, soft: int, more: int) -> None:
    ceiling = resource.getrlimit(which)[1]
    hard = soft + more
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(which, (soft, hard))


def _close_others(keep: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) not in keep:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _let_go_of_standard_streams() -> None:
    """A reader of the command's output must see its end when the command ends."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def main(arguments: list[str]) -> None:
    """Take the arguments apart and run; see the module docstring."""
    middle = arguments.index("--")
    options = dict(pair.split("=", 1) for pair in arguments[:middle])
    Guardian(options, arguments[middle + 1 :]).run()


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)
