"""The settings of searches that are handed to a cluster."""

from __future__ import annotations

import pytest

from blastyard.domain.errors import Misconfigured
from blastyard.settings import read_settings

WELL = {
    "BLASTYARD_ENGINE": "elastic-blast",
    "BLAST_COORD_BACKEND": "k8s",
    "BLASTYARD_RESULTS_URL": "/data/results",
}


def test_a_cluster_and_a_results_location_are_enough() -> None:
    assert read_settings(WELL).is_remote
    assert not read_settings({}).is_remote


def test_all_that_is_missing_is_said_at_once() -> None:
    with pytest.raises(Misconfigured) as raised:
        read_settings({"BLASTYARD_ENGINE": "elastic-blast", "BLASTYARD_SUBMIT_TEMPLATE": "elb.ini"})
    assert "needs BLAST_COORD_BACKEND=k8s" in raised.value.message
    assert "BLASTYARD_SUBMIT_TEMPLATE must be an absolute path" in raised.value.message


def test_results_must_have_a_place() -> None:
    without = {key: text for key, text in WELL.items() if key != "BLASTYARD_RESULTS_URL"}
    with pytest.raises(Misconfigured, match="needs BLASTYARD_RESULTS_URL"):
        read_settings(without)
    assert read_settings({**without, "BLASTYARD_SUBMIT_TEMPLATE": "/etc/elb.ini"}).is_remote
