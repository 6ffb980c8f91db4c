"""The contract suites live in the package; their assertions explain themselves all the same."""

from __future__ import annotations

import sys

import pytest

for suite in ("contract_documents", "contract_searches", "contract_registry"):
    if f"blastyard.testing.{suite}" not in sys.modules:
        pytest.register_assert_rewrite(f"blastyard.testing.{suite}")
