"""Installations whose searches run in the namespace of a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from elastic_stage import Elastic
from fault_service import Samples
from gate_stage import Lab
from remote_stage import Remote, remote_in

from blastyard.testing.installation import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """What forks the processes of installations."""
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def remote(
    lab: Lab, home: Path, nursery: Nursery, blast: Path, sample_databases: Samples
) -> Iterator[Remote]:
    """An installation, and a stand-in for ElasticBLAST."""
    elastic = Elastic(lab.plane, lab.namespace, lab.folder / "elastic")
    try:
        with remote_in(elastic, home, nursery, blast, sample_databases.nucl) as made:
            yield made
    finally:
        elastic.close()
