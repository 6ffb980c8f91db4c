"""Installations of several processes over real PostgreSQL, Redis and Azurite."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from team_stage import Backend, Team

from blastyard.testing.azurite_pytest import (  # noqa: F401
    azurite,
    azurite_program,
    pytest_collection_finish,
)
from blastyard.testing.postgres_pytest import (  # noqa: F401
    postgres_programs,
    postgres_server,
    postgres_url,
)
from blastyard.testing.redis_pytest import (  # noqa: F401
    new_redis,
    own_redis,
    redis_namespace,
    redis_program,
    redis_server,
)


@pytest.fixture
def team(
    request: pytest.FixtureRequest,
    environment: dict[str, str],
    sample_databases: Any,
    sample_fasta: Any,
    tmp_path: Path,
) -> Callable[[Backend], Team]:
    """``team(backend)``: an installation over these, with the database ``genes``."""

    def make(backend: Backend) -> Team:
        own = dict(environment)
        if backend.store == "postgresql":
            own["BLASTYARD_STORE_URL"] = request.getfixturevalue("postgres_url")
        if backend.store == "azure-tables":
            own["BLASTYARD_STORE_URL"] = request.getfixturevalue("azurite").connection_string
            own["BLASTYARD_STORE_TABLE"] = f"t{uuid.uuid4().hex[:12]}"
        if backend.admission == "redis":
            own["BLAST_COORD_BACKEND"] = "redis"
            own["BLAST_GATE_ENABLED"] = "true"
            own["BLASTYARD_REDIS_URL"] = request.getfixturevalue("redis_server").url
            own["BLASTYARD_NAMESPACE"] = "team"
        made = Team(own, sample_fasta.nucl_query, tmp_path)
        made.run("db", "add", "genes", "--path", str(sample_databases.nucl))
        return made

    return make
