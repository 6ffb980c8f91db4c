"""Which cluster and namespace are meant, and with what credential.

Looked for in this order: the files that ``KUBECONFIG`` names, ``~/.kube/config``, and the service
account of the pod that this runs in. Everything that cannot be right is refused here, before any
request, with ``Misconfigured('cluster_misconfigured')``.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import httpx2
from lightkube.config.client_adapter import user_auth
from lightkube.core.exceptions import ConfigError

from blastyard.domain.errors import CallerMistake, Misconfigured
from blastyard.kube.credential import VERSIONS, ExecAuth, ExecCommand
from blastyard.kube.http import Endpoint
from blastyard.kube.kubeconfig import Cluster, Kubeconfig, User, data_or_file, read
from blastyard.kube.rbac import check_namespace
from blastyard.kube.tls import context
from blastyard.kube.validity import certificate_expires_at, token_expires_at

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_NAMESPACE: Final = "default"

_NEXT: Final = "log in again, or correct the kubeconfig (kubectl config view)"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the settings say about the cluster; empty text means nothing was said."""

    environment: Mapping[str, str]
    """Of this process: for credential commands, and for the address inside a cluster."""
    home: Path
    kubeconfig: str = ""
    """As in ``KUBECONFIG``: one or several files, separated by colons."""
    context: str = ""
    namespace: str = ""
    service_account: Path = SERVICE_ACCOUNT


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster to speak to, and the namespace in it. ``context`` is ``""`` inside a pod."""

    endpoint: Endpoint
    namespace: str
    context: str
    kubeconfig: tuple[Path, ...]


def find(wanted: Wanted, now: Callable[[], datetime]) -> Target:
    """The cluster that is meant. ``now`` is wall-clock time. Raises ``Misconfigured``."""
    files = _files(wanted)
    if files:
        return _from_kubeconfig(read(files), wanted, now)
    return _from_pod(wanted)


def _files(wanted: Wanted) -> tuple[Path, ...]:
    if wanted.kubeconfig:
        named = [Path(name).expanduser() for name in wanted.kubeconfig.split(os.pathsep) if name]
        found = tuple(file for file in named if file.exists())
        if not found:
            names = ", ".join(map(str, named))
            raise _wrong(f"KUBECONFIG names {names}, and no such file is there", _NEXT)
        return found
    usual = wanted.home / ".kube" / "config"
    return (usual,) if usual.exists() else ()


def _from_kubeconfig(config: Kubeconfig, wanted: Wanted, now: Callable[[], datetime]) -> Target:
    name, said = config.context(wanted.context)
    cluster, user = config.cluster(name, said), config.user(name, said)
    where = f"the context {name!r} of {config.said_files}"
    namespace = _namespace(wanted.namespace, said.namespace or "", where)
    _refuse_expired(user, where, now())
    tls = _tls(cluster, user, where)
    endpoint = Endpoint(
        url=_address(cluster.server, where),
        tls=tls,
        auth=_auth(cluster, user, tls, wanted, now),
        proxy=cluster.proxy_url or None,
        server_name=cluster.tls_server_name or None,
    )
    return Target(endpoint, namespace, name, config.files)


def _from_pod(wanted: Wanted) -> Target:
    host = wanted.environment.get("KUBERNETES_SERVICE_HOST", "")
    port = wanted.environment.get("KUBERNETES_SERVICE_PORT", "443")
    token = wanted.service_account / "token"
    if not host or not token.exists():
        raise _wrong(
            f"there is no kubeconfig: KUBECONFIG is not set, {wanted.home / '.kube/config'} is not "
            "there, and this is no pod with a service account",
            "set KUBECONFIG to a file that kubectl works with",
        )
    if wanted.context:
        raise _wrong(
            f"the context {wanted.context!r} is asked for, and there is no kubeconfig",
            "set KUBECONFIG, or unset BLASTYARD_KUBE_CONTEXT inside the cluster",
        )
    cluster = Cluster(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        certificate_auth=str(wanted.service_account / "ca.crt"),
    )
    user = User(token_file=str(token))
    where = f"the service account in {wanted.service_account}"
    own = wanted.service_account / "namespace"
    # a pod may serve another namespace than its own: here nothing but the setting says which
    namespace = wanted.namespace or (own.read_text().strip() if own.exists() else "")
    endpoint = Endpoint(cluster.server, _tls(cluster, user, where), user_auth(user))
    return Target(endpoint, _namespace(namespace, "", where), "", ())


def _namespace(asked: str, in_context: str, where: str) -> str:
    if asked and in_context and asked != in_context:
        raise _wrong(
            f"BLASTYARD_NAMESPACE is {asked!r}, and {where} has the namespace {in_context!r}",
            "let both say the same: commands that use the context would submit to its namespace",
        )
    namespace = asked or in_context or DEFAULT_NAMESPACE
    try:
        check_namespace(namespace)
    except CallerMistake as error:
        source = "BLASTYARD_NAMESPACE" if asked else where
        raise _wrong(f"{source}: {error.message}", error.next_step) from error
    return namespace


def _address(server: str, where: str) -> str:
    try:
        url = httpx2.URL(server)
    except httpx2.InvalidURL as error:
        raise _wrong(f"{where} has the server {server!r}: {error}", _NEXT) from error
    if url.scheme not in ("http", "https") or not url.host:
        raise _wrong(f"{where} has the server {server!r}, which is no address", _NEXT)
    return server


def _refuse_expired(user: User, where: str, now: datetime) -> None:
    certificate = data_or_file(user.client_cert_data, user.client_cert)
    for what, until in (
        ("client certificate", certificate and certificate_expires_at(certificate)),
        ("token", user.token and not user.token_file and token_expires_at(user.token)),
    ):
        if until and until <= now:
            raise _wrong(
                f"the {what} of {where} expired at {until.isoformat()}; "
                f"the clock of this machine says {now.isoformat(timespec='seconds')}",
                "log in again, or fetch the kubeconfig anew",
            )


def _tls(cluster: Cluster, user: User, where: str) -> ssl.SSLContext:
    try:
        return context(cluster, user)
    except (OSError, ValueError) as error:
        raise _wrong(f"a certificate or key of {where} cannot be used: {error}", _NEXT) from error


def _auth(
    cluster: Cluster,
    user: User,
    tls: ssl.SSLContext,
    wanted: Wanted,
    now: Callable[[], datetime],
) -> httpx2.Auth | None:
    if user.exec is None or user.token or user.token_file:
        try:
            return user_auth(user)
        except ConfigError as error:
            raise _wrong(f"the credential of the kubeconfig cannot be used: {error}", _NEXT) from (
                error
            )
    asked = user.exec
    if asked.apiVersion not in VERSIONS:
        raise _wrong(
            f"the credential command {asked.command!r} speaks {asked.apiVersion}; "
            f"understood are {' and '.join(VERSIONS)}",
            "update the command, or what wrote the kubeconfig",
        )
    command = ExecCommand(
        api_version=asked.apiVersion,
        words=(asked.command, *(asked.args or ())),
        environment={**wanted.environment, **{each.name: each.value for each in asked.env or ()}},
        hint=asked.installHint or "",
        cluster=cluster.told() if asked.provideClusterInfo else None,
    )
    return ExecAuth(command, tls, now)


def _wrong(message: str, next_step: str) -> Misconfigured:
    return Misconfigured("cluster_misconfigured", message, next_step)
