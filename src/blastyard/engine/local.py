"""Runs BLAST+ on this machine, each command under a guardian process.

Below a search's directory each attempt has a folder of its own::

    attempt-<n>/work/           the command's empty working directory
    attempt-<n>/output          what it writes
    attempt-<n>/exit.json       how it ended, written by its guardian
    attempt-<n>/published.json  size and checksum of what was published
    result.<extension>          the published output

A run that its guardian ended (cancelled, past its deadline, its owner dead) is ``Lost``: it did
not end by itself. ``Exited`` is an end of its own, kills from elsewhere included.
"""

from __future__ import annotations

import errno
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from blastyard.domain.errors import CallerMistake, Failure, Misconfigured, Unavailable
from blastyard.domain.search import Run
from blastyard.engine.attempt import Attempt
from blastyard.engine.command import Command, Ending
from blastyard.engine.failure import diagnose
from blastyard.engine.guarded import GuardedCommand, NotStarted
from blastyard.engine.port import Exited, Lost, Output, Running, RunState, Task
from blastyard.engine.process import Process, boot_id, end_left_behind
from blastyard.engine.watcher import Watcher

_TAIL_BYTES = 64 * 1024
_PATIENCE_SECONDS = 5.0
"""How long a guardian that was asked to end may take before it is killed."""
_LONGEST_KILL_SECONDS = 30.0
_NO_PROGRAM = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ENOEXEC})


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How commands run here."""

    nice: int = 10
    """Added to blastyard's own: 10 leaves the machine usable, 0 competes with everybody."""
    path: str = "/usr/local/bin:/usr/bin:/bin"
    """``PATH`` for the command."""
    environment: tuple[tuple[str, str], ...] = ()
    """More variables, such as the ``LD_LIBRARY_PATH`` that some installations of BLAST+ need."""


@dataclass(frozen=True, slots=True)
class _Own:
    """A run that this engine started."""

    search_id: str
    guarded: GuardedCommand


class LocalEngine:
    """The :class:`~blastyard.engine.port.Engine` of one machine.

    Several processes may each have one for the same searches; a run ends with the process that
    started it.
    """

    def __init__(self, settings: LocalSettings | None = None) -> None:
        self._settings = settings or LocalSettings()
        self._boot_id = boot_id()
        self._watcher = Watcher()
        self._own: dict[Process, _Own] = {}
        self._lock = Lock()

    def start(self, task: Task, deadline: float | None, on_exit: Callable[[], None]) -> Run:
        """As the port says. ``on_exit`` may be called before this returns.

        An attempt number is used once: starting it again raises ``Unavailable``.
        """
        attempt = Attempt.of(task)
        try:
            attempt.create()
        except FileExistsError:
            raise Unavailable(
                "internal", f"attempt {task.attempt} of search {task.search_id} was started before"
            ) from None
        except OSError as error:
            raise _not_started(task, error) from error
        try:
            guarded = GuardedCommand.start(self._command(task, attempt), deadline)
        except (NotStarted, OSError) as error:
            attempt.remove()
            raise _not_started(task, error) from error
        with self._lock:
            self._own[guarded.guardian] = _Own(task.search_id, guarded)
        self._watcher.watch(guarded, on_exit)
        return Run(
            boot_id=self._boot_id,
            guardian_pid=guarded.guardian.pid,
            guardian_started=guarded.guardian.started,
            command_pid=guarded.command.pid,
            command_started=guarded.command.started,
            attempt=task.attempt,
        )

    def extend(self, ref: Run, deadline: float | None) -> None:
        """As the port says; only the process that started the run can."""
        if guarded := self._guarded(ref):
            guarded.extend(deadline)

    def poll(self, task: Task, ref: Run) -> RunState:
        """As the port says."""
        attempt = Attempt.of(task, ref.attempt)
        if guarded := self._guarded(ref):
            ending = guarded.poll()
            return self._running(attempt) if ending is None else _verdict(ending, task, attempt)
        if ref.boot_id != self._boot_id:
            return Lost()  # the machine went down: what its disk kept of the output is not known
        guardian = _guardian(ref)
        if guardian.is_alive():
            return self._running(attempt)
        if ending := attempt.ending(guardian):
            return _verdict(ending, task, attempt)
        gone = end_left_behind(guardian, _command(ref), 0.05)
        return Lost() if gone else self._running(attempt)

    def cancel(self, ref: Run) -> None:
        """As the port says. Raises ``Unavailable`` when something cannot be killed."""
        if ref.boot_id != self._boot_id:
            return
        guardian = _guardian(ref)
        try:
            if guarded := self._guarded(ref):
                guarded.end()
            else:
                guardian.send(signal.SIGTERM)
            if not guardian.wait_gone(_PATIENCE_SECONDS):
                guardian.send(signal.SIGKILL)
            gone = guardian.wait_gone(_LONGEST_KILL_SECONDS) and end_left_behind(
                guardian, _command(ref), _LONGEST_KILL_SECONDS
            )
        except PermissionError:
            raise Unavailable(
                "permission_denied",
                f"process {ref.command_pid} belongs to another account and cannot be ended",
                "Cancel from the account that runs it, or from the service.",
            ) from None
        if not gone:
            raise Unavailable(
                "internal",
                f"process {ref.command_pid} was killed {_LONGEST_KILL_SECONDS:.0f} s ago and is "
                "still there; it may wait for a disk",
            )

    def collect(self, task: Task, ref: Run) -> Output:
        """As the port says.

        Raises ``CallerMistake`` when there is nothing to collect: ``search_unfinished``,
        ``interrupted`` (lost), or the code of the run's failure; ``Unavailable`` when the disk
        does not do its part.
        """
        attempt = Attempt.of(task, ref.attempt)
        if published := attempt.published():
            return published
        match self.poll(task, ref):
            case Running():
                raise CallerMistake("search_unfinished", f"search {task.search_id} still runs")
            case Lost():
                raise CallerMistake("interrupted", f"attempt {ref.attempt} did not end by itself")
            case Exited(failure=Failure() as failure):
                raise CallerMistake(failure.code, failure.message, failure.next_step)
        return attempt.publish()

    def discard(self, task: Task) -> None:
        """As the port says. What still runs goes on, but its output is lost: cancel it first."""
        for directory in task.directory.glob("attempt-*"):
            shutil.rmtree(directory, ignore_errors=True)
        with self._lock:
            self._own = {
                key: own
                for key, own in self._own.items()
                if own.search_id != task.search_id or own.guarded.poll() is None
            }

    def close(self) -> None:
        """End every run of this engine, and its thread."""
        with self._lock:
            own, self._own = list(self._own.values()), {}
        for each in own:
            each.guarded.end()
            each.guarded.wait()
        self._watcher.close()

    def _guarded(self, ref: Run) -> GuardedCommand | None:
        if ref.boot_id != self._boot_id:
            return None
        with self._lock:
            own = self._own.get(_guardian(ref))
        return None if own is None else own.guarded

    def _running(self, attempt: Attempt) -> Running:
        with suppress(FileNotFoundError):
            return Running(attempt.output.stat().st_size)
        return Running()

    def _command(self, task: Task, attempt: Attempt) -> Command:
        return Command(
            argv=_argv(task, attempt),
            environment=self._environment(attempt),
            cwd=str(attempt.work),
            nice=self._settings.nice,
            memory_bytes=task.limits.memory_bytes,
            cpu_seconds=task.limits.cpu_seconds,
            output_bytes=task.limits.output_bytes,
            tail_bytes=_TAIL_BYTES,
            record=str(attempt.record),
            private=True,
        )

    def _environment(self, attempt: Attempt) -> dict[str, str]:
        """All that the command knows: nothing of blastyard's own environment.

        BLAST+ takes settings from many variables (``BATCH_SIZE``, ``BLASTDB``, ``NCBI_CONFIG__*``)
        and from ``.ncbirc`` in the working directory, ``HOME`` and ``NCBI``: the empty one, here.
        Without data loaders it cannot fetch a sequence from NCBI.
        """
        work = str(attempt.work)
        return {
            "PATH": self._settings.path,
            "HOME": work,
            "NCBI": work,
            "LC_ALL": "C",
            "BLAST_USAGE_REPORT": "false",
            "NCBI_CONFIG__BLAST__DATA_LOADERS": "none",
            **dict(self._settings.environment),
        }


def _argv(task: Task, attempt: Attempt) -> list[str]:
    argv = [*task.argv, "-query", str(task.query.absolute()), "-out", str(attempt.output)]
    if "-num_threads" not in task.argv and "-subject" not in task.argv:
        argv += ["-num_threads", str(task.threads)]
    return argv


def _guardian(ref: Run) -> Process:
    return Process(ref.guardian_pid, ref.guardian_started)


def _command(ref: Run) -> Process:
    return Process(ref.command_pid, ref.command_started)


def _verdict(ending: Ending, task: Task, attempt: Attempt) -> RunState:
    if not ending.by_itself:
        return Lost()
    return Exited(
        exit_code=ending.shell_code,
        failure=None if attempt.published() else diagnose(ending, task, attempt.output),
        cpu_seconds=ending.cpu_seconds,
        peak_memory_bytes=ending.peak_memory_bytes,
    )


def _not_started(task: Task, error: NotStarted | OSError) -> Misconfigured | Unavailable:
    """What to tell when the command certainly did not run."""
    program = task.argv[0]
    number = error.number if isinstance(error, NotStarted) else error.errno
    if isinstance(error, NotStarted) and error.stage == "exec" and number in _NO_PROGRAM:
        return Misconfigured(
            "blast_missing",
            f"{program} cannot be run: {error}",
            "Install BLAST+ (Debian: ncbi-blast+); `blastyard doctor` checks it.",
        )
    if number in (errno.ENOSPC, errno.EDQUOT):
        return Unavailable(
            "disk_full",
            f"{task.directory} cannot take another search: {error}",
            "Free space there; `blastyard delete` removes old results.",
        )
    return Unavailable("internal", f"{program} could not be started: {error}")
