"""The contract suites live in the package; their assertions explain themselves all the same."""

from __future__ import annotations

import sys

import pytest

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

for suite in ("contract_documents", "contract_searches", "contract_registry"):
    if f"blastyard.testing.{suite}" not in sys.modules:
        pytest.register_assert_rewrite(f"blastyard.testing.{suite}")
