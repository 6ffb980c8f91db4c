"""Tests against a real Kubernetes API: one server for the whole run, a namespace for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_fixtures import new_seat, new_service, new_yard, proxy
from gate_stage import Lab
from remote_fixtures import nursery, remote

from blastyard.testing.controlplane import ControlPlane
from blastyard.testing.controlplane_pytest import (
    control_plane,
    control_plane_binaries,
    namespace,
    own_control_plane,
    pytest_collection_finish,
)

__all__ = [
    "control_plane",
    "control_plane_binaries",
    "namespace",
    "new_seat",
    "new_service",
    "new_yard",
    "nursery",
    "own_control_plane",
    "proxy",
    "pytest_collection_finish",
    "remote",
]


@pytest.fixture
def lab(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Lab]:
    """A namespace with blastyards in it."""
    made = Lab(control_plane, namespace, tmp_path)
    yield made
    made.close()
