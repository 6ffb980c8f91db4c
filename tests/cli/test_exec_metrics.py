"""What `exec` leaves behind for a monitor when it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_stage import Commands
from prometheus_client.parser import text_string_to_metric_families


def grants(path: Path) -> float:
    families = text_string_to_metric_families(path.read_text())
    samples = [sample for family in families for sample in family.samples]
    return sum(each.value for each in samples if each.name == "blastyard_grants_total")


def test_commands_that_follow_each_other_add_up_in_the_file(empty: Commands) -> None:
    path = empty.folder / "blastyard.prom"
    empty.environment["BLASTYARD_METRICS_FILE"] = str(path)

    assert empty("exec", "--", "true").returncode == 0
    assert empty("exec", "--", "sh", "-c", "exit 3").returncode == 3

    assert grants(path) == 2


def test_without_the_setting_nothing_is_written(empty: Commands) -> None:
    before = set(empty.folder.iterdir())

    assert empty("exec", "--", "true").returncode == 0

    assert set(empty.folder.iterdir()) == before


@pytest.mark.parametrize("text", ["my thesis\n", None])
def test_a_file_that_cannot_be_written_is_said_and_the_command_counts_all_the_same(
    empty: Commands, text: str | None
) -> None:
    path = empty.folder / "there.prom" if text else empty.folder / "missing" / "there.prom"
    if text:
        path.write_text(text)
    empty.environment["BLASTYARD_METRICS_FILE"] = str(path)

    done = empty("exec", "--", "echo", "done")

    assert (done.returncode, done.stdout) == (0, "done\n")
    assert f"the metrics could not be added to {path}" in done.stderr
    assert text is None or path.read_text() == text


def test_a_file_of_another_name_is_refused_before_anything_runs(empty: Commands) -> None:
    empty.environment["BLASTYARD_METRICS_FILE"] = "metrics.txt"

    done = empty("exec", "--", "echo", "done")

    assert (done.returncode, done.stdout) == (125, "")
    assert "must be an absolute path that ends in .prom" in done.stderr


def test_the_log_lines_of_exec_are_json_when_asked_for_and_silent_otherwise(
    empty: Commands,
) -> None:
    assert empty("exec", "--", "true").stderr == ""
    empty.environment["BLASTYARD_LOG_FORMAT"] = "json"

    done = empty("exec", "--search-id", "one", "--", "true")

    lines = [json.loads(line) for line in done.stderr.splitlines()]
    granted = [line for line in lines if line.get("event") == "gate_grant"]
    assert [(line["search"], line["level"]) for line in granted] == [("one", "info")]
