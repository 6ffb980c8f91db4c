"""Kubeconfig files: what stands in them, and what one context of them means.

Several files count as one, as for ``kubectl``: of each name the first entry, and paths are relative
to the file that they stand in. Read with lightkube's own types, and what they leave out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from lightkube.config import models

from blastyard.domain.errors import Misconfigured

_NEXT: Final = "look at it with `kubectl config view`, or name another with KUBECONFIG"

Context = models.Context


class Exec(models.UserExec, omit_defaults=True):
    """A command that gives out credentials."""

    provideClusterInfo: bool = False  # noqa: N815


class User(models.User, omit_defaults=True):
    """A credential."""

    exec: Exec | None = None
    impersonate: str | None = msgspec.field(name="as", default=None)


class Cluster(models.Cluster, omit_defaults=True):
    """An API server."""

    proxy_url: str | None = msgspec.field(name="proxy-url", default=None)
    tls_server_name: str | None = msgspec.field(name="tls-server-name", default=None)

    def told(self) -> dict[str, Any]:
        """As a credential command is told of it, if it wants to know."""
        authority = data_or_file(self.certificate_auth_data, self.certificate_auth)
        said = {
            "server": self.server,
            "tls-server-name": self.tls_server_name,
            "insecure-skip-tls-verify": self.insecure or None,
            "certificate-authority-data": base64.b64encode(authority.encode()).decode() or None,
            "proxy-url": self.proxy_url,
        }
        return {name: value for name, value in said.items() if value is not None}


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: Cluster


class _NamedContext(msgspec.Struct):
    name: str
    context: Context


class _NamedUser(msgspec.Struct):
    name: str
    user: User | None = None


class _File(msgspec.Struct):
    current_context: str | None = msgspec.field(name="current-context", default=None)
    clusters: list[_NamedCluster] | None = None
    contexts: list[_NamedContext] | None = None
    users: list[_NamedUser] | None = None


T = TypeVar("T")


@dataclass(slots=True)
class Kubeconfig:
    """What all files say together."""

    files: tuple[Path, ...]
    current: str = ""
    clusters: dict[str, Cluster] = field(default_factory=dict)
    contexts: dict[str, Context] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)

    @property
    def said_files(self) -> str:
        """Their names, for a person."""
        return ", ".join(map(str, self.files))

    def context(self, asked: str) -> tuple[str, Context]:
        """The context that is asked for, or the current one. Raises ``Misconfigured``."""
        name = asked or self.current
        if not name:
            raise self._wrong("has no current context, and none is asked for")
        return name, self._named(self.contexts, name, "context")

    def cluster(self, name: str, context: Context) -> Cluster:
        """The cluster of the context of that name."""
        return self._named(self.clusters, context.cluster, f"cluster that its context {name!r} has")

    def user(self, name: str, context: Context) -> User:
        """The credential of the context of that name; one without anything, if it has none."""
        if not context.user:
            return User()
        user = self._named(self.users, context.user, f"user that its context {name!r} has")
        if user.impersonate:
            raise self._wrong(f"has a user {context.user!r} who acts as another, which is not done")
        return user

    def _named(self, entries: dict[str, T], name: str, what: str) -> T:
        if name not in entries:
            names = ", ".join(map(repr, sorted(entries))) or "none"
            raise self._wrong(f"lacks the {what}, {name!r}; there is: {names}")
        return entries[name]

    def _wrong(self, what: str) -> Misconfigured:
        message = f"the kubeconfig {self.said_files} {what}"
        return Misconfigured("cluster_misconfigured", message, _NEXT)


def read(files: Sequence[Path]) -> Kubeconfig:
    """What the files say. Raises ``Misconfigured`` for one that cannot be read."""
    config = Kubeconfig(tuple(files))
    for file in files:
        said = _decoded(file)
        config.current = config.current or said.current_context or ""
        for cluster in said.clusters or ():
            config.clusters.setdefault(cluster.name, _placed_cluster(cluster.cluster, file))
        for context in said.contexts or ():
            config.contexts.setdefault(context.name, context.context)
        for user in said.users or ():
            config.users.setdefault(user.name, _placed_user(user.user or User(), file))
    return config


def data_or_file(data: str | None, file: str | None) -> str:
    """What stands in the base64 text, or else in the file; empty when neither can be read."""
    try:
        if data:
            return base64.b64decode(data).decode(errors="replace")
        return Path(file).read_text(errors="replace") if file else ""
    except (binascii.Error, OSError):
        return ""


def _decoded(file: Path) -> _File:
    try:
        said = msgspec.yaml.decode(file.read_bytes(), type=_File | None)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise Misconfigured(
            "cluster_misconfigured", f"the kubeconfig {file} cannot be read: {why}", _NEXT
        ) from error
    return said or _File()


def _placed_cluster(cluster: Cluster, file: Path) -> Cluster:
    cluster.certificate_auth = _placed(cluster.certificate_auth, file)
    return cluster


def _placed_user(user: User, file: Path) -> User:
    user.client_cert = _placed(user.client_cert, file)
    user.client_key = _placed(user.client_key, file)
    user.token_file = _placed(user.token_file, file)
    if user.exec is not None and "/" in user.exec.command:
        user.exec.command = _placed(user.exec.command, file) or ""
    return user


def _placed(name: str | None, file: Path) -> str | None:
    return str(file.absolute().parent / name) if name else None
