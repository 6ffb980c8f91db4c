"""docs/settings.md and settings.py say the same, and settings are read strictly."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from blastyard.domain.errors import Misconfigured
from blastyard.settings import VARIABLES, Settings, read_settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.read_text(), re.MULTILINE))
WORDED = {"BLASTYARD_HOME", "BLASTYARD_USER"}


def test_every_setting_is_documented_and_no_other() -> None:
    assert set(ROWS) == set(VARIABLES.values())
    assert set(VARIABLES) == {field.name for field in msgspec.structs.fields(Settings)}


@pytest.mark.parametrize("name", sorted(set(VARIABLES) - {"home", "user"}))
def test_the_documented_default_is_the_default(name: str) -> None:
    default = getattr(Settings(), name)
    said = ROWS[VARIABLES[name]].strip("`")
    assert said == ("unset" if default in (None, "") else str(default))


def test_all_wrong_variables_are_reported_at_once() -> None:
    wrong = {"BLAST_MAX_RUN_CONCURRENCY": "-1", "BLASTYARD_PORT": "high", "BLASTYARD_ENGINE": "gpu"}
    with pytest.raises(Misconfigured) as raised:
        read_settings(wrong)
    for variable, value in wrong.items():
        assert f"{variable}={value!r}" in raised.value.message


@pytest.mark.parametrize("backend", ["Redis", "etcd", "K8S"])
def test_a_backend_that_is_not_there_is_an_error_and_no_silent_default(backend: str) -> None:
    with pytest.raises(Misconfigured, match="BLAST_COORD_BACKEND"):
        read_settings({"BLAST_COORD_BACKEND": backend})


def test_relations_between_settings_are_checked() -> None:
    with pytest.raises(Misconfigured, match="SUBMIT_EXEC_TIMEOUT_SECONDS must be below"):
        read_settings({"SUBMIT_EXEC_TIMEOUT_SECONDS": "900"})
    with pytest.raises(Misconfigured, match="BLASTYARD_LEASE_SECONDS"):
        read_settings({"BLASTYARD_LEASE_SECONDS": "5"})


def test_an_empty_variable_counts_as_unset() -> None:
    assert read_settings({"BLAST_COORD_BACKEND": "", "BLASTYARD_PORT": ""}) == Settings()


def test_the_home_is_taken_as_given(tmp_path: Path) -> None:
    assert read_settings({"BLASTYARD_HOME": str(tmp_path)}).directory == tmp_path
