"""A real Kubernetes API in seconds, for tests and trials: etcd, API server, controllers.

::

    with ControlPlane.start(directory) as cluster:
        cluster.create_namespace("lab")
        cluster.create_account("lab", "blastyard", [{"apiGroups": [""], "verbs": ["get"], …}])
        cluster.write_kubeconfig(path, cluster.token_for("lab", "blastyard"), "lab")

Everything is on loopback. No node is there, so pods stay pending and Jobs end as tests patch them.
It ends with the process that started it, however that ends, unless it was started to stay.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from blastyard.domain.clock import SystemClock
from blastyard.domain.errors import Unavailable
from blastyard.testing.controlplane_build import binaries as find_binaries
from blastyard.testing.controlplane_keeper import OK, Plan
from blastyard.testing.controlplane_kubeconfig import CONTEXT, kubeconfig
from blastyard.testing.controlplane_program import (
    ADDRESS,
    API,
    KUBECTL,
    Controllers,
    Layout,
)
from blastyard.testing.controlplane_request import Answer, Requests
from blastyard.testing.controlplane_start import POLL_SECONDS, START_SECONDS
from blastyard.testing.controlplane_state import State

_KEEPER = "blastyard.testing.controlplane_keeper"
_RBAC = "rbac.authorization.k8s.io"


class ControlPlane:
    """A running control plane, and this process's ownership of it.

    Attributes: ``url`` of the API server, ``ca_file`` that proves it, ``admin_token`` of a user in
    ``system:masters``, ``kubeconfig`` (a file for that user), ``kubectl`` (a program), ``log``
    files in ``directory``.
    """

    def __init__(self, directory: Path, owner: socket.socket) -> None:
        layout = Layout(directory)
        state = State.read(layout.state)
        if state is None:
            raise Unavailable("dependency_missing", f"no control plane runs in {directory}")
        self._owner = owner
        self._state = state
        self._layout = layout
        self.directory = directory
        self.url = state.url
        self.ca_file = layout.ca_file
        self.admin_token = state.admin_token
        self.kubeconfig = layout.kubeconfig
        self.kubectl = layout.bin / KUBECTL
        self.admin = self.requests(state.admin_token)

    @classmethod
    def start(
        cls,
        directory: Path,
        *,
        controllers: Controllers = True,
        scheduler: bool = False,
        durable: bool = False,
        stays: bool = False,
    ) -> Self:
        """Start one in ``directory``, which is made if need be; returns when it is ready.

        ``controllers``: ``True`` for the few that tests need, ``"all"``, or none. ``durable``: etcd
        waits for the disk. ``stays``: it outlives this process, until its keeper gets SIGTERM.
        Raises ``Unavailable`` where the programs cannot be had, or do not start.
        """
        programs = find_binaries()
        directory = directory.absolute()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        ours, theirs = socket.socketpair()
        with theirs:
            plan = Plan(
                directory=str(directory),
                binaries=str(programs),
                controllers=controllers,
                scheduler=scheduler,
                durable=durable,
                stays=stays,
                owner=theirs.fileno(),
            )
            command = [sys.executable, "-m", _KEEPER, msgspec.json.encode(plan).decode()]
            subprocess.run(command, pass_fds=[theirs.fileno()], cwd="/", check=True)
        with ExitStack() as undo:
            undo.callback(ours.close)  # which ends whatever has been started
            trouble = _answer(ours, START_SECONDS * 2)
            if trouble != OK:
                logs = f"its logs are in {directory}"
                raise Unavailable("dependency_missing", f"no control plane: {trouble}", logs)
            made = cls(directory, ours)
            undo.pop_all()
        return made

    @classmethod
    def attach(cls, directory: Path) -> Self | None:
        """Become one more owner of the one that runs there; ``None`` if none does."""
        owner = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _folder(directory) as folder:  # a socket's path may have 107 bytes only
                owner.connect(f"/proc/self/fd/{folder}/{Layout(directory).socket.name}")
            _ask(owner, "attach", START_SECONDS)  # one that is about to end does not answer
            return cls(directory, owner)
        except (OSError, Unavailable):
            owner.close()
            return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Own it no longer; it ends with its last owner, and then this waits until it has ended.

        What is in it is gone then; the logs stay.
        """
        with suppress(OSError):
            self._owner.shutdown(socket.SHUT_WR)
            while self._owner.recv(4096):
                pass
        self._owner.close()

    # -- the API server's health ---------------------------------------------------------------

    def pause_api(self) -> None:
        """Stop the API server where it stands: it keeps its connections and answers nothing."""
        _ask(self._owner, "pause_api", START_SECONDS)

    def resume_api(self) -> None:
        """Let a paused API server go on."""
        _ask(self._owner, "resume_api", START_SECONDS)

    def stop_api(self) -> None:
        """Kill the API server: its connections break, and new ones are refused."""
        _ask(self._owner, "stop_api", START_SECONDS)

    def start_api(self) -> None:
        """Start it again, on the same port and data; returns when it is ready."""
        _ask(self._owner, "start_api", START_SECONDS)
        self._state = State.read(self._layout.state) or self._state
        process = self._state.programs[API].process
        clock = SystemClock()
        latest = clock.monotonic() + START_SECONDS
        while not self.admin.is_ready():
            if process.wait_gone(POLL_SECONDS) or clock.monotonic() > latest:
                log = self._layout.log(API)
                raise Unavailable("dependency_missing", "the API server did not start", str(log))

    def restart_api(self) -> None:
        """Kill the API server and start it again; returns when it is ready."""
        self.stop_api()
        self.start_api()

    # -- what an administrator does ------------------------------------------------------------

    def requests(self, token: str) -> Requests:
        """Requests to the API server as whoever holds the token."""
        return Requests(self._state.port, ADDRESS, self.ca_file, token)

    def create_namespace(self, name: str) -> None:
        """Make a namespace. Raises ``AssertionError`` if there is one of this name."""
        document = {"metadata": {"name": name}}
        self.admin.send("POST", "/api/v1/namespaces", document).expect(HTTPStatus.CREATED)

    def delete_namespace(self, name: str) -> Answer:
        """Have it deleted, with all that is in it; this does not wait for it to be gone."""
        return self.admin.send("DELETE", f"/api/v1/namespaces/{name}")

    def create_account(
        self, namespace: str, name: str, rules: Sequence[Mapping[str, object]] = ()
    ) -> None:
        """Make a service account that may do what the rules of its own Role say, and no more.

        ``rules`` are those of a Role: ``apiGroups``, ``resources``, ``verbs``, ``resourceNames``.
        """
        named = {"metadata": {"name": name}}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        role = {"apiGroup": _RBAC, "kind": "Role", "name": name}
        rbac = f"/apis/{_RBAC}/v1/namespaces/{namespace}"
        for path, document in (
            (f"/api/v1/namespaces/{namespace}/serviceaccounts", named),
            (f"{rbac}/roles", {**named, "rules": list(rules)}),
            (f"{rbac}/rolebindings", {**named, "roleRef": role, "subjects": [subject]}),
        ):
            self.admin.send("POST", path, document).expect(HTTPStatus.CREATED)

    def token_for(self, namespace: str, account: str, seconds: int = 3600) -> str:
        """A token of a service account that is valid for so long, at least 600 s."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        wish = {"spec": {"expirationSeconds": seconds}}
        answer = self.admin.send("POST", path, wish).expect(HTTPStatus.CREATED)
        token: str = answer["status"]["token"]
        return token

    def write_kubeconfig(
        self, path: Path, token: str, namespace: str, context: str = CONTEXT
    ) -> Path:
        """Write a kubeconfig for whoever holds the token, readable by this account only."""
        path.touch(mode=0o600)
        path.write_bytes(kubeconfig(self.url, self.ca_file.read_bytes(), token, namespace, context))
        return path


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _ask(owner: socket.socket, word: str, seconds: float) -> None:
    try:
        owner.sendall(f"{word}\n".encode())
        said = _answer(owner, seconds)
    except OSError as error:
        said = str(error)
    if said != OK:
        raise Unavailable("dependency_missing", f"{word}: {said}")


def _answer(owner: socket.socket, seconds: float) -> str:
    """One line of the keeper's. Words are asked one after another, so no more can be there."""
    owner.settimeout(seconds)
    data = b""
    while not data.endswith(b"\n"):
        piece = owner.recv(65536)
        if not piece:
            return "its keeper ended"
        data += piece
    return msgspec.json.decode(data, type=str)
