"""Who meets faults in a lab: blastyards, seats in a queue, services, and a proxy between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_service import NewService, Samples, services_in
from fault_stage import NewYard, yards_in
from gate_stage import Lab
from queue_stage import NewSeat, seats_in

from blastyard.testing.proxy import FaultProxy


@pytest.fixture
def new_yard(lab: Lab) -> Iterator[NewYard]:
    """Makes blastyards of this process, which the test drives."""
    with yards_in(lab) as new:
        yield new


@pytest.fixture
def new_seat(lab: Lab) -> Iterator[NewSeat]:
    """Makes blastyards whose requests are counted."""
    with seats_in(lab) as new:
        yield new


@pytest.fixture
def new_service(
    lab: Lab, blast: Path, sample_databases: Samples, sample_fasta: Samples
) -> Iterator[NewService]:
    """Makes services with a worker of their own."""
    with services_in(lab, blast, sample_databases.nucl, sample_fasta.nucl_query) as new:
        yield new


@pytest.fixture
def proxy(lab: Lab) -> Iterator[FaultProxy]:
    """A proxy before the API server; ``lab.through`` leads there."""
    with FaultProxy.before(lab.plane) as running:
        yield running
