"""Credentials that a command gives out for a while: ``exec`` plugins of a kubeconfig.

The protocol is that of ``client.authentication.k8s.io``, v1 and v1beta1. The command is run when
there is no credential yet, when the one there is ends, and when the server does not accept it.
"""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from threading import Lock
from typing import Any, Final

import httpx2
import msgspec

from blastyard.domain.errors import Misconfigured
from blastyard.kube.tls import load_pair

VERSIONS: Final = tuple(f"client.authentication.k8s.io/{name}" for name in ("v1", "v1beta1"))

_SECONDS: Final = 60.0
"""How long the command may take: it may have to ask a server of its own."""
_EARLY: Final = timedelta(seconds=10)
_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class ExecCommand:
    """What to run. ``environment`` is the whole environment of the command."""

    api_version: str
    words: Sequence[str]
    environment: Mapping[str, str]
    hint: str = ""
    """What its owner says of how to install it."""
    cluster: Mapping[str, Any] | None = None
    """What it is told about the cluster, if it wants to know."""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    expiration_timestamp: datetime | None = None
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None


class _Credential(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    api_version: str
    status: _Status | None = None


class ExecAuth(httpx2.Auth):
    """Sends what the command gives out. ``now`` is wall-clock time; thread-safe.

    A certificate is put into ``tls``, for the connections made from then on.
    """

    def __init__(self, command: ExecCommand, tls: ssl.SSLContext, now: Callable[[], datetime]):
        self._command = command
        self._tls = tls
        self._now = now
        self._lock = Lock()
        self._current: _Status | None = None

    def sync_auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Ask with the credential there is; once more with a new one when it is not accepted."""
        used = self._credential(refused=None)
        _sign(request, used)
        response = yield request
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            _sign(request, self._credential(refused=used))
            yield request

    def _credential(self, refused: _Status | None) -> _Status:
        with self._lock:
            current = self._current
            if current is not None and current is not refused and not self._ends(current):
                return current
            self._current = None
            new = self._issued()
            if new.client_certificate_data and new.client_key_data:
                self._prove(new.client_certificate_data, new.client_key_data)
            self._current = new
            return new

    def _prove(self, certificate: str, key: str) -> None:
        try:
            load_pair(self._tls, certificate, key)
        except ssl.SSLError as error:
            raise self._misconfigured(f"gave out a certificate that cannot be used: {error}") from (
                error
            )

    def _ends(self, status: _Status) -> bool:
        at = status.expiration_timestamp
        return at is not None and self._now() >= at - _EARLY

    def _issued(self) -> _Status:
        output = self._output()
        try:
            said = msgspec.json.decode(output, type=_Credential)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._misconfigured(f"gave out no ExecCredential ({error})") from error
        if said.api_version != self._command.api_version:
            raise self._misconfigured(
                f"answered in {said.api_version}, not in {self._command.api_version}"
            )
        status = said.status
        if status is None or not (status.token or status.client_certificate_data):
            raise self._misconfigured("gave out neither a token nor a certificate")
        at = status.expiration_timestamp
        if at is not None and self._now() >= at:
            raise self._misconfigured(f"gave out a credential that ended at {at.isoformat()}")
        return status

    def _output(self) -> bytes:
        command = self._command
        spec = {"interactive": False} | ({"cluster": command.cluster} if command.cluster else {})
        info = {"apiVersion": command.api_version, "kind": "ExecCredential", "spec": spec}
        told = {"KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        try:
            done = subprocess.run(
                list(command.words),
                env={**command.environment, **told},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise self._misconfigured(f"was not done after {_SECONDS:g} s") from error
        except OSError as error:
            raise self._misconfigured(f"cannot be run: {error.strerror or error}") from error
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()[-_SHOWN:]
            raise self._misconfigured(f"failed with {done.returncode}: {said or 'it said nothing'}")
        return done.stdout

    def _misconfigured(self, what: str) -> Misconfigured:
        command = self._command
        return Misconfigured(
            "cluster_misconfigured",
            f"the command {command.words[0]!r}, which gives out the cluster's credential, {what}",
            command.hint or "run it by hand, log in again, or use another kubeconfig",
        )


def _sign(request: httpx2.Request, status: _Status) -> None:
    if status.token:
        request.headers["Authorization"] = f"Bearer {status.token}"
