"""What blastyard may do in a namespace: printed, applied, and asked about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from blastyard.bootstrap.cluster import Connection, connect
from blastyard.kube import install, rights
from blastyard.kube.install import Applied
from blastyard.kube.rbac import Manifest
from blastyard.kube.review import Verdict, rules_to_add
from blastyard.settings import Settings


@dataclass(frozen=True, slots=True)
class Wish:
    """What an operator wants installed."""

    account: str
    enforce: bool = False
    """Also the admission policies, which need rights in the cluster."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What installing came to."""

    namespace: str
    applied: tuple[Applied, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What the API server says of this credential."""

    namespace: str
    verdicts: tuple[Verdict, ...]

    @property
    def missing(self) -> tuple[Verdict, ...]:
        """What it may not do, and blastyard needs."""
        return tuple(each for each in self.verdicts if not each.allowed)

    @property
    def rules(self) -> list[dict[str, Any]]:
        """The rules of a Role that would allow it."""
        return rules_to_add(self.missing)


def manifests(settings: Settings, wish: Wish) -> list[Manifest]:
    """What would be applied. No cluster is looked for where the settings name the namespace."""
    if settings.namespace:
        return install.manifests(settings.namespace, wish.account, enforce=wish.enforce)
    with _connected(settings) as connection:
        namespace = connection.target.namespace
    return install.manifests(namespace, wish.account, enforce=wish.enforce)


def rendered(documents: Sequence[Any]) -> str:
    """Documents as YAML, as ``kubectl apply -f -`` reads them."""
    return install.rendered(documents)


def apply(settings: Settings, wish: Wish) -> Installed:
    """Apply it. Raises ``CallerMistake``, ``Misconfigured`` and ``Unavailable``."""
    with _connected(settings) as connection:
        namespace = connection.target.namespace
        wanted = install.manifests(namespace, wish.account, enforce=wish.enforce)
        return Installed(namespace, install.apply(connection.wire, wanted))


def check(settings: Settings) -> Checked:
    """Ask about each verb; changes nothing. Raises ``Misconfigured`` and ``Unavailable``."""
    with _connected(settings) as connection:
        namespace = connection.target.namespace
        return Checked(namespace, rights.check(connection.wire, namespace))


@contextmanager
def _connected(settings: Settings) -> Iterator[Connection]:
    connection = connect(settings)
    try:
        yield connection
    finally:
        connection.wire.close()
