"""The programs of one control plane as child processes: started in order, watched, killed."""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from blastyard.domain.clock import SystemClock
from blastyard.testing.controlplane_kubeconfig import kubeconfig
from blastyard.testing.controlplane_program import (
    ADDRESS,
    API,
    ETCD,
    KUBECTL,
    MANAGER,
    SCHEDULER,
    Controllers,
    Layout,
    Ports,
    clear,
    commands,
)
from blastyard.testing.controlplane_request import Requests
from blastyard.testing.controlplane_state import Running, State

START_SECONDS: Final = 180.0
POLL_SECONDS: Final = 0.03
_ATTEMPTS: Final = 3
_TAIL_LINES: Final = 12
_PR_SET_PDEATHSIG: Final = 1
_FIRST_ACCOUNT: Final = "/api/v1/namespaces/default/serviceaccounts/default"


class ProgramFailed(Exception):
    """A program ended by itself, or is not ready in time; the message has its last words."""


class Programs:
    """The children. ``attend`` waits up to so many seconds, and says whether to go on."""

    def __init__(
        self,
        layout: Layout,
        binaries: Path,
        controllers: Controllers,
        durable: bool,
        attend: Callable[[float], bool],
    ) -> None:
        self._layout = layout
        self._binaries = binaries
        self._controllers = controllers
        self._durable = durable
        self._attend = attend
        self._clock = SystemClock()
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._token = secrets.token_urlsafe(24)
        self._renew()

    def start(self, *, scheduler: bool) -> None:
        """Until everything answers, or ``attend`` says no. Raises :class:`ProgramFailed`."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._start(scheduler)
            except ProgramFailed as error:
                if attempt == _ATTEMPTS or "address already in use" not in str(error):
                    raise
            self.end()  # somebody else took a port between our look and our listening
            clear(self._layout.directory)
            self._renew()
        return None

    def _renew(self) -> None:
        self._ports = Ports.free()
        self._commands = commands(self._layout, self._ports, self._controllers, self._durable)
        self._admin = Requests(self._ports.api, ADDRESS, self._layout.ca_file, self._token, 2.0)

    def _start(self, scheduler: bool) -> None:
        self._layout.prepare(self._token)
        self._spawn(ETCD)
        self._spawn(API)  # it waits for etcd by itself
        if not self._until(self._admin.is_ready):
            return
        self._layout.kubeconfig.touch(mode=0o600)
        self._layout.kubeconfig.write_bytes(
            kubeconfig(self._url, self._layout.ca_file.read_bytes(), self._token)
        )
        self._layout.bin.mkdir(exist_ok=True)
        (self._layout.bin / KUBECTL).symlink_to(self._binaries / KUBECTL)
        if self._controllers:
            self._spawn(MANAGER)
        if scheduler:
            self._spawn(SCHEDULER)
        if self._controllers and not self._until(lambda: self._admin.finds(_FIRST_ACCOUNT)):
            return
        self._write_state()

    @property
    def _url(self) -> str:
        return f"https://{ADDRESS}:{self._ports.api}"

    def _until(self, condition: Callable[[], bool]) -> bool:
        """Wait for the condition; False when we are to end."""
        latest = self._clock.monotonic() + START_SECONDS
        while not condition():
            if not self._attend(POLL_SECONDS):
                return False
            for program, child in self._children.items():
                if child.poll() is not None:
                    raise ProgramFailed(
                        f"{program} ended ({child.returncode}){self._words(program)}"
                    )
            if self._clock.monotonic() > latest:
                told = "".join(self._words(program) for program in self._children)
                raise ProgramFailed(f"not ready after {START_SECONDS:.0f} s{told}")
        return True

    def _spawn(self, program: str) -> None:
        with self._layout.log(program).open("ab") as log:
            self._children[program] = subprocess.Popen(
                [self._binaries / program, *self._commands[program]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._layout.directory,
                env={"PATH": os.defpath, "HOME": str(self._layout.directory)},
                preexec_fn=partial(_end_with, os.getpid()),  # noqa: PLW1509  (no other thread)
            )

    def _words(self, program: str) -> str:
        path = self._layout.log(program)
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        return "".join(f"\n  {program}: {line}" for line in lines[-_TAIL_LINES:])

    def _write_state(self) -> None:
        State(
            url=self._url,
            port=self._ports.api,
            admin_token=self._token,
            keeper=Running.of(os.getpid()),
            programs={
                program: Running.of(child.pid)
                for program, child in self._children.items()
                if child.poll() is None
            },
        ).write(self._layout.state)

    def reap(self) -> None:
        """Bury children that have ended."""
        for child in self._children.values():
            child.poll()

    def pause_api(self) -> None:
        """Stop the API server where it stands: it keeps its connections and answers nothing."""
        self._children[API].send_signal(signal.SIGSTOP)

    def resume_api(self) -> None:
        """Let the API server go on."""
        self._children[API].send_signal(signal.SIGCONT)

    def stop_api(self) -> None:
        """Kill the API server; connections to it are refused."""
        self._children[API].kill()
        self._children[API].wait()

    def start_api(self) -> None:
        """Start the API server again, on the same port and data; it is not ready yet."""
        self.stop_api()
        self._spawn(API)
        self._write_state()

    def end(self) -> None:
        """Kill every program, those that would write last, and wait for the end of each."""
        for child in reversed(self._children.values()):
            child.kill()
        for child in self._children.values():
            child.wait()
        self._children.clear()


def _end_with(keeper: int) -> None:
    """In a new child: be killed when the keeper is. Source: ``prctl(2)``."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != keeper:
        os._exit(127)
