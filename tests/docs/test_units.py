"""The systemd units start commands that exist, with variables that are read."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

from blastyard.cli.app import COMMANDS
from blastyard.settings import VARIABLES

FOLDER = Path(__file__).parents[2] / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_there_is(unit: Path) -> None:
    parsed = configparser.RawConfigParser(strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read(unit)
    words = parsed["Service"]["ExecStart"].split()

    assert words[0].endswith("/blastyard")
    assert words[1] in {name for name, _, _ in COMMANDS}
    assert int(parsed["Service"]["TimeoutStopSec"]) > 60, "a hand-over may take that long"


def test_the_environment_file_has_only_variables_that_are_read() -> None:
    lines = (FOLDER / "blastyard.env").read_text().splitlines()
    named = {found[1] for line in lines if (found := re.match(r"#?([A-Z_]+)=", line))}

    assert named
    assert named <= set(VARIABLES.values())
