"""What short-lived processes counted adds up in a file."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from metrics_stage import values

from blastyard.admission import observer as told
from blastyard.admission.ledger import Submitter
from blastyard.bootstrap.instrument import instruments_of
from blastyard.bootstrap.observing import Meter, new_registry
from blastyard.metrics.textfile import NotMetrics, add_to
from blastyard.settings import Settings


def _never(_: float) -> None:
    raise AssertionError("there is nobody to wait for")


def test_processes_add_up_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "blastyard.prom"
    for waited in (0.02, 40.0):
        meter = Meter(new_registry())
        meter(told.Granted("s1", 101, waited, 0.0))
        meter.called("get", "leases", 200, 0.01)
        add_to(path, meter.registry.totals(), _never)

    counted = values(path.read_bytes())
    assert counted['blastyard_grants_total{kind="new"}'] == 2
    assert counted["blastyard_wait_seconds_count"] == 2
    assert counted["blastyard_wait_seconds_sum"] == pytest.approx(40.02)
    assert counted['blastyard_wait_seconds_bucket{le="0.03"}'] == 1
    assert counted['blastyard_wait_seconds_bucket{le="60.0"}'] == 2
    assert counted['blastyard_api_request_seconds_count{verb="get"}'] == 2
    assert [each.name for each in tmp_path.iterdir()] == ["blastyard.prom"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_what_only_an_earlier_process_did_stays_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "blastyard.prom"
    first = Meter(new_registry())
    first.called("get", "leases", 500, 0.01)
    add_to(path, first.registry.totals(), _never)
    add_to(path, new_registry().totals(), _never)

    counted = values(path.read_bytes())
    assert counted['blastyard_api_requests_total{resource="leases",status="500",verb="get"}'] == 1
    assert counted['blastyard_api_request_seconds_count{verb="get"}'] == 1


def test_a_histogram_with_other_buckets_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "blastyard.prom"
    path.write_text(
        "# HELP blastyard_wait_seconds old\n# TYPE blastyard_wait_seconds histogram\n"
        'blastyard_wait_seconds_bucket{le="7.0"} 5\nblastyard_wait_seconds_bucket{le="+Inf"} 5\n'
        "blastyard_wait_seconds_count 5\nblastyard_wait_seconds_sum 9\n"
    )

    add_to(path, new_registry().totals(), _never)

    counted = values(path.read_bytes())
    assert counted["blastyard_wait_seconds_count"] == 0
    assert 'blastyard_wait_seconds_bucket{le="7.0"}' not in counted


@pytest.mark.parametrize("text", ["an essay\n", "x{ 1\n", "# TYPE x gauge\nx 1\n", "\xff"])
def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "precious.prom"
    path.write_bytes(text.encode("latin-1"))

    with pytest.raises(NotMetrics, match=r"precious\.prom"):
        add_to(path, new_registry().totals(), _never)

    assert path.read_bytes() == text.encode("latin-1")


class Writer:
    """Somebody who is just writing in the folder, and is done after a few pauses."""

    def __init__(self, path: Path, pauses: int) -> None:
        self._path = path
        self._left = pauses
        self._folder = os.open(path.parent, os.O_RDONLY)
        fcntl.flock(self._folder, fcntl.LOCK_EX)

    def __call__(self, _: float) -> None:
        self._left -= 1
        if self._left == 0:
            self._path.write_bytes(generate(3))
            os.close(self._folder)


def generate(grants: int) -> bytes:
    meter = Meter(new_registry())
    for _ in range(grants):
        meter(told.Granted("s1", 101, 1.0, 0.0))
    return meter.registry.exposition()


def test_who_ends_while_another_is_writing_waits_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "blastyard.prom"
    meter = Meter(new_registry())
    meter(told.Granted("s1", 101, 1.0, 0.0))

    add_to(path, meter.registry.totals(), Writer(path, pauses=3))

    assert values(path.read_bytes())['blastyard_grants_total{kind="new"}'] == 4


def test_who_finds_others_writing_all_the_time_gives_up(tmp_path: Path) -> None:
    path = tmp_path / "blastyard.prom"
    writer = Writer(path, pauses=1_000_000)

    with pytest.raises(TimeoutError, match="others were writing"):
        add_to(path, new_registry().totals(), writer)

    assert not path.exists()


def test_a_folder_that_is_not_there_is_said_and_harms_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "missing" / "blastyard.prom"
    settings = Settings(metrics_file=str(path))

    instruments_of(settings, Submitter("exec-1", "exec", 1000)).close()

    assert f"could not be added to {path}" in caplog.text
