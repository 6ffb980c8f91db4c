"""Which store remembers the searches, and where admission's documents stand: by the settings.

==============================  ====================  =============================================
``BLASTYARD_STORE_URL``         searches              admission, unless ``BLAST_COORD_BACKEND`` says
==============================  ====================  =============================================
unset                           SQLite, data folder   the same file
``postgresql://…``              PostgreSQL            the same database
``https://…``, or a             Azure Storage Tables  has none: ``k8s`` or ``redis`` must be chosen
connection string
==============================  ====================  =============================================

Libraries are imported where they are chosen: one machine needs none of them.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from blastyard.admission.port import DocumentStore
from blastyard.domain.errors import Misconfigured
from blastyard.settings import Settings
from blastyard.store.port import SearchStore

T = TypeVar("T")


class StoreKind(StrEnum):
    """What a store's URL names."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"
    AZURE_TABLES = "azure-tables"


def store_kind(url: str) -> StoreKind:
    """Which store a URL is of. Raises ``Misconfigured``, which never quotes the URL."""
    if not url:
        return StoreKind.SQLITE
    if url.startswith(("postgresql://", "postgres://")):
        return StoreKind.POSTGRESQL
    if url.startswith(("https://", "http://")) or "TableEndpoint=" in url or "AccountName=" in url:
        return StoreKind.AZURE_TABLES
    raise Misconfigured(
        "settings_invalid",
        "BLASTYARD_STORE_URL names no store that blastyard knows",
        "write postgresql://USER:PASSWORD@HOST/DATABASE, the address of an Azure Storage account's "
        "tables or its connection string, or unset it for SQLite in the data directory",
    )


def is_shared_by_machines(settings: Settings) -> bool:
    """Whether processes of other machines may use the same store."""
    return store_kind(settings.store_url) is not StoreKind.SQLITE


def store_name(settings: Settings) -> str:
    """What the processes of one store have in common, wherever they run; '' for a data folder."""
    if not is_shared_by_machines(settings):
        return ""
    return hashlib.blake2b(
        f"{settings.store_url} {settings.store_table}".encode(), digest_size=6
    ).hexdigest()


def installation_of(settings: Settings, kind: str) -> str:
    """What the processes of one store have in common; one without a store is one of its own."""
    if kind == "exec":
        return uuid.uuid4().hex[:12]
    if name := store_name(settings):
        return name
    path = settings.directory / "installation"
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        settings.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = path.with_name(f"installation.{os.getpid()}")
        new.write_text(uuid.uuid4().hex[:12] + "\n")
        try:
            os.link(new, path)
        except FileExistsError:
            pass
        finally:
            new.unlink()
        return path.read_text().strip()


def open_search_store(settings: Settings, file: Path) -> SearchStore:
    """The store of the settings; ``file`` is where SQLite would be.

    Raises ``Misconfigured`` and ``Unavailable``.
    """
    match store_kind(settings.store_url):
        case StoreKind.SQLITE:
            from blastyard.store.sql import SqlSearchStore  # noqa: PLC0415

            return SqlSearchStore(file)
        case StoreKind.POSTGRESQL:
            return _with_packages(lambda: _open_postgres(settings.store_url))
        case StoreKind.AZURE_TABLES:
            from blastyard.store.azure_tables import open_azure_tables  # noqa: PLC0415

            return open_azure_tables(settings.store_url, table=settings.store_table)


def open_shared_documents(settings: Settings) -> DocumentStore | None:
    """Where admission's documents stand, when that is neither a cluster nor the SQLite file.

    Raises ``Misconfigured`` and ``Unavailable``.
    """
    if settings.on_redis:
        return _with_packages(lambda: _open_redis(settings))
    match store_kind(settings.store_url):
        case StoreKind.SQLITE:
            return None
        case StoreKind.POSTGRESQL:
            return _with_packages(lambda: _postgres_documents(settings.store_url))
        case StoreKind.AZURE_TABLES:
            raise Misconfigured(
                "settings_invalid",
                "BLASTYARD_STORE_URL names Azure Storage Tables, in which no queue can be kept",
                "set BLAST_COORD_BACKEND to k8s or redis",
            )


def _open_postgres(url: str) -> SearchStore:
    from blastyard.store.sql import open_postgres_store  # noqa: PLC0415

    return open_postgres_store(url)


def _postgres_documents(url: str) -> DocumentStore:
    from blastyard.admission.postgres.documents import PostgresDocumentStore  # noqa: PLC0415

    return PostgresDocumentStore(url, upgrade=_upgrade_server)


def _upgrade_server(address: Any) -> None:
    from blastyard.store.migrations.server import upgrade  # noqa: PLC0415  (brings the ORM)

    upgrade(address)


def _open_redis(settings: Settings) -> DocumentStore:
    from blastyard.admission.redis.address import Address  # noqa: PLC0415
    from blastyard.admission.redis.documents import RedisDocumentStore  # noqa: PLC0415

    store = RedisDocumentStore(Address.parse(settings.redis_url), settings.namespace or "default")
    store.check()
    return store


def _with_packages(opened: Callable[[], T]) -> T:
    try:
        return opened()
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("psycopg", "redis"):
            raise
        raise Misconfigured(
            "dependency_missing",
            f"the Python package {error.name}, which the settings ask for, is not installed",
            "pip install 'blastyard[team]'",
        ) from None
